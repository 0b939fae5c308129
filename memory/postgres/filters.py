"""Filters as PostgreSQL says them, over the table of memories (called `m`). Pure."""

from __future__ import annotations

import json

from memory.postgres.storable import storable
from memory.vectorstore.filters import (
    Among,
    Compares,
    Condition,
    Contains,
    Equals,
    Present,
    Sql,
    said,
)
from memory.vectorstore.sqlite_filters import NUMBERS, TEXTS

_SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_FALSE = Sql("false")


class PostgresDialect:
    """Fields that are columns are compared as such, so that indexes serve; others in the payload.

    A value is looked at as what it is: no cast of one that is of another type, which would fail.
    """

    true, false = "true", "false"

    def equals(self, test: Equals) -> Sql:
        """As JSON: of one type and equal."""
        field, value = test.field, test.value
        if value is None:
            return _none(field)
        if _column(field):
            return _FALSE if isinstance(value, bool) else _columns_value(field, "=", value)
        return Sql("coalesce(m.payload -> %s::text = %s::jsonb, false)", (field, _json(value)))

    def among(self, test: Among) -> Sql:
        """One parameter, whatever the number of texts."""
        if _column(test.field):
            wanted = storable(test.texts)
            return _columns_text(test.field, Sql(f"m.{test.field} = ANY(%s::text[])", (wanted,)))
        listed = [_json(text) for text in test.texts]
        return Sql(
            "coalesce(m.payload -> %s::text = ANY(%s::jsonb[]), false)", (test.field, listed)
        )

    def compares(self, test: Compares) -> Sql:
        """Texts by code point, whatever the language of the database."""
        field, sign, value = test.field, _SIGNS[test.comparison], test.value
        if _column(field):
            return _columns_value(field, sign, value)
        if isinstance(value, str):
            return _payloads_text(
                field,
                Sql(
                    f'(m.payload ->> %s::text) COLLATE "C" {sign} %s::text',
                    (field, storable(value)),
                ),
            )
        return Sql(
            "CASE jsonb_typeof(m.payload -> %s::text) WHEN 'number'"
            f" THEN m.payload -> %s::text {sign} %s::jsonb ELSE false END",
            (field, field, _json(value)),
        )

    def contains(self, test: Contains) -> Sql:
        """A piece of a text, or an element of a list."""
        field, text = test.field, storable(test.text)
        fold = "lower" if test.ignoring_case else ""
        if _column(field):
            found = f'strpos({fold}(m.{field} COLLATE "default"), {fold}(%s::text)) > 0'
            return _columns_text(field, Sql(found, (text,)))
        return Sql(
            "CASE jsonb_typeof(m.payload -> %s::text)"
            f" WHEN 'string' THEN strpos({fold}(m.payload ->> %s::text), {fold}(%s::text)) > 0"
            " WHEN 'array' THEN EXISTS (SELECT FROM jsonb_array_elements(m.payload -> %s::text)"
            " AS element WHERE jsonb_typeof(element) = 'string'"
            f" AND {fold}(element #>> '{{}}') = {fold}(%s::text))"
            " ELSE false END",
            (field, field, text, field, text),
        )

    def present(self, test: Present) -> Sql:
        """Anything but null."""
        text, values = _none(test.field)
        return Sql(f"NOT ({text})", values)


def where(condition: Condition) -> Sql:
    """`condition` as an expression of PostgreSQL."""
    return said(condition, PostgresDialect())


def _none(field: str) -> Sql:
    if _column(field):
        return Sql(f"m.{field} IS NULL")
    return Sql("m.payload ->> %s::text IS NULL", (field,))


def _columns_value(field: str, sign: str, value: str | int | float) -> Sql:
    if isinstance(value, str):
        return _columns_text(field, Sql(f"m.{field} {sign} %s::text", (storable(value),)))
    if field not in NUMBERS:
        return _FALSE
    return Sql(f"m.{field} IS NOT NULL AND m.{field} {sign} %s::float8", (value,))


def _columns_text(field: str, test: Sql) -> Sql:
    if field not in TEXTS:
        return _FALSE
    return Sql(f"m.{field} IS NOT NULL AND {test.text}", test.values)


def _payloads_text(field: str, test: Sql) -> Sql:
    """`test` where the field's value is a text, else false."""
    return Sql(
        f"CASE jsonb_typeof(m.payload -> %s::text) WHEN 'string' THEN {test.text} ELSE false END",
        (field, *test.values),
    )


def _column(field: str) -> bool:
    return field in TEXTS or field in NUMBERS


def _json(value: object) -> str:
    return json.dumps(storable(value), ensure_ascii=False)
