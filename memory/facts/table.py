"""The table of memories, whichever database keeps it, under Mem0's store and under recall.

A row is what Mem0 gives its vector store: an id, a vector and a payload. Facts are written through
Mem0 and live only here; journal entries have a row here to be found by. Both have the same payload
fields, so that one search finds and one rule ranks them.

Two payload fields are instructions to the table. `terms` (a list of texts) holds the words that
find the row; without it, the table computes them from `data`, and again when `ANALYSIS_VERSION`
changes. `embed` is the text to embed instead of `data`. Every write looks up `op` and `identity`
(equal for two facts with the same text and sources).

A filter maps a column to a value (None: the row has none), to a list of values, or to a range of
`gt`, `gte`, `lt`, `lte`. A row passes if all of them hold.

Words rank by BM25 (Robertson and Zaragoza 2009) with Lucene's inverse document frequency, which is
above 0 for every word. Each kind of row is a collection of its own; otherwise a fact that repeats
an entry would make the entry's words common. The scores of each kind are scaled by the weight of
the whole query in it: a text with all words of the query scores the same among ten texts of its
kind or ten thousand.
"""

from __future__ import annotations

import json
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, TypeVar, cast
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from memory.errors import InputError, MemoryStoreError
from memory.records import Fact, FactDraft, Scope
from memory.text import fact_terms

Vector = npt.NDArray[np.float32]
"""Of length 1, so that the inner product is the cosine; a zero vector stays zero."""

Kind = Literal["fact", "episode"]
"""The payload's `kind`."""

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

SATURATION, LENGTH_PART = 1.2, 0.75
"""BM25's k1 and b."""

MAX_QUERY_WORDS = 64
"""Words of a query that are looked up: a pasted page is not a query."""

_HINT = "if the embedder was changed, run `circadian reindex`"


class Row(NamedTuple):
    """One memory."""

    seq: int
    """Its number: unique, never reused, ascending in the order of writing."""
    id: str
    payload: dict[str, Any]
    """Mem0's: `data` (the text), `user_id`, `agent_id`, and the fields of the record."""
    access_count: int = 0
    last_access: str | None = None


class SessionPlace(NamedTuple):
    """An episode within its session."""

    session: str
    seq: int


class Counted(NamedTuple):
    """How common a query's terms are in a scope, in the kind (facts or entries) with more rows: a
    fact and the entry that it was made from are the same statement.
    """

    rows: int
    """The rows with words."""
    having: Mapping[str, int]
    """Term -> number of rows that have it; terms without rows are left out."""


class Listing(NamedTuple):
    """Which rows a page of a list shows, and in what order."""

    filters: Filters
    terms: Sequence[str] = ()
    """Index terms that a row must all have."""
    names: Sequence[str] = ()
    """A row must have one of these as its speaker, or among its entities; none: any row."""
    order: Literal["written", "valid_from", "importance"] = "written"
    """Ties stand in the order of writing."""
    descending: bool = True
    limit: int | None = None
    offset: int = 0
    citing: Sequence[str] = ()
    """A row must have one of these among its source entries or events; none: any row."""
    has: str | None = None
    """A row must have this field in its payload."""
    lacks: str | None = None
    """A row must not have this field."""


class Waiting(NamedTuple):
    """A memory without a vector of the embedder in use."""

    id: str
    text: str
    """The text to embed: the payload's `embed`, else its `data`."""


class Sql(NamedTuple):
    """A piece of SQL and the values of its parameters, in order."""

    text: str
    values: tuple[object, ...] = ()


class Dialect(NamedTuple):
    """How a database says a filter."""

    aliases: str
    """Aliases `a` with their rows `m`."""
    column: str
    """A column, as a template of its `name`."""
    value: str
    """A parameter, as a template of its `type`."""
    among: str
    """A list of parameters of that type, as the right side of the test."""
    as_value: Callable[[str | float], object]
    as_list: Callable[[Sequence[str | float]], object]


ROW = "m.seq, m.id, m.payload, m.access_count, m.last_access"


class MemoryTable(ABC):
    """Rows of every scope. Blocking and thread-safe; several processes may have it open.

    Each call is all or nothing. Raises MemoryStoreError where the database cannot be read or
    written, and ValueError for an unknown filter. Reads that both databases understand are here.
    """

    lock: threading.RLock
    """Held during every call; hold it to make several calls atomic within this process."""
    file_number = 0
    """A random number of a file, by which another file in its place is noticed; 0: none."""
    dialect: Dialect

    @abstractmethod
    def _asked(self, filters: Filters, statement: str, *values: object) -> list[Any]:
        """The rows of a statement, as of one moment; `{where}` in it is the test of `filters`.

        `values`: of the parameters behind that test, behind each of several.
        """

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Make this thread's writes inside atomic; an error rolls them back. Joins an open one."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[object]:
        """Spare the reads inside what each of them would begin with."""

    @abstractmethod
    def insert(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any]) -> None:
        """Add a row, unless its scope has one of its kind and `op`; a vector may follow."""

    @abstractmethod
    def alias(self, row_id: str, op: str) -> None:
        """Record that the operation `op` led to this row, too, while the row exists."""

    def made(self, filters: Filters, ops: Sequence[str]) -> dict[str, Row]:
        """The matching rows that these operations made, by operation; aliases count."""
        among, values = self._among("op", list(ops), "text")
        query = (
            f"SELECT a.op, {ROW}, 0 AS own FROM {self.dialect.aliases}"
            f" WHERE {{where}} AND a.{among}"
            f" UNION ALL SELECT m.op, {ROW}, 1 FROM memories AS m WHERE {{where}} AND m.{among}"
            " ORDER BY own, seq"
        )
        return {op: self._row(*row) for op, *row, _ in self._asked(filters, query, *values)}

    @abstractmethod
    def update(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any] | None) -> None:
        """Replace one row's vector, payload or both; None keeps it, unless the text is new."""

    @abstractmethod
    def delete(self, filters: Filters) -> int:
        """Remove the matching rows, keeping only their numbers; return how many there were."""

    def select(self, filters: Filters) -> list[Row]:
        """The matching rows, oldest first."""
        query = f"SELECT {ROW} FROM memories AS m WHERE {{where}} ORDER BY m.seq"
        return [self._row(*row) for row in self._asked(filters, query)]

    @abstractmethod
    def listed(self, wanted: Listing) -> tuple[list[Row], int]:
        """A page of a list of rows, and the number of rows on all pages."""

    def count(self, filters: Filters) -> int:
        """The number of matching rows."""
        [(number,)] = self._asked(filters, "SELECT count(*) FROM memories AS m WHERE {where}")
        return int(number)

    def numbered(self, numbers: Iterable[int]) -> dict[int, Row]:
        """Rows by `seq`; missing ones are left out."""
        among, values = self._among("m.seq", list(numbers), "bigint")
        rows = self._asked(
            {}, f"SELECT {ROW} FROM memories AS m WHERE {{where}} AND {among}", *values
        )
        return {row[0]: self._row(*row) for row in rows}

    @abstractmethod
    def vector(self, row_id: str) -> Vector | None:
        """A row's vector; None without a row, or without a vector of the embedder in use."""

    @abstractmethod
    def nearest(
        self, vectors: Sequence[Vector], filters: Filters, limit: int
    ) -> list[list[tuple[Row, float]]]:
        """The nearest matching rows of each vector, nearest first, with cosine (-1..1)."""

    @abstractmethod
    def keywords(
        self, terms: Sequence[str], filters: Filters, limit: int
    ) -> list[tuple[Row, float]]:
        """The matching rows with any of these index terms, best first, with BM25 (> 0)."""

    @abstractmethod
    def counted(self, terms: Sequence[str], scope: Filters) -> Counted:
        """How many rows of a scope have each of these terms, of the kind that has most."""

    def timeline(self, filters: Filters, sessions: Sequence[str]) -> list[SessionPlace]:
        """The episodes of these sessions, session by session, in the order of their time."""
        among, values = self._among("m.session", list(sessions), "text")
        query = (
            "SELECT m.session, m.seq FROM memories AS m WHERE {where} AND m.kind = 'episode'"
            f" AND {among} ORDER BY m.session, m.valid_from NULLS FIRST, m.seq"
        )
        return [SessionPlace(*row) for row in self._asked(filters, query, *values)]

    def beside(self, filters: Filters, numbers: Collection[int], aside: int) -> set[int]:
        """The `seq` of the `aside` episodes before and after each of these in its session."""
        among, values = self._among("m.seq", list(numbers), "bigint")
        query = f"SELECT {_beside_columns(aside)} FROM memories AS m WHERE {{where}} AND {among}"
        rows = self._asked(filters, query, *values)
        return {seq for row in rows for seq in row if seq is not None}

    @abstractmethod
    def touch(self, row_ids: Sequence[str], at: datetime) -> None:
        """Count an access of each row, at `at`. Leaves every index as it is."""

    @abstractmethod
    def unembedded(self, filters: Filters, limit: int) -> list[Waiting]:
        """Matching rows without a vector of the embedder in use, newest first."""

    @abstractmethod
    def count_unembedded(self, filters: Filters) -> int:
        """The number of matching rows without a vector of the embedder in use."""

    @abstractmethod
    def set_vectors(self, vectors: Mapping[str, Vector]) -> None:
        """Set vectors of the embedder in use, by row id; missing rows are skipped."""

    @abstractmethod
    def scrub(self) -> None:
        """Remove the text of deleted and changed rows from the disk. Slow."""

    @abstractmethod
    def close(self) -> None:
        """Close the table. Every write was committed."""

    def _row(self, seq: int, id_: str, payload: Any, *counted: Any) -> Row:
        return Row(seq, id_, payload, *counted)

    def _among(self, column: str, values: Sequence[str | float], type_: str) -> Sql:
        """The test that a column has one of `values`."""
        test = f"{column} {self.dialect.among.format(type=type_)}"
        return Sql(test, (self.dialect.as_list(values),))


def order_by(wanted: Listing) -> str:
    """The order of a list, as SQL."""
    way = "DESC" if wanted.descending else "ASC"
    first = "" if wanted.order == "written" else f"{wanted.order} {way}, "
    return f"{first}seq {way}"


def split(filters: Filters) -> tuple[dict[str, str | None], dict[str, object]]:
    """(the ids of the scope that `filters` name, the filters of a row beside them)."""
    scope = {
        name: value
        for name, value in filters.items()
        if name in SCOPE and (value is None or isinstance(value, str))
    }
    return scope, {name: value for name, value in filters.items() if name not in scope}


def where(filters: Filters, dialect: Dialect) -> Sql:
    """`filters` as a test of a row. Raises ValueError, which names what does not fit."""
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


def _checked(name: str, value: object) -> str | float:
    if name in TEXTS and isinstance(value, str):
        return value
    # Python's True is an int, too.
    number = name in NUMBERS and not isinstance(value, bool)
    if number and isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    form = "texts" if name in TEXTS else "numbers"
    raise ValueError(f"the filter {name} takes {form}, not {value!r}")


def stored_payload(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a payload that is stored. Raises ValueError for a value that no column holds."""
    kept = {key: value for key, value in payload.items() if key != "terms"}
    for field in (TEXTS | NUMBERS) & kept.keys():
        fits = str if field in TEXTS else int | float
        value = kept[field]
        if value is not None and (not isinstance(value, fits) or isinstance(value, bool)):
            raise ValueError(f"the field {field} of a memory cannot be {value!r}")
    return kept


def unit(vector: Sequence[float] | Vector, dimension: int) -> Vector:
    """`vector` at length 1; a zero vector stays zero. Raises as `checked_vector`."""
    array = checked_vector(np.asarray(vector, dtype=np.float32), dimension)
    norm = np.linalg.norm(array.astype(np.float64))
    return (array / norm).astype(np.float32) if norm > 0 else array


def checked_vector(vector: Vector, dimension: int) -> Vector:
    """`vector`, if it has `dimension` finite numbers. Raises MemoryStoreError if not."""
    if vector.shape != (dimension,):
        raise MemoryStoreError(
            f"the embedder gave a vector of shape {vector.shape}, and this memory keeps vectors of "
            f"{dimension} numbers; {_HINT}"
        )
    if not np.isfinite(vector).all():
        raise MemoryStoreError(
            f"the embedder gave a vector of values that are not numbers (NaN, infinite); {_HINT}"
        )
    return vector


# Facts and the payloads that Mem0 stores in the table, converted into each other.


Form = TypeVar("Form")

_DRAFT = TypeAdapter(FactDraft)

_FACT = TypeAdapter(Fact)

_NOT_IN_PAYLOAD = ("id", "text", "access_count", "last_access")

_BY_NIGHT = (
    *("context", "tags", "earlier", "disputed"),
    *("depends_on", "doubtful", "other_words", "origins"),
)
"""Optional fields that nights add to a fact."""

_METADATA = tuple(name for name in Fact.__annotations__ if name not in _NOT_IN_PAYLOAD)


def scope_filters(scope: Scope) -> dict[str, str]:
    """A scope as Mem0's ids, escaped one to one: those are never empty and have no whitespace."""
    return {"user_id": _mem0_id(scope.user), "agent_id": _mem0_id(scope.thread)}


def user_filters(scope: Scope) -> dict[str, str]:
    """All agents of the scope's user."""
    return {"user_id": _mem0_id(scope.user)}


@lru_cache(maxsize=256)
def _mem0_id(text: str) -> str:
    return "".join(quote(char) if char.isspace() or char == "%" else char for char in text) or "%"


def _beside_columns(aside: int) -> str:
    """Columns of a query FROM memories AS m: the episodes before and after `m` in its session."""
    near = (
        "(SELECT n.seq FROM memories AS n WHERE n.scope = m.scope AND n.session = m.session"
        " AND n.kind = 'episode' AND (n.valid_from, n.seq) {side} (m.valid_from, m.seq)"
        " ORDER BY n.valid_from {order}, n.seq {order} LIMIT 1 OFFSET {place})"
    )
    sides = (("<", "DESC"), (">", "ASC"))
    return ", ".join(
        near.format(side=side, order=order, place=place)
        for side, order in sides
        for place in range(aside)
    )


def fact_filters(scope: Scope, *, include_superseded: bool = True) -> dict[str, object]:
    """The scope's facts: all, or those that hold."""
    held = {} if include_superseded else {"invalid_at": None}
    return {**scope_filters(scope), "kind": "fact", **held}


def checked_draft(draft: FactDraft) -> FactDraft:
    """`draft`, checked: it has a text and a source. Raises InputError."""
    checked = _checked_form(draft, _DRAFT)
    if not checked["text"].strip():
        raise InputError("a fact has no text")
    if not checked["source_entries"] and not checked["source_events"]:
        raise InputError(f"a fact has no source: {checked['text'][:80]!r}")
    return checked


def checked_fact(fact: Mapping[str, Any]) -> Fact:
    """`fact`, checked. Raises InputError."""
    return _checked_form(fact, _FACT)


def _checked_form(record: object, form: TypeAdapter[Form]) -> Form:
    try:
        checked = form.validate_python(record, strict=True)
        json.dumps(checked, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        raise InputError(f"not a fact: {error}") from error
    return checked


def metadata_of(record: FactDraft) -> dict[str, Any]:
    """The payload beside the text. A draft becomes a valid fact."""
    blank = {"invalid_at": None, "superseded_by": None, "created_at": record["created"]}
    fields = {key: one for key, one in record.items() if key not in _NOT_IN_PAYLOAD}
    return {**blank, **fields, **_terms_of(record), "identity": identity_of(record)}


def _terms_of(record: Mapping[str, Any]) -> dict[str, list[str]]:
    """The index terms of a fact that a night described (A-MEM); else the table's own."""
    beside = [record.get("context") or "", *(record.get("tags") or ())]
    beside += record.get("other_words") or ()
    return {"terms": fact_terms(record["text"], beside)} if any(beside) else {}


def identity_of(record: FactDraft) -> str:
    """A digest of the text, without case and extra blanks, and the sources of a fact."""
    text = " ".join(record["text"].casefold().split())
    sources = [sorted(set(record["source_entries"])), sorted(set(record["source_events"]))]
    return blake2b(json.dumps([text, *sources]).encode(), digest_size=16).hexdigest()


def fact_of(row: Row) -> Fact:
    """The fact in a row. Empty fields that nights add are left out, as before an undone night."""
    named = [name for name in _METADATA if name not in _BY_NIGHT or row.payload.get(name)]
    counted = {"access_count": row.access_count, "last_access": row.last_access}
    try:
        fields = {name: row.payload[name] for name in named}
        return cast(Fact, {"id": row.id, "text": row.payload["data"], **fields, **counted})
    except KeyError as error:
        raise MemoryStoreError(
            f"the fact {row.id} lacks {error}; restore the data from a backup"
        ) from None


def embedded_text(payload: Mapping[str, Any]) -> str:
    """The text to embed."""
    text = payload.get("embed")
    return str(payload["data"] if text is None else text)
