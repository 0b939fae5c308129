"""The vector index: FAISS in memory, rebuilt from the facts table and kept in step with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import faiss
import numpy as np
import numpy.typing as npt

from memory.errors import MemoryStoreError
from memory.vectorstore.sqlite import Change, FactsDb, Row

Vector = npt.NDArray[np.float32]

CHUNK = 4_096
"""Rows read at once while catching up: bounds the memory that a rebuild takes."""


def unit(vector: Sequence[float] | Vector, dimension: int) -> Vector:
    """`vector` at length 1 (a zero vector stays zero), so that inner product is cosine.

    Raises MemoryStoreError where it has another dimension or is not made of numbers.
    """
    array = np.asarray(vector, dtype=np.float32)
    if array.shape != (dimension,):
        raise MemoryStoreError(
            f"the embedder gave a vector of shape {array.shape}; here they have {dimension} numbers"
        )
    if not np.isfinite(array).all():
        raise MemoryStoreError("the embedder gave a vector with values that are not numbers")
    norm = float(np.linalg.norm(array))
    return array / np.float32(norm) if norm > 0 else array


class FactsIndex:
    """Exact nearest neighbours by cosine, over the facts that a filter lets through.

    Shares the lock of its table. Opens nothing; reads rows when first searched, and afterwards
    only those that changed since, whoever wrote them.
    """

    def __init__(self, db: FactsDb, dimension: int) -> None:
        self._db = db
        self._dimension = dimension
        self._faiss = faiss.IndexIDMap2(faiss.IndexFlatIP(dimension))
        self._seen = 0
        self._highest = 0

    def search(
        self, vector: Sequence[float] | Vector, filters: Mapping[str, object], limit: int
    ) -> list[tuple[Row, float]]:
        """The `limit` nearest of the facts that match, nearest first, with cosine (-1..1).

        Filters come before ranking: other facts, however near, take nobody's place.
        """
        query = unit(vector, self._dimension)
        with self._db.lock:
            self._catch_up()
            allowed = self._db.matching(filters)
            if not allowed or limit < 1:
                return []
            parameters = faiss.SearchParameters()
            parameters.sel = faiss.IDSelectorBatch(np.array(allowed, dtype=np.int64))
            scores, numbers = self._faiss.search(
                query[None, :], min(limit, len(allowed)), params=parameters
            )
            rows = self._db.numbered(int(number) for number in numbers[0])
        return [
            (rows[int(number)], float(score))
            for number, score in zip(numbers[0], scores[0], strict=True)
            if int(number) in rows
        ]

    def _catch_up(self) -> None:
        """Take in what changed. Not inside a transaction: what it wrote may be rolled back."""
        while not self._db.writing:
            changes = self._db.changes(self._seen, CHUNK)
            if changes:
                self._apply(changes)
                self._seen = changes[-1].rev
            if len(changes) < CHUNK:
                return

    def _apply(self, changes: Sequence[Change]) -> None:
        known = [change.seq for change in changes if change.seq <= self._highest]
        if known:
            self._faiss.remove_ids(faiss.IDSelectorBatch(np.array(known, dtype=np.int64)))
        latest = {change.seq: change.vector for change in changes}
        written = {seq: vector for seq, vector in latest.items() if vector is not None}
        if written:
            vectors = np.frombuffer(b"".join(written.values()), dtype=np.float32)
            if vectors.size != len(written) * self._dimension:
                raise MemoryStoreError("the stored vectors are of another embedder's dimension")
            self._faiss.add_with_ids(
                vectors.reshape(-1, self._dimension), np.array(list(written), dtype=np.int64)
            )
            self._highest = max(self._highest, *written)
