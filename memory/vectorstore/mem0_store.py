"""Mem0's vector store over the facts table and its index. Importing this imports Mem0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mem0.configs.vector_stores.faiss import FAISSConfig
from mem0.vector_stores.base import VectorStoreBase

from memory.vectorstore.faiss_index import FactsIndex, Vector, unit
from memory.vectorstore.sqlite import FactsDb, Row

COLLECTION = "facts"
"""The one collection. Mem0's own entity collection is not kept."""

Filters = Mapping[str, object] | None
Embedding = Sequence[float] | Vector


class FactsConfig(FAISSConfig):
    """Mem0's FAISS settings, and the open table and index that the store stands on."""

    db: Any
    index: Any


class Memory(NamedTuple):
    """A row in the shape that Mem0 reads."""

    id: str
    score: float | None
    payload: dict[str, Any]


class SQLiteFaissStore(VectorStoreBase):
    """Durable facts under Mem0's provider name "faiss".

    The table is the truth and FAISS a cache of it; filters come before ranking and take equality
    or "one of a list" (anything else raises ValueError). Scores are cosine or BM25: higher is
    nearer.
    """

    def __init__(
        self, *, collection_name: str, db: FactsDb, index: FactsIndex, **settings: Any
    ) -> None:
        if collection_name != COLLECTION:
            raise ValueError(f"there is one collection, {COLLECTION!r}, and no {collection_name!r}")
        self._db, self._index = db, index
        self._dimension = int(settings["embedding_model_dims"])

    def create_col(self, name: str, vector_size: int, distance: str) -> None:
        """Check that the collection asked for is the one that stands. Raises ValueError."""
        if (name, vector_size, distance) != (COLLECTION, self._dimension, "cosine"):
            raise ValueError(f"the collection is {COLLECTION!r}: {self._dimension}, cosine")

    def insert(
        self,
        vectors: Sequence[Embedding],
        payloads: Sequence[Mapping[str, Any]] | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        """Add rows, all or none. A row whose operation id stands in its scope is ignored."""
        if payloads is None or ids is None:
            raise ValueError("a fact needs an id and a payload")
        with self._db.transaction():
            for fact_id, vector, payload in zip(ids, vectors, payloads, strict=True):
                self._db.insert(fact_id, self._blob(vector), payload)

    def search(
        self, query: str, vectors: Embedding, top_k: int = 5, filters: Filters = None
    ) -> list[Memory]:
        """The `top_k` nearest of the rows that match, nearest first."""
        return _ranked(self._index.search(vectors, filters or {}, top_k))

    def keyword_search(self, query: str, top_k: int = 5, filters: Filters = None) -> list[Memory]:
        """The rows that match and share words with `query`, best first."""
        return _ranked(self._db.keywords(query, filters or {}, top_k))

    def update(
        self,
        vector_id: str,
        vector: Embedding | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> None:
        """Replace one row's vector, payload or both."""
        self._db.update(vector_id, None if vector is None else self._blob(vector), payload)

    def delete(self, vector_id: str) -> None:
        """Remove one row."""
        self._db.delete({"id": vector_id})

    def get(self, vector_id: str) -> Memory | None:
        """One row, or None."""
        rows = self._db.select({"id": vector_id})
        return _memory(rows[0]) if rows else None

    def list_cols(self) -> list[str]:
        """The one collection."""
        return [COLLECTION]

    def list(self, filters: Filters = None, top_k: int | None = None) -> list[list[Memory]]:
        """The rows that match, oldest first, in the list of one list that Mem0 reads."""
        return [[_memory(row) for row in self._db.select(filters or {}, top_k)]]

    def col_info(self) -> dict[str, Any]:
        """Name, rows, dimension and distance of the collection."""
        return {
            "name": COLLECTION,
            "count": self._db.count({}),
            "dimension": self._dimension,
            "distance": "cosine",
        }

    def delete_col(self) -> None:
        """Remove every row of every scope."""
        self._db.delete({})

    def reset(self) -> None:
        """Remove every row; the collection stands again, empty."""
        self.delete_col()

    def _blob(self, vector: Embedding) -> bytes:
        return unit(vector, self._dimension).tobytes()


def _memory(row: Row, score: float | None = None) -> Memory:
    return Memory(row.id, score, row.payload)


def _ranked(rows: Sequence[tuple[Row, float]]) -> list[Memory]:
    return [_memory(row, score) for row, score in rows]
