"""The table of memories, whichever database keeps it, under Mem0's store and under recall.

A row is what Mem0 gives its vector store: an id, a vector and a payload. Facts are written through
Mem0 and live only here. Journal entries live in the store, and have a row here to be found by. Both
have the same payload fields, so that one search finds and one rule ranks them.

Two payload fields are instructions to the table. `terms` (a list of texts) are the words that find
the row; the table takes them out of the payload. Without it they are `memory.analysis.terms` of
`data`, computed again when `memory.analysis.ANALYSIS_VERSION` changes. With an empty list no word
finds the row. `embed` is the text to embed instead of `data`. Every write looks up `op` and
`identity` (equal for two facts with the same text and sources).

A filter maps a column to a value (None: the row has none), to a list ("one of"), or to a range of
`gt`, `gte`, `lt`, `lte`. A row passes where all of them hold. The product and Mem0 send nothing
else; any other operator of Mem0's filter language is a ValueError that names it.

Words rank by BM25 (Robertson and Zaragoza 2009) with Lucene's inverse document frequency,
log(1 + (N - n + 0.5) / (n + 0.5)): above 0 for every word, so that a word in half of the texts
still counts. Each kind of row is a collection of its own; otherwise a fact that repeats an entry
would make the entry's words common. Words are rarer in a larger collection, so the scores of each
kind are scaled by the weight of the whole query in it: a text with all words of the query scores
the same among ten texts of its kind or ten thousand.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol, TypeGuard

import numpy as np
import numpy.typing as npt

from memory.errors import MemoryStoreError

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

    column: str
    """A column, as a template of its `name`."""
    value: str
    """A parameter, as a template of its `type`."""
    among: str
    """A list of parameters of that type, as the right side of the test."""
    as_value: Callable[[str | float], object]
    as_list: Callable[[Sequence[str | float]], object]


class MemoryTable(Protocol):
    """Rows of every scope. Blocking and thread-safe; several processes may have it open.

    Each call is all or nothing. Raises MemoryStoreError where the database cannot be read or
    written, and ValueError for an unknown filter.
    """

    lock: threading.RLock
    """Held during every call; hold it to make several calls atomic within this process."""

    def transaction(self) -> AbstractContextManager[None]:
        """Make this thread's writes inside atomic; an error rolls them back. Joins an open one."""
        ...

    def insert(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any]) -> None:
        """Add a row, unless its scope has a row of its kind and `op`.

        Without a vector it is found by words only, until `set_vectors` adds one.
        """
        ...

    def alias(self, row_id: str, op: str) -> None:
        """Record that the operation `op` led to this row, too, while the row exists."""
        ...

    def made(self, filters: Filters, ops: Sequence[str]) -> dict[str, Row]:
        """The matching rows that these operations made, by operation; aliases count."""
        ...

    def update(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any] | None) -> None:
        """Replace one row's vector, payload or both; None keeps the present one.

        A new text without a vector drops the old text's vector: the row is unembedded.
        """
        ...

    def delete(self, filters: Filters) -> int:
        """Remove the matching rows, keeping only their numbers; return how many there were."""
        ...

    def select(self, filters: Filters, limit: int | None = None) -> list[Row]:
        """The matching rows, oldest first."""
        ...

    def count(self, filters: Filters) -> int:
        """The number of matching rows."""
        ...

    def numbered(self, numbers: Iterable[int]) -> dict[int, Row]:
        """Rows by `seq`; missing ones are left out."""
        ...

    def vector(self, row_id: str) -> Vector | None:
        """A row's vector; None without a row, or without a vector of the embedder in use."""
        ...

    def nearest(self, vector: Vector, filters: Filters, limit: int) -> list[tuple[Row, float]]:
        """The nearest matching rows, nearest first, with cosine (-1..1).

        Rows are filtered before they are ranked, so that other rows never crowd them out.
        """
        ...

    def keywords(
        self, terms: Sequence[str], filters: Filters, limit: int
    ) -> list[tuple[Row, float]]:
        """The matching rows with any of these index terms, best first, with BM25 (> 0).

        Word statistics are a scope's own, over its rows of all kinds. Ties go to the row written
        first.
        """
        ...

    def timeline(self, filters: Filters, sessions: Sequence[str]) -> list[SessionPlace]:
        """The episodes of these sessions, session by session, in the order of their time."""
        ...

    def touch(self, row_ids: Sequence[str], at: datetime) -> None:
        """Count an access of each row, at `at`. Leaves every index as it is."""
        ...

    def unembedded(self, filters: Filters, limit: int) -> list[Waiting]:
        """Matching rows without a vector of the embedder in use, newest first."""
        ...

    def count_unembedded(self, filters: Filters) -> int:
        """The number of matching rows without a vector of the embedder in use."""
        ...

    def set_vectors(self, vectors: Mapping[str, Vector]) -> None:
        """Set vectors of the embedder in use, by row id; missing rows are skipped."""
        ...

    def scrub(self) -> None:
        """Remove the text of deleted and changed rows from the disk. Slow."""
        ...

    def close(self) -> None:
        """Close the table. Every write was committed."""
        ...


class History(Protocol):
    """Mem0's history of changes: what its `Memory` calls without extraction, and semantic memory.

    Times are ISO texts. Raises MemoryStoreError.
    """

    def batch(self) -> AbstractContextManager[None]:
        """Write the changes added inside together at the end, unless there was an error."""
        ...

    def add_history(
        self,
        memory_id: str,
        old_memory: str | None,
        new_memory: str | None,
        event: str,
        **details: Any,
    ) -> None:
        """Add one change. A deletion removes all changes of the memory: they hold its text.

        `details`: created_at, updated_at, is_deleted, actor_id, role.
        """
        ...

    def get_history(self, memory_id: str) -> list[dict[str, Any]]:
        """The changes of one memory, oldest first, with `id` and the names above."""
        ...

    def scrub(self) -> None:
        """Remove deleted content from the disk."""
        ...

    def reset(self) -> None:
        """Remove everything."""
        ...

    def close(self) -> None:
        """Close the history. May be called twice."""
        ...


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


def unit(vector: Sequence[float] | Vector, dimension: int) -> Vector:
    """`vector` at length 1; a zero vector stays zero. Raises as `checked_vector`."""
    array = checked_vector(np.asarray(vector, dtype=np.float32), dimension)
    norm = np.linalg.norm(array.astype(np.float64))
    return (array / norm).astype(np.float32) if norm > 0 else array


def checked_vector(vector: Vector, dimension: int) -> Vector:
    """`vector`, if it has `dimension` finite numbers.

    Raises:
        MemoryStoreError: it has not.
    """
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
