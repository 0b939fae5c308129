"""Filters: which rows of the table of memories a call is about, said in SQL. Pure.

A filter maps a column to a value (None: the row has none), to a list ("one of"), or to a range of
`gt`, `gte`, `lt`, `lte`. A row passes where all of them hold. The product and Mem0 send nothing
else; any other operator of Mem0's filter language is a ValueError that names it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeGuard

Filters = Mapping[str, object]

SCOPE = ("user_id", "agent_id")
"""The columns that make a scope."""
TEXTS = frozenset(
    ("id", *SCOPE, "op", "identity", "kind", "session", "speaker", "valid_from", "invalid_at")
)
"""Columns that hold a text or nothing. Texts, such as ISO times, are in order by code point."""
NUMBERS = frozenset(("trust", "importance"))
"""Columns that hold a number or nothing."""

_RANGES = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


class Sql(NamedTuple):
    """A piece of SQL and the values of its parameters, in order."""

    text: str
    values: tuple[object, ...] = ()


class Dialect(NamedTuple):
    """How a database says a filter."""

    column: str
    """A column, as a template of its `name`."""
    value: str
    """A parameter, as a template of its `type`."""
    among: str
    """A list of parameters of that type, as the right side of the test."""
    as_value: Callable[[str | float], object]
    as_list: Callable[[Sequence[str | float]], object]


def split(filters: Filters) -> tuple[dict[str, str | None], dict[str, object]]:
    """(the ids of the scope that `filters` name, the filters of a row beside them)."""
    scope = {
        name: value
        for name, value in filters.items()
        if name in SCOPE and (value is None or isinstance(value, str))
    }
    return scope, {name: value for name, value in filters.items() if name not in scope}


def where(filters: Filters, dialect: Dialect) -> Sql:
    """`filters` as a test of a row.

    Raises:
        ValueError: an unknown column or operator, or a value that does not fit the column.
    """
    tests = [_test(name, wanted, dialect) for name, wanted in filters.items()]
    text = " AND ".join(test.text for test in tests)
    return Sql(text or "1 = 1", tuple(value for test in tests for value in test.values))


def _test(name: str, wanted: object, dialect: Dialect) -> Sql:
    if name not in TEXTS | NUMBERS:
        known = ", ".join(sorted(TEXTS | NUMBERS))
        raise ValueError(f"memory cannot filter by {name!r}: a filter names one of {known}")
    column, type_ = dialect.column.format(name=name), "text" if name in TEXTS else "float8"
    if wanted is None:
        return Sql(f"{column} IS NULL")
    if isinstance(wanted, list | tuple):
        values = [_checked(name, value) for value in wanted]
        return Sql(f"{column} {dialect.among.format(type=type_)}", (dialect.as_list(values),))
    tests = _range(name, wanted) if isinstance(wanted, Mapping) else {"=": wanted}
    value = dialect.value.format(type=type_)
    return Sql(
        " AND ".join(f"{column} {sign} {value}" for sign in tests),
        tuple(dialect.as_value(_checked(name, bound)) for bound in tests.values()),
    )


def _range(name: str, wanted: Mapping[object, object]) -> dict[str, object]:
    unknown = [operator for operator in wanted if operator not in _RANGES]
    if unknown or not wanted:
        known = ", ".join(_RANGES)
        raise ValueError(f"the filter {name} has no operator {unknown}: there are {known}")
    return {_RANGES[str(operator)]: bound for operator, bound in wanted.items()}


def _is_number(value: object) -> TypeGuard[int | float]:
    # Python's True is an int, too.
    return not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)


def _checked(name: str, value: object) -> str | float:
    if name in TEXTS and isinstance(value, str):
        return value
    if name in NUMBERS and _is_number(value):
        return float(value)
    form = "texts" if name in TEXTS else "numbers"
    raise ValueError(f"the filter {name} takes {form}, not {value!r}")
