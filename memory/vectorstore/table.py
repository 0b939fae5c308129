"""The table of memories, whichever database keeps it: what Mem0's store and recall stand on.

A row is what Mem0 gives its vector store: an id, a vector and a payload. Facts are written through
Mem0 and stand nowhere else; the journal's entries stand in the store, and here only to be found.
Both have the same fields in the payload, so that one search finds and one rule ranks them.

Two things in a payload are for the table. `terms` (a list of texts), the words that the row is
found by, is taken out of it; without it they are `memory.analysis.terms` of `data`, and so they are
once `memory.analysis.ANALYSIS_VERSION` is another. With an empty list the row is in no word index,
and stays out. `embed` is what is embedded instead of `data`. `op` and `identity` (the same for two
facts of one text from the same sources) are looked up at every write.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from memory.vectorstore.filters import Filters as Filters

Vector = npt.NDArray[np.float32]
"""Of length 1, so that the inner product is the cosine; a zero vector stays zero."""

Kind = Literal["fact", "episode", "window"]
"""The payload's `kind`. A window is a run of neighbouring episodes that are found together."""


class Row(NamedTuple):
    """One memory as it stands."""

    seq: int
    """Its place in the table: unique, never used again, ascending in the order of writing."""
    id: str
    payload: dict[str, Any]
    """Mem0's: `data` (the text), `user_id`, `agent_id`, and the fields of the record."""
    access_count: int = 0
    last_access: str | None = None


class Place(NamedTuple):
    """Where an episode stands: rows of one session come in the order of their time."""

    session: str
    seq: int


class Waiting(NamedTuple):
    """A memory without a vector of the embedder in use."""

    id: str
    text: str
    """What is to be embedded: the payload's `embed`, else its `data`."""


class MemoryTable(Protocol):
    """Rows of every scope. Blocking and thread-safe; several processes may have it open.

    Each call is all or nothing. Raises MemoryStoreError where the database cannot be read or
    written, and ValueError for a filter that does not exist.
    """

    lock: threading.RLock
    """Held through every call; hold it to make several calls one, as seen from this process."""

    def transaction(self) -> AbstractContextManager[None]:
        """All writes of this thread inside are one; an error rolls them back. Joins an open one."""
        ...

    def insert(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any]) -> None:
        """Add a row. One whose `op` stands in its scope and kind already is left as it is.

        Without a vector it is found by words, and by meaning once `set_vectors` gave it one.
        """
        ...

    def alias(self, row_id: str, op: str) -> None:
        """Let `op` be known as having made this row, too, for as long as the row stands."""
        ...

    def made(self, filters: Filters, ops: Sequence[str]) -> dict[str, Row]:
        """The rows that match and that these operations made, by operation; aliases count."""
        ...

    def update(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any] | None) -> None:
        """Replace one row's vector, payload or both; None keeps what stands.

        But where no vector comes with a new text, the one of the old text goes: the row is
        unembedded.
        """
        ...

    def delete(self, filters: Filters) -> int:
        """Remove the rows that match, leaving of each no more than its number; how many."""
        ...

    def select(self, filters: Filters, limit: int | None = None) -> list[Row]:
        """The rows that match, oldest first."""
        ...

    def count(self, filters: Filters) -> int:
        """How many rows match."""
        ...

    def numbered(self, numbers: Iterable[int]) -> dict[int, Row]:
        """Rows by `seq`; those that are gone are left out."""
        ...

    def vector(self, row_id: str) -> Vector | None:
        """The vector of a row, None where there is no row or none of the embedder in use."""
        ...

    def nearest(self, vector: Vector, filters: Filters, limit: int) -> list[tuple[Row, float]]:
        """The nearest of the rows that match, nearest first, with cosine (-1..1).

        Filters come before ranking: other rows, however near, take nobody's place.
        """
        ...

    def keywords(
        self, terms: Sequence[str], filters: Filters, limit: int
    ) -> list[tuple[Row, float]]:
        """The rows that match and have any of the index terms, best first, with BM25 (> 0).

        Computed per scope, over its rows of all kinds that have terms: what others keep changes
        nothing. Of equals the one written first comes first.
        """
        ...

    def timeline(self, filters: Filters, sessions: Sequence[str]) -> list[Place]:
        """The episodes of these sessions, session by session, in the order of their time."""
        ...

    def touch(self, row_ids: Sequence[str], at: datetime) -> None:
        """Count an access of each row, the last one `at`. Changes nothing that is indexed."""
        ...

    def unembedded(self, filters: Filters, limit: int) -> list[Waiting]:
        """Rows that match and have no vector of the embedder in use, newest first."""
        ...

    def count_unembedded(self, filters: Filters) -> int:
        """How many there are."""
        ...

    def set_vectors(self, vectors: Mapping[str, Vector]) -> None:
        """Give rows their vectors, by id, as made by the embedder in use; a row gone is skipped."""
        ...

    def scrub(self) -> None:
        """Leave on the disk nothing of the text of rows that were removed or changed. Slow."""
        ...

    def close(self) -> None:
        """Close it. Nothing is lost: every write was committed."""
        ...
