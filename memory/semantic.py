"""Semantic memory: facts, written through Mem0 and read from the table that it writes.

Every call is about one scope. A fact of another scope is never read, changed or counted, whoever
knows its id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memory.analysis import terms
from memory.errors import InputError
from memory.memory_index import MemoryIndex
from memory.records import Fact, FactDraft
from memory.scope import Scope
from memory.vectorstore.payload import (
    checked_draft,
    checked_fact,
    fact_filters,
    fact_of,
    identity_of,
    metadata_of,
    scope_filters,
)
from memory.vectorstore.table import MemoryTable, Row, Vector

if TYPE_CHECKING:
    from memory.vectorstore.mem0_adapters import Mem0

_FIXED = ("id", "op", "access_count", "last_access")
"""What update() leaves as it is."""


class SemanticMemory(MemoryIndex):
    """The facts of one installation, and what finds memories. Cheap to make.

    Raises MemoryStoreError where the table cannot be read or written (nothing is then half done),
    or failed so often that it is left alone; InputError for a draft or a change that breaks the
    record's form; ModelError where the embedder gives no vectors.
    """

    async def add(self, scope: Scope, drafts: Sequence[FactDraft]) -> list[Fact]:
        """Write facts, all or none; return them in the drafts' order.

        A draft whose `op` stands already is that fact, returned as it is. So is one that says the
        same, from the same sources, as a fact that stands and holds: its `op` is then known as that
        fact's, too. New texts are embedded in one call.
        """
        checked = [checked_draft(draft) for draft in drafts]
        if not checked:
            return []
        known = await self.by_op(scope, [draft["op"] for draft in checked])
        texts = [draft["text"] for draft in checked if draft["op"] not in known]
        vectors = await self.embed(texts)
        return await self.run(self._write, scope, checked, vectors)

    async def by_op(self, scope: Scope, ops: Sequence[str]) -> dict[str, Fact]:
        """The facts that these operations made, by operation id."""
        return await self.run(lambda: _made(self.open_table(), scope, ops))

    async def get(self, scope: Scope, fact_id: str) -> Fact | None:
        """One fact, or None where this scope has none of that id."""
        rows = await self.run(self._select, scope, {"id": fact_id})
        return fact_of(rows[0]) if rows else None

    async def all(self, scope: Scope) -> list[Fact]:
        """Every fact, superseded ones too, oldest first."""
        return [fact_of(row) for row in await self.run(self._select, scope, {})]

    async def count(self, scope: Scope) -> int:
        """How many facts there are, superseded ones too."""
        return await self.run(lambda: self.open_table().count(fact_filters(scope)))

    async def search(
        self, scope: Scope, query: str, limit: int, *, include_superseded: bool = False
    ) -> list[tuple[Fact, float]]:
        """The `limit` facts nearest in meaning, nearest first, with cosine (-1..1)."""
        vector = await self.embed_query(query)
        if vector is None:
            return []
        filters = fact_filters(scope, include_superseded=include_superseded)
        rows = await self.run(lambda: self.open_table().nearest(vector, filters, limit))
        return [(fact_of(row), score) for row, score in rows]

    async def near(self, scope: Scope, vector: Vector, limit: int) -> list[tuple[Fact, float]]:
        """The `limit` facts that hold nearest to `vector`, nearest first, with cosine (-1..1)."""
        filters = fact_filters(scope, include_superseded=False)
        rows = await self.run(lambda: self.open_table().nearest(vector, filters, limit))
        return [(fact_of(row), score) for row, score in rows]

    async def vector_of(self, scope: Scope, fact_id: str) -> Vector | None:
        """The vector of a fact, None where it has none of the embedder in use, or is not there."""
        if not await self.run(self._select, scope, {"id": fact_id}):
            return None
        return await self.run(lambda: self.open_table().vector(fact_id))

    async def vectors_of(self, texts: Sequence[str]) -> dict[str, Vector]:
        """The vectors that facts of these texts would have, each embedded once, in one call."""
        return await self.embed(texts)

    async def keywords(
        self, scope: Scope, query: str, limit: int, *, include_superseded: bool = False
    ) -> list[tuple[Fact, float]]:
        """At most `limit` facts that share words with `query`, best first, with BM25 (> 0)."""
        filters = fact_filters(scope, include_superseded=include_superseded)
        rows = await self.run(lambda: self.open_table().keywords(terms(query), filters, limit))
        return [(fact_of(row), score) for row, score in rows]

    async def update(self, scope: Scope, fact_id: str, changes: Mapping[str, Any]) -> Fact:
        """Change fields of one fact; return it as it stands then.

        `id`, `op` and the counts of its accesses are fixed.
        """
        for name in changes:
            if name not in Fact.__annotations__ or name in _FIXED:
                raise InputError(f"a fact has no field {name!r} that can be changed")
        vectors = await self.embed([changes["text"]] if "text" in changes else [])
        return await self.run(self._change, scope, fact_id, changes, vectors)

    async def delete(self, scope: Scope, fact_id: str) -> None:
        """Remove one fact, and its text from Mem0's history. InputError if there is none."""
        await self.run(self._remove, scope, fact_id)

    def _select(self, scope: Scope, filters: Mapping[str, object]) -> list[Row]:
        return self.open_table().select({**fact_filters(scope), **filters})

    def _write(
        self, scope: Scope, drafts: Sequence[FactDraft], vectors: Mapping[str, Vector]
    ) -> list[Fact]:
        ops = [draft["op"] for draft in drafts]
        with self.writing() as mem0, mem0.embedder.ready(vectors):
            # Looked up again: another process may have written while texts were embedded.
            known = set(_made(mem0.table, scope, ops))
            for draft in drafts:
                if draft["op"] not in known:
                    known.add(draft["op"])
                    _write_one(mem0, scope, draft)
            facts = _made(mem0.table, scope, ops)
        return [facts[op] for op in ops]

    def _change(
        self,
        scope: Scope,
        fact_id: str,
        changes: Mapping[str, Any],
        vectors: Mapping[str, Vector],
    ) -> Fact:
        with self.writing() as mem0:
            old = _existing(mem0.table, scope, fact_id)
            new = checked_fact({**old, **changes})
            # Mem0 embeds at every update; where the text stays, so does its vector, if it has one.
            kept = {old["text"]: mem0.table.vector(fact_id)}
            with mem0.embedder.ready({**kept, **vectors}):
                mem0.memory.update(fact_id, text=new["text"], metadata=metadata_of(new))
        return new

    def _remove(self, scope: Scope, fact_id: str) -> None:
        with self.writing() as mem0:
            _existing(mem0.table, scope, fact_id)
            mem0.delete(fact_id)


def _write_one(mem0: Mem0, scope: Scope, draft: FactDraft) -> None:
    """Write a fact, unless the same one stands and holds."""
    filters = {**fact_filters(scope, include_superseded=False), "identity": identity_of(draft)}
    same = mem0.table.select(filters, 1)
    if same:
        mem0.table.alias(same[0].id, draft["op"])
    else:
        mem0.add(draft["text"], scope_filters(scope), metadata_of(draft))


def _made(table: MemoryTable, scope: Scope, ops: Sequence[str]) -> dict[str, Fact]:
    rows = table.made(fact_filters(scope), ops)
    return {op: fact_of(row) for op, row in rows.items()}


def _existing(table: MemoryTable, scope: Scope, fact_id: str) -> Fact:
    rows = table.select({**fact_filters(scope), "id": fact_id})
    if not rows:
        raise InputError(f"there is no fact {fact_id!r} in this memory")
    return fact_of(rows[0])
