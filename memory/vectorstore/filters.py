"""Mem0's filters: read once into a tree of conditions, said in the SQL of either database. Pure.

A filter maps a field to a value, to a list ("one of"), to `*` (any value at all) or to operators:
eq ne gt gte lt lte in nin contains icontains. `AND`, `OR` and `NOT` take lists of filters (`NOT`:
none of them); Mem0 itself sends them as `$or` and `$not`. Anything else raises ValueError.

A field is a key of the payload, or `id`. What a condition means is the same in every database:

- Values equal when they are of one JSON type (text, number, true or false) and equal. A field that
  is missing is null; `None` asks for that, and `*` for anything else.
- gt, gte, lt, lte compare numbers with numbers and text with text, by code point; ISO times of one
  zone are in order by that. A value of another type is neither above nor below.
- `contains` finds a piece of a text, or an element of a list of texts; `icontains` ignores case, as
  the database knows it: only SQLite's finds "SS" by a sharp s.
- Every condition is true or false of every row: `ne`, `nin` and `NOT` are the rest, those rows
  included that have no such field.

A second database is a second `Dialect`: it says each of the five tests, and `said` joins them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, Protocol

Filters = Mapping[str, object]

Scalar = str | int | float | bool | None

Comparison = Literal["gt", "gte", "lt", "lte"]

_FIELD = re.compile(r'[^$"\\\x00-\x1f][^"\\\x00-\x1f]*')
"""Names that mean the same in a JSON path of SQLite as in a key; a dollar begins an operator."""

_INTEGERS = range(-(2**63), 2**63)


@dataclass(frozen=True)
class Equals:
    """The field has this value; None: it has none."""

    field: str
    value: Scalar


@dataclass(frozen=True)
class Among:
    """The field is one of these texts."""

    field: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Compares:
    """The field is a number (or a text) on this side of the number (or the text)."""

    field: str
    comparison: Comparison
    value: str | int | float


@dataclass(frozen=True)
class Contains:
    """The field is a text with this piece, or a list with this text in it."""

    field: str
    text: str
    ignoring_case: bool


@dataclass(frozen=True)
class Present:
    """The field has a value, whatever it is."""

    field: str


@dataclass(frozen=True)
class Every:
    """All of these hold; of none, that is true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Some:
    """One of these holds; of none, that is false."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Not:
    """This does not hold."""

    part: Condition


Condition = Equals | Among | Compares | Contains | Present | Every | Some | Not


class Sql(NamedTuple):
    """A piece of SQL and the values of its parameters, in order."""

    text: str
    values: tuple[object, ...] = ()


class Dialect(Protocol):
    """How one database says a test. What it says must be true or false of every row, never null."""

    true: str
    false: str

    def equals(self, test: Equals) -> Sql:
        """The test as SQL."""
        ...

    def among(self, test: Among) -> Sql:
        """The test as SQL, for lists of any length."""
        ...

    def compares(self, test: Compares) -> Sql:
        """The test as SQL."""
        ...

    def contains(self, test: Contains) -> Sql:
        """The test as SQL."""
        ...

    def present(self, test: Present) -> Sql:
        """The test as SQL."""
        ...


def said(condition: Condition, dialect: Dialect) -> Sql:
    """`condition` as an SQL expression."""
    match condition:
        case Every(parts):
            return _joined([said(part, dialect) for part in parts], " AND ", dialect.true)
        case Some(parts):
            return _joined([said(part, dialect) for part in parts], " OR ", dialect.false)
        case Not(part):
            text, values = said(part, dialect)
            return Sql(f"NOT ({text})", values)
        case Equals():
            return dialect.equals(condition)
        case Among():
            return dialect.among(condition)
        case Compares():
            return dialect.compares(condition)
        case Contains():
            return dialect.contains(condition)
        case Present():
            return dialect.present(condition)


def _joined(parts: Sequence[Sql], word: str, nothing: str) -> Sql:
    if not parts:
        return Sql(nothing)
    text = word.join(f"({part.text})" if len(parts) > 1 else part.text for part in parts)
    return Sql(text, tuple(value for part in parts for value in part.values))


def condition_of(filters: Filters) -> Condition:
    """What `filters` ask for. Raises ValueError for what is no filter: none is lost silently."""
    parts = [_read(key, wanted) for key, wanted in filters.items()]
    return parts[0] if len(parts) == 1 else Every(tuple(parts))


def fixed(condition: Condition) -> dict[str, Scalar]:
    """The values that fields must have for `condition` to hold, as far as it says so outright."""
    match condition:
        case Equals(field, value):
            return {field: value}
        case Every(parts):
            return {field: one for part in parts for field, one in fixed(part).items()}
    return {}


def without(condition: Condition, values: Mapping[str, Scalar]) -> Condition:
    """What `condition` asks for beside these values of `fixed`."""
    match condition:
        case Equals(field, value) if field in values and values[field] == value:
            return Every(())
        case Every(parts):
            left = tuple(without(part, values) for part in parts)
            return Every(tuple(part for part in left if part != Every(())))
    return condition


def _read(key: str, wanted: object) -> Condition:
    if key in ("AND", "$and"):
        return Every(_conditions(key, wanted))
    if key in ("OR", "$or"):
        return Some(_conditions(key, wanted))
    if key in ("NOT", "$not"):
        return Not(Some(_conditions(key, wanted)))
    if not _FIELD.fullmatch(key):
        raise ValueError(f"{key!r} is no field or operator to filter by")
    if isinstance(wanted, Mapping):
        return _operators(key, wanted)
    if isinstance(wanted, list | tuple):
        return _one_of(key, wanted)
    return Present(key) if wanted == "*" else Equals(key, _scalar(key, wanted))


def _conditions(key: str, wanted: object) -> tuple[Condition, ...]:
    filters = [wanted] if isinstance(wanted, Mapping) else wanted
    if not isinstance(filters, list | tuple) or not filters:
        raise ValueError(f"the filter {key} takes a list of filters, not {wanted!r}")
    if not all(isinstance(one, Mapping) and one for one in filters):
        raise ValueError(f"the filter {key} takes filters that say something, not {wanted!r}")
    return tuple(condition_of(one) for one in filters)


def _operators(field: str, wanted: Mapping[str, object]) -> Condition:
    unknown = sorted(set(wanted) - _OPERATORS.keys())
    if unknown or not wanted:
        known = " ".join(_OPERATORS)
        raise ValueError(f"the filter {field} has no operator {unknown}; there are {known}")
    return Every(tuple(_OPERATORS[name](field, value) for name, value in wanted.items()))


def _equals(field: str, value: object) -> Condition:
    return Equals(field, _scalar(field, value))


def _one_of(field: str, values: object) -> Condition:
    if not isinstance(values, list | tuple):
        raise ValueError(f"the filter {field} takes a list there, not {values!r}")
    checked = [_scalar(field, one) for one in values]
    texts = Among(field, tuple(one for one in checked if isinstance(one, str)))
    others = [Equals(field, one) for one in checked if not isinstance(one, str)]
    return Some((texts, *others)) if others else texts


def _compares(comparison: Comparison, field: str, value: object) -> Condition:
    checked = _scalar(field, value)
    if checked is None or isinstance(checked, bool):
        raise ValueError(f"the filter {field} compares numbers or texts, not {value!r}")
    return Compares(field, comparison, checked)


def _contains(field: str, value: object, *, ignoring_case: bool = False) -> Condition:
    if not isinstance(value, str):
        raise ValueError(f"the filter {field} looks for a text in it, not {value!r}")
    return Contains(field, value, ignoring_case)


def _scalar(field: str, value: object) -> Scalar:
    if isinstance(value, int) and value not in _INTEGERS:
        raise ValueError(f"the filter {field} takes numbers of 64 bits, not {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"the filter {field} takes numbers, not {value!r}")
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(f"the filter {field} takes plain values, not {value!r}")


_OPERATORS: dict[str, Callable[[str, object], Condition]] = {
    "eq": _equals,
    "ne": lambda field, value: Not(_equals(field, value)),
    "gt": partial(_compares, "gt"),
    "gte": partial(_compares, "gte"),
    "lt": partial(_compares, "lt"),
    "lte": partial(_compares, "lte"),
    "in": _one_of,
    "nin": lambda field, value: Not(_one_of(field, value)),
    "contains": _contains,
    "icontains": partial(_contains, ignoring_case=True),
}
