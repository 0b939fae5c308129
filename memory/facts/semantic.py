"""Semantic memory: facts written through Mem0, and the index by which recall finds memories.

Facts and journal entries stand in one table (`memory.facts.table`). Facts live only there;
the journal lives in the store, and its entries have a row here so that one search finds both.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired, ParamSpec, TypeVar
from uuid import uuid5

import numpy as np
from langchain_core.embeddings import Embeddings
from typing_extensions import TypedDict

from memory.errors import CircuitOpen, InputError, MemoryStoreError
from memory.facts.table import (
    Counted,
    Kind,
    Listing,
    MemoryTable,
    Row,
    SessionPlace,
    Vector,
    Waiting,
    checked_draft,
    checked_fact,
    embedded_text,
    fact_filters,
    fact_of,
    identity_of,
    metadata_of,
    scope_filters,
    unit,
)
from memory.models import Breaker, Breakers, embed_query, embed_texts, guarded
from memory.records import AGENTS, Fact, FactDraft, Scope
from memory.text import terms

if TYPE_CHECKING:
    from memory.facts.mem0 import Mem0

Params = ParamSpec("Params")

Result = TypeVar("Result")

Scored = list[tuple[Row, float]]

EMBEDDED_CHARS = 4_000
"""Characters of a text that are embedded: an embedder refuses a longer one every time."""

MOST_EMBEDDED = 128
"""Most agents that are remembered as having no row waiting."""

_FIXED = ("id", "op", "access_count", "last_access")
"""Fields of a fact that `update` never changes."""


class Matches(NamedTuple):
    """The results of two lookups, each best first within a kind; a row may be in both."""

    near: Scored
    """By meaning, with cosine (-1..1)."""
    worded: Scored
    """By words, with BM25 (> 0)."""
    known: Counted
    """How common the words are."""


class Episode(TypedDict):
    """A journal entry as recall finds it."""

    kind: str
    """`episode`."""
    op: str
    """The journal entry's id."""
    data: str
    """The text."""
    speaker: str | None
    entities: list[str]
    trust: float
    importance: int
    valid_from: str
    """The entry's timestamp."""
    source_entries: list[str]
    source_events: list[str]
    session: str
    origins: NotRequired[list[str]]
    """People other than owners on whose words it rests."""
    minor: NotRequired[bool]
    """A night scored it below `min_importance`."""
    faded: NotRequired[bool]
    """Old and of little importance."""
    embed: NotRequired[str]
    """The text to embed, where it is not `data`."""
    terms: NotRequired[list[str]]
    """The index terms, if they differ from the terms of `data`."""


class SemanticMemory:
    """The memories of one installation. Cheap to make: everything opens when it is first used.

    Every call is about one scope. A row of another scope is never read, changed or counted, even by
    its id. Raises MemoryStoreError where the table fails or its breaker is open, InputError for a
    record of a wrong form, ModelError where the embedder gives no vectors.
    """

    breakers: Breakers | None = None
    """The installation's, set at its opening."""

    def __init__(
        self,
        open_table: Callable[[], MemoryTable],
        *,
        mem0_dir: Path,
        dimension: int,
        embeddings: Callable[[], Embeddings],
    ) -> None:
        """`open_table` is called again after `close`, `embeddings` once, when first needed."""
        self._load_table, self._mem0_dir, self._dimension = open_table, mem0_dir, dimension
        self._load_embeddings = embeddings
        self._opening = threading.RLock()
        self._embeddings: Embeddings | None = None
        self._table: MemoryTable | None = None
        self._mem0: Mem0 | None = None
        self.all_embedded: set[Scope] = set()
        """Agents of whom no row waits for its vector, so that a run need not look.

        What another process adds shows with the next row that is written.
        """

    # Facts.

    async def add(self, scope: Scope, drafts: Sequence[FactDraft]) -> list[Fact]:
        """Write facts, all or none; return them in the drafts' order.

        A draft whose `op` already made a fact returns that fact. A draft that repeats the text and
        sources of a fact which holds returns that fact, too, and its `op` is kept as an alias.
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
        """The scope's fact with this id, or None."""
        return (await self.by_id(scope, [fact_id])).get(fact_id)

    async def by_id(self, scope: Scope, ids: Sequence[str]) -> dict[str, Fact]:
        """The scope's facts with these ids, by id."""
        rows = await self.run(self.facts, scope, ids) if ids else []
        return {row.id: fact_of(row) for row in rows}

    async def all(self, scope: Scope) -> list[Fact]:
        """Every fact, superseded ones included, oldest first."""
        filters = fact_filters(scope)
        rows = await self.run(lambda: self.open_table().select(filters))
        return [fact_of(row) for row in rows]

    async def listed(self, scope: Scope, wanted: Listing) -> tuple[list[Row], int]:
        """A page of a list of the scope's rows, of all kinds, and how many there are on all."""
        mine = wanted._replace(filters={**wanted.filters, **scope_filters(scope)})
        return await self.run(lambda: self.open_table().listed(mine))

    async def facts_listed(self, scope: Scope, wanted: Listing) -> list[Fact]:
        """The facts on a page of a list, superseded ones included unless it filters them out."""
        mine = wanted._replace(filters={**wanted.filters, "kind": "fact"})
        return [fact_of(row) for row in (await self.listed(scope, mine))[0]]

    async def count(self, scope: Scope, *, include_superseded: bool = True) -> int:
        """The number of facts: all, or those that hold."""
        filters = fact_filters(scope, include_superseded=include_superseded)
        return await self.run(lambda: self.open_table().count(filters))

    async def near(
        self, scope: Scope, vectors: Sequence[Vector], limit: int
    ) -> list[list[tuple[Fact, float]]]:
        """For each vector the `limit` nearest facts that hold, nearest first, with cosine."""
        filters = fact_filters(scope, include_superseded=False)
        found = await self.run(lambda: self.open_table().nearest(vectors, filters, limit))
        return [[(fact_of(row), score) for row, score in rows] for rows in found]

    async def keywords(
        self, scope: Scope, query: str, limit: int, *, include_superseded: bool = False
    ) -> list[tuple[Fact, float]]:
        """At most `limit` facts that share words with `query`, best first, with BM25 (> 0)."""
        filters = fact_filters(scope, include_superseded=include_superseded)
        rows = await self.run(lambda: self.open_table().keywords(terms(query), filters, limit))
        return [(fact_of(row), score) for row, score in rows]

    async def vector_of(self, scope: Scope, fact_id: str) -> Vector | None:
        """A fact's vector; None without a fact, or without a vector of the embedder in use."""
        return await self.run(
            lambda: self.open_table().vector(fact_id) if self.facts(scope, [fact_id]) else None
        )

    async def update(self, scope: Scope, fact_id: str, changes: Mapping[str, Any]) -> Fact:
        """Change fields of one fact, but not id, op and access counts; return the fact."""
        for name in changes:
            if name not in Fact.__annotations__ or name in _FIXED:
                raise InputError(f"a fact has no field {name!r} that can be changed")
        vectors = await self.embed([changes["text"]] if "text" in changes else [])
        return await self.run(self._change, scope, fact_id, changes, vectors)

    async def delete(self, scope: Scope, fact_id: str) -> None:
        """Remove one fact. InputError if there is none."""
        await self.run(self._remove, scope, fact_id)

    # The index: facts and journal entries together.

    async def put_episodes(
        self, scope: Scope, rows: Sequence[Episode], vectors: Mapping[str, Vector] | None = None
    ) -> None:
        """Index journal entries, all or none: found by words at once, by meaning once embedded.

        A standing episode is updated, and keeps its vector while its text to embed is the same.
        A new one may have its vector in `vectors`, by the text, from `embed`.
        """
        await self.run(self._put_episodes, scope, rows, vectors or {})

    async def drop_episodes(self, scope: Scope, ids: Sequence[str]) -> int:
        """Remove the episodes with these entry ids; return how many there were."""
        filters = {**scope_filters(scope), "kind": "episode", "op": list(ids)}
        return await self.run(lambda: self.open_table().delete(filters))

    async def file_number(self) -> int:
        """The number of the index's file, which tells it from another in its place; or 0."""
        table = self._table
        if table is not None:
            return table.file_number
        return await self.run(lambda: self.open_table().file_number)

    async def touch(self, scope: Scope, ids: Sequence[str], at: datetime) -> None:
        """Count an access of each of the scope's rows with these ids."""
        table, filters = self.open_table, {**scope_filters(scope), "id": list(ids)}
        await self.run(lambda: table().touch([row.id for row in table().select(filters)], at))

    async def embed_waiting(self, limit: int, scope: Scope | None = None) -> int:
        """Embed the newest `limit` rows that wait, of one scope or all; return how many."""
        if scope in self.all_embedded:
            return 0
        rows = await self.run(self._waiting, limit, scope)
        if rows:
            vectors = await self.embed([row.text for row in rows])
            await self.run(self._keep_vectors, rows, vectors, scope)
        return len(rows)

    def _waiting(self, limit: int, scope: Scope | None) -> list[Waiting]:
        """The newest rows that wait. Whether a scope has any is kept. Blocking."""
        table = self.open_table()
        with table.lock:  # else a row that is written meanwhile would count as embedded
            rows = table.unembedded(scope_filters(scope) if scope else {}, limit)
            if scope and rows:
                self.all_embedded.discard(scope)
            elif scope:
                if len(self.all_embedded) == MOST_EMBEDDED:
                    self.all_embedded.clear()
                self.all_embedded.add(scope)
        return rows

    async def count_unembedded(self, scope: Scope | None = None) -> int:
        """The number of rows without a vector of the embedder in use; of one scope, or of all."""
        filters = scope_filters(scope) if scope else {}
        return await self.run(lambda: self.open_table().count_unembedded(filters))

    async def scrub(self) -> None:
        """Remove the text of deleted and changed rows from the disk. Slow."""
        await self.run(lambda: self.open_table().scrub())
        # Mem0 kept a history in earlier states of this version: it has texts.
        await self.run(lambda: [*map(Path.unlink, self._mem0_dir.glob("history.db*"))])

    # Embedding.

    async def embed_query(self, text: str) -> Vector | None:
        """The vector of a query, of length 1; None where the embedder gives a zero vector."""
        embeddings = await self._embedder()
        given = await embed_query(embeddings, text[:EMBEDDED_CHARS], breaker=self._embedder_breaker)
        vector = unit(given, self._dimension)
        return vector if vector.any() else None

    async def embed(self, texts: Sequence[str]) -> dict[str, Vector]:
        """The vectors of `texts`, each embedded once, all in one call. A blank text gets zeros."""
        distinct = list(dict.fromkeys(text for text in texts if text.strip()))
        vectors = {text: np.zeros(self._dimension, dtype=np.float32) for text in texts}
        if distinct:
            embeddings = await self._embedder()
            cut = [text[:EMBEDDED_CHARS] for text in distinct]
            given = await embed_texts(embeddings, cut, breaker=self._embedder_breaker)
            pairs = zip(distinct, given, strict=True)
            vectors |= {text: unit(vector, self._dimension) for text, vector in pairs}
        return vectors

    async def _embedder(self) -> Embeddings:
        """The embedder. Only loading it takes a thread."""
        if self._embeddings is not None:
            return self._embeddings
        return await asyncio.to_thread(self.open_embeddings)

    @property
    def _embedder_breaker(self) -> Breaker | None:
        return self.breakers.embedder if self.breakers else None

    # Opening and closing.

    async def run(
        self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
    ) -> Result:
        """Do blocking work in a thread; an error of a file becomes a MemoryStoreError."""

        async def send() -> Result:
            try:
                return await asyncio.to_thread(work, *args, **kwargs)
            except (sqlite3.Error, OSError) as error:
                raise MemoryStoreError(f"semantic memory: {error}") from error

        breaker = self.breakers.memory if self.breakers else None
        try:
            return await guarded(breaker, send, failure=MemoryStoreError)
        except CircuitOpen as error:
            raise MemoryStoreError(str(error)) from error

    def close(self) -> None:
        """Close the table after any write in progress; a later call opens it again."""
        with self._opening:
            table, self._mem0, self._table = self._table, None, None
            self.all_embedded.clear()
        # Outside of the lock: whoever opens the table again need not wait.
        if table is not None:
            table.close()

    @contextmanager
    def writing(self) -> Iterator[Mem0]:
        """Mem0, with everything written inside in one transaction. Blocking."""
        mem0 = self.open_mem0()
        with mem0.table.lock, mem0.table.transaction():
            yield mem0

    def open_table(self) -> MemoryTable:
        """The table, opened on first use. Blocking."""
        with self._opening:
            if self._table is None:
                self._table = self._load_table()
            return self._table

    def open_embeddings(self) -> Embeddings:
        """The embedder, loaded on first use. Blocking. Raises InputError without its key."""
        with self._opening:
            if self._embeddings is None:
                self._embeddings = self._load_embeddings()
            return self._embeddings

    def open_mem0(self) -> Mem0:
        """Mem0, opened on first use. Blocking: importing it takes a second."""
        with self._opening:
            if self._mem0 is None:
                settle_mem0(self._mem0_dir)
                from memory.facts.mem0 import open_mem0

                self._mem0 = open_mem0(
                    self.open_table(),
                    dimension=self._dimension,
                    folder=self._mem0_dir,
                )
            return self._mem0

    # What recall reads, by `run`. Blocking.

    def lookup(
        self,
        scope: Scope,
        asked: Sequence[tuple[Sequence[str], Vector | None]],
        *,
        kinds: Sequence[Kind],
        limit: int,
        include_superseded: bool,
        min_trust: float | None = None,
    ) -> list[Matches]:
        """For each of `asked`, terms and a vector (from `embed_query`), the best rows by each.

        Of each of these kinds `limit`, and, with `min_trust` (0..1), of at least that trust. Facts
        repeat what entries say: with one limit for both, they would take the room of other entries.
        """
        filters: dict[str, object] = {**scope_filters(scope)}
        if not include_superseded:
            filters["invalid_at"] = None
        if min_trust is not None:
            filters["trust"] = {"gte": min_trust}
        table, vectors = self.open_table(), [one for _, one in asked if one is not None]
        found = [Matches(Scored(), Scored(), Counted(0, {})) for _ in asked]
        for kind in kinds:
            of_kind = {**filters, "kind": kind}
            near = iter(table.nearest(vectors, of_kind, limit))
            for (words, vector), matches in zip(asked, found, strict=True):
                matches.near.extend(next(near) if vector is not None else ())
                matches.worded.extend(table.keywords(words, of_kind, limit))
        counted = (table.counted(words, scope_filters(scope)) for words, _ in asked)
        return [one._replace(known=known) for one, known in zip(found, counted, strict=True)]

    def facts(self, scope: Scope, ids: Collection[str]) -> list[Row]:
        """The rows of the scope's facts with these ids, oldest first."""
        return self.open_table().select({**fact_filters(scope), "id": list(ids)}) if ids else []

    def entries(self, scope: Scope, ids: Collection[str]) -> dict[str, Row]:
        """The rows of these journal entries, by entry id."""
        wanted = {**scope_filters(scope), "kind": "episode", "op": list(ids)}
        rows = self.open_table().select(wanted) if ids else []
        return {row.payload["op"]: row for row in rows}

    def made(self, scope: Scope, ops: Collection[str]) -> list[Row]:
        """The rows of the facts that these operations made."""
        return list(self.open_table().made(fact_filters(scope), list(ops)).values()) if ops else []

    def timeline(self, scope: Scope, sessions: Sequence[str]) -> list[SessionPlace]:
        """The episodes of these sessions, session by session, in the order of their time."""
        return self.open_table().timeline(scope_filters(scope), sessions) if sessions else []

    def beside(self, scope: Scope, rows: Collection[int], aside: int) -> dict[int, Row]:
        """The `aside` episodes before and after each of these in its session, by `seq`."""
        near = self.open_table().beside(scope_filters(scope), rows, aside) if rows else set()
        return self.numbered(scope, near.difference(rows))

    def numbered(self, scope: Scope, seqs: Collection[int]) -> dict[int, Row]:
        """The scope's rows by `seq`; missing ones are left out."""
        ids, rows = scope_filters(scope), self.open_table().numbered(seqs) if seqs else {}
        return {seq: row for seq, row in rows.items() if ids.items() <= row.payload.items()}

    # Blocking work, done in threads.

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
                    _write_fact(mem0, scope, draft)
            facts = _made(mem0.table, scope, ops)
        return [facts[op] for op in ops]

    def _change(
        self, scope: Scope, fact_id: str, changes: Mapping[str, Any], vectors: Mapping[str, Vector]
    ) -> Fact:
        with self.writing() as mem0:
            old = _existing(mem0.table, scope, fact_id)
            new = checked_fact({**old, **changes})
            # Mem0 embeds at every update; an unchanged text keeps the vector that it has, if any.
            kept = {old["text"]: mem0.table.vector(fact_id)}
            with mem0.embedder.ready({**kept, **vectors}):
                mem0.memory.update(fact_id, text=new["text"], metadata=metadata_of(new))
        return new

    def _remove(self, scope: Scope, fact_id: str) -> None:
        with self.writing() as mem0:
            _existing(mem0.table, scope, fact_id)
            mem0.delete(fact_id)

    def _put_episodes(
        self, scope: Scope, rows: Sequence[Episode], vectors: Mapping[str, Vector]
    ) -> None:
        table, ids = self.open_table(), scope_filters(scope)
        with table.transaction():
            wanted = {row_id(scope, row): {**ids, **row} for row in rows}
            standing = {row.id: row.payload for row in table.select({"id": list(wanted)})}
            for id_, payload in wanted.items():
                if id_ not in standing:
                    table.insert(id_, vectors.get(embedded_text(payload)), payload)
                elif "terms" in payload or standing[id_] != payload:
                    # Index terms cannot be read back from the table to be compared.
                    table.update(id_, None, payload)
            self._waiting(1, scope)

    def _keep_vectors(
        self, waiting: Sequence[Waiting], vectors: Mapping[str, Vector], scope: Scope | None
    ) -> None:
        table = self.open_table()
        texts = {row.id: row.text for row in waiting}
        with table.transaction():
            # A text that another process changed meanwhile waits for its own vector.
            rows = table.select({"id": list(texts)})
            kept = [row for row in rows if embedded_text(row.payload) == texts[row.id]]
            table.set_vectors({row.id: vectors[texts[row.id]] for row in kept})
        self._waiting(1, scope)


def row_id(scope: Scope, episode: Episode) -> str:
    """The id of an episode's row. Ids of journal entries are unique only within their scope."""
    return str(uuid5(AGENTS, json.dumps([*scope, episode["kind"], episode["op"]])))


def settle_mem0(folder: Path) -> None:
    """Set what Mem0 reads once, when imported: no telemetry, and its folder outside of the home."""
    if "mem0" not in sys.modules:
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ["MEM0_DIR"] = str(folder)


def _write_fact(mem0: Mem0, scope: Scope, draft: FactDraft) -> None:
    filters = {**fact_filters(scope, include_superseded=False), "identity": identity_of(draft)}
    same = mem0.table.select(filters)
    if same:
        mem0.table.alias(same[0].id, draft["op"])
    else:
        mem0.add(draft["text"], scope_filters(scope), metadata_of(draft))


def _made(table: MemoryTable, scope: Scope, ops: Sequence[str]) -> dict[str, Fact]:
    return {op: fact_of(row) for op, row in table.made(fact_filters(scope), ops).items()}


def _existing(table: MemoryTable, scope: Scope, fact_id: str) -> Fact:
    rows = table.select({**fact_filters(scope), "id": fact_id})
    if not rows:
        raise InputError(f"there is no fact {fact_id!r} in this memory")
    return fact_of(rows[0])
