"""Mem0's vector store over the table of memories. Importing this imports Mem0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mem0.configs.vector_stores.faiss import FAISSConfig
from mem0.vector_stores.base import VectorStoreBase

from memory.analysis import terms
from memory.vectorstore.table import Filters, MemoryTable, Row, Vector
from memory.vectorstore.vectors import unit

COLLECTION = "facts"
"""The one collection. Mem0's own entity collection is not kept."""

KIND = {"kind": "fact"}
"""All that Mem0 sees of the table, and all that it writes there."""

Embedding = Sequence[float] | Vector


class FactsConfig(FAISSConfig):
    """Mem0's FAISS settings, and the open table that the store stands on."""

    table: Any


class Memory(NamedTuple):
    """A row in the shape that Mem0 reads."""

    id: str
    score: float | None
    payload: dict[str, Any]


class FactStore(VectorStoreBase):
    """Durable facts under Mem0's provider name "faiss".

    All of Mem0's filters come before ranking; an unknown one raises ValueError. Scores are cosine
    or BM25: higher is nearer. Rows of other kinds are never given, changed or removed.
    """

    def __init__(self, *, collection_name: str, table: MemoryTable, **settings: Any) -> None:
        if collection_name != COLLECTION:
            raise ValueError(f"there is one collection, {COLLECTION!r}, and no {collection_name!r}")
        self._table = table
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
        with self._table.transaction():
            for fact_id, vector, payload in zip(ids, vectors, payloads, strict=True):
                self._table.insert(fact_id, unit(vector, self._dimension), _kept(payload))

    def search(
        self, query: str, vectors: Embedding, top_k: int = 5, filters: Filters | None = None
    ) -> list[Memory]:
        """The `top_k` nearest of the facts that match, nearest first."""
        vector = unit(vectors, self._dimension)
        return _ranked(self._table.nearest(vector, _facts(filters), top_k))

    def search_batch(
        self,
        queries: Sequence[str],
        vectors_list: Sequence[Embedding],
        top_k: int = 1,
        filters: Filters | None = None,
    ) -> list[list[Memory]]:
        """The same for several queries, as the memory stands at one moment."""
        with self._table.lock:
            return [
                self.search(query, vector, top_k, filters)
                for query, vector in zip(queries, vectors_list, strict=True)
            ]

    def keyword_search(
        self, query: str, top_k: int = 5, filters: Filters | None = None
    ) -> list[Memory]:
        """The facts that match and share words with `query`, best first."""
        return _ranked(self._table.keywords(terms(query), _facts(filters), top_k))

    def update(
        self,
        vector_id: str,
        vector: Embedding | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> None:
        """Replace one fact's vector, payload or both."""
        if self.get(vector_id) is not None:
            given = None if vector is None else unit(vector, self._dimension)
            self._table.update(vector_id, given, None if payload is None else _kept(payload))

    def delete(self, vector_id: str) -> None:
        """Remove one fact."""
        self._table.delete({"id": vector_id, **KIND})

    def get(self, vector_id: str) -> Memory | None:
        """One fact, or None."""
        rows = self._table.select({"id": vector_id, **KIND})
        return _memory(rows[0]) if rows else None

    def list_cols(self) -> list[str]:
        """The one collection."""
        return [COLLECTION]

    def list(self, filters: Filters | None = None, top_k: int | None = None) -> list[list[Memory]]:
        """The facts that match, oldest first, in the list of one list that Mem0 reads."""
        return [[_memory(row) for row in self._table.select(_facts(filters), top_k)]]

    def col_info(self) -> dict[str, Any]:
        """Name, rows, dimension and distance of the collection."""
        return {
            "name": COLLECTION,
            "count": self._table.count(KIND),
            "dimension": self._dimension,
            "distance": "cosine",
        }

    def delete_col(self) -> None:
        """Remove every fact of every scope."""
        self._table.delete(KIND)

    def reset(self) -> None:
        """Remove every fact; the collection stands again, empty."""
        self.delete_col()


def _facts(filters: Filters | None) -> dict[str, object]:
    """`filters` of facts alone, whatever kind they ask for."""
    return {**KIND, "AND": [filters]} if filters else {**KIND}


def _kept(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A fact's payload without what can be made of it again."""
    return {k: v for k, v in payload.items() if k != "text_lemmatized"} | KIND


def _memory(row: Row, score: float | None = None) -> Memory:
    return Memory(row.id, score, row.payload)


def _ranked(rows: Sequence[tuple[Row, float]]) -> list[Memory]:
    return [_memory(row, score) for row, score in rows]
