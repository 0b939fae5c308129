"""Filters as SQLite says them, over the table of memories. Pure."""

from __future__ import annotations

import json

from memory.vectorstore.filters import (
    Among,
    Compares,
    Condition,
    Contains,
    Equals,
    Filters,
    Present,
    Sql,
    condition_of,
    said,
)

_IDS = frozenset({"id", "user_id", "agent_id", "op", "identity"})
TEXTS = _IDS | {"kind", "session", "speaker", "valid_from", "invalid_at"}
"""The fields that are columns of text; text or null is all that they may be."""
NUMBERS = frozenset({"trust", "importance"})
"""The fields that are columns of numbers."""

_SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_FALSE = Sql("0")


class SqliteDialect:
    """Fields that are columns are compared as such, so that indexes serve; others in the payload.

    Needs a function `casefold(text)` on the connection.
    """

    true, false = "1", "0"

    def equals(self, test: Equals) -> Sql:
        """`IS`, for which null is a value like others."""
        field, value = test.field, test.value
        if value is None:
            return Sql(f"{_value(field)} IS NULL")
        if isinstance(value, bool):
            named = "true" if value else "false"
            return _FALSE if _column(field) else Sql(f"{_type(field)} = '{named}'")
        return _if(_kind(value), field, Sql(f"{_value(field)} = ?", (value,)))

    def among(self, test: Among) -> Sql:
        """One parameter, whatever the number of texts: SQLite limits that of parameters."""
        # SQLite's JSON ends a text at a NUL: such a text would match its beginning.
        texts = json.dumps([text for text in test.texts if "\0" not in text])
        listed = Sql(f"{_value(test.field)} IN (SELECT value FROM json_each(?))", (texts,))
        return _if("text", test.field, listed)

    def compares(self, test: Compares) -> Sql:
        """SQLite puts every text above every number: the types are compared first."""
        sign = _SIGNS[test.comparison]
        return _if(
            _kind(test.value), test.field, Sql(f"{_value(test.field)} {sign} ?", (test.value,))
        )

    def contains(self, test: Contains) -> Sql:
        """A piece of a text, or an element of a list."""
        fold = "casefold" if test.ignoring_case else ""
        piece = Sql(f"instr({fold}({_value(test.field)}), {fold}(?)) > 0", (test.text,))
        text = _if("text", test.field, piece)
        if _column(test.field):
            return text
        listed = (
            f"{_type(test.field)} = 'array' AND EXISTS (SELECT 1 FROM"
            f" json_each(payload, {_path(test.field)}) AS element"
            f" WHERE element.type = 'text' AND {fold}(element.value) = {fold}(?))"
        )
        return Sql(f"({text.text}) OR ({listed})", (*text.values, test.text))

    def present(self, test: Present) -> Sql:
        """Anything but null."""
        return Sql(f"{_value(test.field)} IS NOT NULL")


def where(condition: Condition) -> Sql:
    """`condition` as an SQLite expression."""
    return said(condition, SqliteDialect())


def where_clause(filters: Filters) -> tuple[str, list[object]]:
    """`filters` as an SQLite expression, and its parameters. Raises ValueError."""
    text, values = where(condition_of(filters))
    return text, list(values)


def _if(kind: str, field: str, test: Sql) -> Sql:
    """`test` where the field's value is of this kind, else false."""
    if not _column(field):
        types = "= 'text'" if kind == "text" else "IN ('integer', 'real')"
        return Sql(f"{_type(field)} {types} AND {test.text}", test.values)
    if (kind == "text") != (field in TEXTS):
        return _FALSE
    return Sql(f"{field} IS NOT NULL AND {test.text}", test.values)


def _kind(value: str | int | float) -> str:
    return "text" if isinstance(value, str) else "number"


def _column(field: str) -> bool:
    return field in TEXTS or field in NUMBERS


def _value(field: str) -> str:
    return field if _column(field) else f"json_extract(payload, {_path(field)})"


def _type(field: str) -> str:
    """Of the payload's value; 'null' where there is none."""
    return f"coalesce(json_type(payload, {_path(field)}), 'null')"


def _path(field: str) -> str:
    quoted = field.replace("'", "''")
    return f"'$.\"{quoted}\"'"
