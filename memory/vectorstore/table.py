"""The table of memories, whichever database keeps it, under Mem0's store and under recall.

A row is what Mem0 gives its vector store: an id, a vector and a payload. Facts are written through
Mem0 and live only here. Journal entries live in the store, and have a row here to be found by. Both
have the same payload fields, so that one search finds and one rule ranks them.

Two payload fields are instructions to the table. `terms` (a list of texts) are the words that find
the row; the table takes them out of the payload. Without it they are `memory.analysis.terms` of
`data`, computed again when `memory.analysis.ANALYSIS_VERSION` changes. With an empty list no word
finds the row. `embed` is the text to embed instead of `data`. Every write looks up `op` and
`identity` (equal for two facts with the same text and sources).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from memory.errors import MemoryStoreError
from memory.vectorstore.filters import Filters as Filters

Vector = npt.NDArray[np.float32]
"""Of length 1, so that the inner product is the cosine; a zero vector stays zero."""

Kind = Literal["fact", "episode"]
"""The payload's `kind`."""

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


class Place(NamedTuple):
    """An episode within its session."""

    session: str
    seq: int


class Waiting(NamedTuple):
    """A memory without a vector of the embedder in use."""

    id: str
    text: str
    """The text to embed: the payload's `embed`, else its `data`."""


class MemoryTable(Protocol):
    """Rows of every scope. Blocking and thread-safe; several processes may have it open.

    Each call is all or nothing. Raises MemoryStoreError where the database cannot be read or
    written, and ValueError for an unknown filter (`memory.vectorstore.filters`).
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

    def timeline(self, filters: Filters, sessions: Sequence[str]) -> list[Place]:
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
