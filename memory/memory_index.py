"""Finding memories: facts and the journal's entries in one table, and what is yet to be embedded.

The journal's entries stand in the store; here they are only to be found.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, NotRequired
from uuid import uuid5

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from memory.errors import InputError
from memory.opened_memory import OpenedMemory
from memory.scope import AGENTS, Scope
from memory.vectorstore.payload import embedded_text, scope_filters
from memory.vectorstore.table import Filters, Kind, Place, Row, Vector, Waiting

Scored = list[tuple[Row, float]]


class Found(NamedTuple):
    """What two lookups found, each best first; a row may be in both."""

    near: Scored
    """By meaning, with cosine (-1..1)."""
    worded: Scored
    """By words, with BM25 (> 0)."""


class Episode(TypedDict):
    """A journal entry, or a window of neighbouring ones, as it is to be found."""

    kind: str
    """`episode` or `window`."""
    op: str
    """The journal entry's id; a window's own."""
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
    embed: NotRequired[str]
    """What is embedded instead of the text."""
    terms: NotRequired[list[str]]
    """The words that it is found by, instead of those of the text."""


_EPISODES = TypeAdapter(list[Episode])


class MemoryIndex(OpenedMemory):
    """Lookups in one scope. Rows of another scope are never given, changed or counted."""

    async def lookup(
        self,
        scope: Scope,
        *,
        terms: Sequence[str],
        vector: Vector | None,
        kinds: Sequence[Kind],
        limit: int,
        include_superseded: bool,
        min_trust: float | None = None,
    ) -> Found:
        """The `limit` nearest to `vector` (as `embed_query` gives it) and best by `terms`.

        Of these kinds; with `min_trust` (0..1) only what has a source of at least that trust.
        """
        filters: dict[str, object] = {**scope_filters(scope), "kind": list(kinds)}
        if not include_superseded:
            filters["invalid_at"] = None
        if min_trust is not None:
            filters["trust"] = {"gte": min_trust}
        return await self.run(self._find, terms, vector, filters, limit)

    def _find(
        self, terms: Sequence[str], vector: Vector | None, filters: Filters, limit: int
    ) -> Found:
        table = self.open_table()
        near = [] if vector is None else table.nearest(vector, filters, limit)
        return Found(near, table.keywords(terms, filters, limit))

    async def timeline(self, scope: Scope, sessions: Sequence[str]) -> list[Place]:
        """The episodes of these sessions, session by session, in the order of their time."""
        filters = scope_filters(scope)
        return await self.run(lambda: self.open_table().timeline(filters, sessions))

    async def numbered(self, scope: Scope, seqs: Iterable[int]) -> dict[int, Row]:
        """Rows by `seq`; those that are gone, or another scope's, are left out."""
        wanted, ids = list(seqs), scope_filters(scope)
        rows = await self.run(lambda: self.open_table().numbered(wanted))
        return {seq: row for seq, row in rows.items() if ids.items() <= row.payload.items()}

    async def put_episodes(self, scope: Scope, rows: Sequence[Episode]) -> None:
        """Let these be found as they are given, by words at once and by meaning once embedded.

        All or none. One that stands already under its `op` is changed where it differs; its vector
        stays for as long as what is embedded does.
        """
        try:
            checked = _EPISODES.validate_python(list(rows), strict=True)
            json.dumps(checked, ensure_ascii=False, allow_nan=False).encode()
        except ValueError as error:
            raise InputError(f"not an episode: {error}") from error
        await self.run(self._put_episodes, scope, checked)

    def _put_episodes(self, scope: Scope, rows: Sequence[Episode]) -> None:
        table, ids = self.open_table(), scope_filters(scope)
        with table.transaction():
            wanted = {row_id(scope, row): {**ids, **row} for row in rows}
            standing = {row.id: row.payload for row in table.select({"id": list(wanted)})}
            for one, payload in wanted.items():
                if one not in standing:
                    table.insert(one, None, payload)
                elif "terms" in payload or standing[one] != payload:
                    # The terms that it is found by are not read back: they may be others.
                    table.update(one, None, payload)

    async def drop_episodes(self, scope: Scope, ids: Sequence[str]) -> int:
        """Remove the episodes and windows that were put under these ids (`op`); how many."""
        kinds = ["episode", "window"]
        filters = {**scope_filters(scope), "kind": kinds, "op": list(ids)}
        return await self.run(lambda: self.open_table().delete(filters))

    async def touch(self, scope: Scope, ids: Sequence[str], at: datetime) -> None:
        """Count an access of each of these rows (`Row.id`, a fact's id) that is the scope's."""
        await self.run(self._touch, {**scope_filters(scope), "id": list(ids)}, at)

    def _touch(self, filters: Filters, at: datetime) -> None:
        table = self.open_table()
        table.touch([row.id for row in table.select(filters)], at)

    async def embed_waiting(self, limit: int, scope: Scope | None = None) -> int:
        """Embed what has no vector of the embedder in use, the newest `limit` rows; how many.

        In one call and one write; of one scope, or of all. None is left where it gives 0.
        """
        filters = scope_filters(scope) if scope else {}
        waiting = await self.run(lambda: self.open_table().unembedded(filters, limit))
        vectors = await self.embed([one.text for one in waiting])
        if waiting:
            await self.run(self._keep_vectors, waiting, vectors)
        return len(waiting)

    def _keep_vectors(self, waiting: Sequence[Waiting], vectors: Mapping[str, Vector]) -> None:
        table = self.open_table()
        texts = {one.id: one.text for one in waiting}
        with table.transaction():
            # Another process may have changed a text meanwhile: it waits for its own vector.
            rows = table.select({"id": list(texts)})
            kept = [row for row in rows if embedded_text(row.payload) == texts[row.id]]
            table.set_vectors({row.id: vectors[texts[row.id]] for row in kept})

    async def count_unembedded(self, scope: Scope | None = None) -> int:
        """How many rows have no vector of the embedder in use; of one scope, or of all."""
        filters = scope_filters(scope) if scope else {}
        return await self.run(lambda: self.open_table().count_unembedded(filters))

    async def scrub(self) -> None:
        """Leave on the disk nothing of the text of what was deleted or changed. Slow."""
        await self.run(self._scrub)

    def _scrub(self) -> None:
        self.open_table().scrub()
        self.open_mem0().history.scrub()


def row_id(scope: Scope, episode: Episode) -> str:
    """The id of an episode's row: ids of journal entries are unique in their scope alone."""
    return str(uuid5(AGENTS, json.dumps([*scope, episode["kind"], episode["op"]])))
