"""Semantic memory: facts, written through Mem0 and read from the table that it writes.

Every call is about one scope. A fact of another scope is never read, changed or counted, whoever
knows its id.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel

from memory.breaker import Breaker, Breakers, guarded
from memory.errors import CircuitOpen, InputError, MemoryStoreError
from memory.models.embed import embed_query, embed_texts
from memory.records import Fact, FactDraft
from memory.scope import Scope
from memory.vectorstore.payload import (
    checked_draft,
    checked_fact,
    fact_of,
    metadata_of,
    recall_filters,
    scope_filters,
)
from memory.vectorstore.sqlite import FactsDb, Row

if TYPE_CHECKING:
    from memory.vectorstore.faiss_index import FactsIndex
    from memory.vectorstore.mem0_adapters import Mem0

Params = ParamSpec("Params")
Result = TypeVar("Result")

_FIXED = ("id", "op")
"""What update() leaves as it is."""


class SemanticMemory:
    """The facts of one data folder. Cheap to make: it opens its files when first used.

    Raises MemoryStoreError where a file cannot be read or written (nothing is then half done), or
    failed so often that it is left alone; InputError for a draft or a change that breaks the
    record's form; ModelError where the embedder gives no vectors.
    """

    breakers: Breakers | None = None
    """Those of the data folder, set by whoever opens it."""

    def __init__(
        self,
        path: Path,
        *,
        mem0_dir: Path,
        dimension: int,
        embeddings: Callable[[], Embeddings],
        chat_model: BaseChatModel | None = None,
    ) -> None:
        """Keep facts in the file `path`, and Mem0's own files in `mem0_dir`.

        `embeddings` is called once, when a text must be embedded; its vectors have `dimension`
        numbers. Mem0 needs no `chat_model` here: facts are written as they are given.
        """
        self._path, self._mem0_dir, self._dimension = path, mem0_dir, dimension
        self._load_embeddings, self._chat_model = embeddings, chat_model
        self._opening = threading.RLock()
        self._embeddings: Embeddings | None = None
        self._db: FactsDb | None = None
        self._index: FactsIndex | None = None
        self._mem0: Mem0 | None = None

    async def add(self, scope: Scope, drafts: Sequence[FactDraft]) -> list[Fact]:
        """Write facts, all or none; return them in the drafts' order.

        A draft whose `op` stands already is that fact, returned as it is. New texts are embedded
        in one call.
        """
        checked = [checked_draft(draft) for draft in drafts]
        if not checked:
            return []
        known = await self.by_op(scope, [draft["op"] for draft in checked])
        texts = [draft["text"] for draft in checked if draft["op"] not in known]
        vectors = await self._embed(texts)
        return await self._run(self._write, scope, checked, vectors)

    async def by_op(self, scope: Scope, ops: Sequence[str]) -> dict[str, Fact]:
        """The facts that these operations made, by operation id."""
        rows = await self._run(self._select, scope, {"op": list(ops)})
        return {row.payload["op"]: fact_of(row) for row in rows}

    async def get(self, scope: Scope, fact_id: str) -> Fact | None:
        """One fact, or None where this scope has none of that id."""
        rows = await self._run(self._select, scope, {"id": fact_id})
        return fact_of(rows[0]) if rows else None

    async def all(self, scope: Scope) -> list[Fact]:
        """Every fact, superseded ones too, oldest first."""
        return [fact_of(row) for row in await self._run(self._select, scope, {})]

    async def count(self, scope: Scope) -> int:
        """How many facts there are, superseded ones too."""
        return await self._run(lambda: self._open_db().count(scope_filters(scope)))

    async def search(
        self, scope: Scope, query: str, limit: int, *, include_superseded: bool = False
    ) -> list[tuple[Fact, float]]:
        """The `limit` facts nearest in meaning, nearest first, with cosine (-1..1)."""
        embeddings = await asyncio.to_thread(self._open_embeddings)
        vector = await embed_query(embeddings, query, breaker=self._embedder_breaker)
        filters = recall_filters(scope, include_superseded)
        rows = await self._run(lambda: self._open_index().search(vector, filters, limit))
        return [(fact_of(row), score) for row, score in rows]

    async def keywords(
        self, scope: Scope, query: str, limit: int, *, include_superseded: bool = False
    ) -> list[tuple[Fact, float]]:
        """At most `limit` facts that share words with `query`, best first, with BM25 (> 0)."""
        filters = recall_filters(scope, include_superseded)
        rows = await self._run(lambda: self._open_db().keywords(query, filters, limit))
        return [(fact_of(row), score) for row, score in rows]

    async def update(self, scope: Scope, fact_id: str, changes: Mapping[str, Any]) -> Fact:
        """Change fields of one fact; return it as it stands then. `id` and `op` are fixed."""
        for name in changes:
            if name not in Fact.__annotations__ or name in _FIXED:
                raise InputError(f"a fact has no field {name!r} that can be changed")
        vectors = await self._embed([changes["text"]] if "text" in changes else [])
        return await self._run(self._change, scope, fact_id, changes, vectors)

    async def delete(self, scope: Scope, fact_id: str) -> None:
        """Remove one fact, and its text from Mem0's history. InputError if there is none."""
        await self._run(self._remove, scope, fact_id)

    def close(self) -> None:
        """Close the files, once a write in hand is done; a later call opens them again."""
        with self._opening:
            mem0, db = self._mem0, self._db
            self._mem0 = self._index = self._db = None
        # Outside of the lock: nobody waits for it who only wants to open the files again.
        if db is not None:
            db.close()
        if mem0 is not None:
            mem0.history.close()

    async def _run(
        self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
    ) -> Result:
        """Do blocking work in a thread; what goes wrong with a file is a MemoryStoreError."""

        async def send() -> Result:
            try:
                return await asyncio.to_thread(work, *args, **kwargs)
            except (sqlite3.Error, OSError) as error:
                raise MemoryStoreError(f"semantic memory at {self._path}: {error}") from error

        breaker = self.breakers.memory if self.breakers else None
        try:
            return await guarded(breaker, send, failure=MemoryStoreError)
        except CircuitOpen as error:
            raise MemoryStoreError(str(error)) from error

    @property
    def _embedder_breaker(self) -> Breaker | None:
        return self.breakers.embedder if self.breakers else None

    async def _embed(self, texts: Sequence[str]) -> dict[str, list[float]]:
        """The vectors of `texts`, each embedded once, all in one call."""
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return {}
        embeddings = await asyncio.to_thread(self._open_embeddings)
        vectors = await embed_texts(embeddings, distinct, breaker=self._embedder_breaker)
        return dict(zip(distinct, vectors, strict=True))

    def _select(self, scope: Scope, filters: Mapping[str, object]) -> list[Row]:
        return _rows(self._open_db(), scope, filters)

    def _write(
        self, scope: Scope, drafts: Sequence[FactDraft], vectors: Mapping[str, list[float]]
    ) -> list[Fact]:
        ops = {"op": [draft["op"] for draft in drafts]}
        with self._writing() as mem0, mem0.embedder.ready(vectors):
            # Looked up again: another process may have written while texts were embedded.
            standing = {row.payload["op"] for row in _rows(mem0.db, scope, ops)}
            for draft in drafts:
                if draft["op"] not in standing:
                    standing.add(draft["op"])
                    mem0.add(draft["text"], scope_filters(scope), metadata_of(draft))
            facts = {row.payload["op"]: fact_of(row) for row in _rows(mem0.db, scope, ops)}
        return [facts[draft["op"]] for draft in drafts]

    def _change(
        self,
        scope: Scope,
        fact_id: str,
        changes: Mapping[str, Any],
        vectors: Mapping[str, list[float]],
    ) -> Fact:
        with self._writing() as mem0:
            old = _existing(mem0.db, scope, fact_id)
            new = checked_fact({**old, **changes})
            # Mem0 embeds at every update; where the text stays, so does its vector.
            kept = {old["text"]: mem0.stored_vector(fact_id)}
            with mem0.embedder.ready({**kept, **vectors}):
                mem0.memory.update(fact_id, text=new["text"], metadata=metadata_of(new))
        return new

    def _remove(self, scope: Scope, fact_id: str) -> None:
        with self._writing() as mem0:
            _existing(mem0.db, scope, fact_id)
            mem0.delete(fact_id)

    @contextmanager
    def _writing(self) -> Iterator[Mem0]:
        mem0 = self._open_mem0()
        with mem0.writing():
            yield mem0

    def _open_db(self) -> FactsDb:
        with self._opening:
            if self._db is None:
                self._db = FactsDb(self._path)
            return self._db

    def _open_index(self) -> FactsIndex:
        from memory.vectorstore.faiss_index import FactsIndex

        with self._opening:
            if self._index is None:
                self._index = FactsIndex(self._open_db(), self._dimension)
            return self._index

    def _open_embeddings(self) -> Embeddings:
        with self._opening:
            if self._embeddings is None:
                self._embeddings = self._load_embeddings()
            return self._embeddings

    def _open_mem0(self) -> Mem0:
        """Mem0 is slow to import (a second), so only a write does it."""
        with self._opening:
            if self._mem0 is None:
                settle_mem0(self._mem0_dir)
                from memory.vectorstore.mem0_adapters import open_mem0

                self._mem0 = open_mem0(
                    self._open_db(),
                    self._open_index(),
                    embeddings=self._open_embeddings(),
                    dimension=self._dimension,
                    folder=self._mem0_dir,
                    chat_model=self._chat_model,
                )
            return self._mem0


def _rows(db: FactsDb, scope: Scope, filters: Mapping[str, object]) -> list[Row]:
    return db.select({**scope_filters(scope), **filters})


def _existing(db: FactsDb, scope: Scope, fact_id: str) -> Fact:
    rows = _rows(db, scope, {"id": fact_id})
    if not rows:
        raise InputError(f"there is no fact {fact_id!r} in this memory")
    return fact_of(rows[0])


def settle_mem0(folder: Path) -> None:
    """Mem0 reads these once, when imported: no telemetry, and no file of its own in the home."""
    if "mem0" not in sys.modules:
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ["MEM0_DIR"] = str(folder)
