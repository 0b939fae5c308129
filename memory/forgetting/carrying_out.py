"""Carrying out a forget: what a second attempt needs after a crash, the facts, and the disk.

Store namespace (below `(user, thread)`): `forgetting` "open" -> Begun, from before the first change
until the store is changed; "residue" -> {at}, from then until free pages and logs are clean.
Neither is there once a forget has ended.

A deleted row stays in an SQLite file and in its write-ahead log until it is overwritten, and old
versions of a row stay in PostgreSQL until a vacuum. `clean` removes both. Log archives and backups
are the operator's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, NotRequired, cast

from langchain_core.utils.iter import batch_iterate
from langgraph.store.base import BaseStore, PutOp
from typing_extensions import TypedDict

from memory.errors import MemoryStoreError
from memory.facts import SemanticMemory, scope_filters
from memory.forgetting.erasure import Erasure, fact_after
from memory.records import Fact, Scope
from memory.storage import write_batch
from memory.storage.sqlite import OpenedFile

FORGETTING, OPEN, RESIDUE = "forgetting", "open", "residue"


class Begun(TypedDict):
    """Whom or what to forget, and what a second look would not find once facts and state are
    changed.
    """

    entity: str
    """A name as it was given, or the id of a fact or an entry."""
    kind: NotRequired[Literal["entity", "fact", "entry"]]
    said: NotRequired[list[str]]
    """The sentences of a statement."""
    events: list[str]
    """Ids of erased events that are not in the journal."""
    memories: list[str]
    """Ids of erased entries and facts, and the facts' operation ids."""
    informed: list[int | None]
    """Ticks of the conversation whose tools returned an erased memory."""
    counts: NotRequired[dict[str, int]]
    """How much was to go, by kind, for the log."""


async def begun(store: BaseStore, scope: Scope) -> Begun | None:
    """The forget that was interrupted before the store was changed, if any."""
    item = await store.aget(scope.namespace(FORGETTING), OPEN)
    return cast(Begun, item.value) if item else None


async def begin(store: BaseStore, scope: Scope, what: Begun, also: Sequence[PutOp]) -> None:
    """Record a forget before anything is changed; `also`: writes of the same transaction."""
    put = PutOp(scope.namespace(FORGETTING), OPEN, cast(dict[str, Any], dict(what)))
    await write_batch(store, [put, *also])


def changed_puts(scope: Scope, at: str) -> list[PutOp]:
    """Writes for the transaction that changes the store: only the files are left to clean."""
    here = scope.namespace(FORGETTING)
    return [PutOp(here, OPEN, None), PutOp(here, RESIDUE, {"at": at})]


async def has_residue(store: BaseStore, scope: Scope) -> bool:
    """Whether a forget was interrupted before the files were clean."""
    return await store.aget(scope.namespace(FORGETTING), RESIDUE) is not None


async def unfinished(store: BaseStore, scope: Scope) -> str | None:
    """How to finish an interrupted forget; None if there is none."""
    if (earlier := await begun(store, scope)) is not None:
        kind = earlier.get("kind", "entity")
        what = repr(earlier["entity"]) if kind == "entity" else f"--{kind} {earlier['entity']}"
        return f"a forget was broken off: `circadian forget {what} --yes` ends it"
    if await has_residue(store, scope):
        return "a forget was broken off before its bytes were gone: forget again to clean the files"
    return None


async def ended(store: BaseStore, scope: Scope) -> None:
    """Record that the files are clean."""
    await store.adelete(scope.namespace(FORGETTING), RESIDUE)


SAVER_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "circadian_chunks")

STORE_TABLES = ("store", "memory_history")

MEMORY_TABLES = ("memories", "memory_terms", "memory_aliases")
"""Semantic memory rewrites these itself; only their statistics are cleared here."""

_CLEARS_STATISTICS = 180_000
"""First version of PostgreSQL in which a table's owner can clear its statistics."""


async def clean(part: Any, tables: tuple[str, ...]) -> None:
    """Rewrite the file or, in PostgreSQL, the `tables` of a saver or a store.

    Raises:
        MemoryStoreError: another process is reading the file.
    """
    if hasattr(part, "file"):
        await _vacuum_file(part.file)
    elif hasattr(part, "pool"):
        await _vacuum_tables(part.pool, tables)


async def _vacuum_file(file: OpenedFile) -> None:
    try:
        await file.rows("PRAGMA secure_delete = ON")
        await file.rows("VACUUM")
        (row,) = await file.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    except MemoryStoreError as error:
        raise MemoryStoreError(
            f"the memories are deleted, but their bytes are not ({error.__cause__}): forget again"
        ) from error
    if row[0]:
        raise MemoryStoreError(
            "the memories are deleted, but another process reads the file that still holds their "
            "bytes: close it, and forget again"
        )


async def _vacuum_tables(pool: Any, tables: tuple[str, ...]) -> None:
    """Rewrite the tables and the planner's statistics, which contain common values.

    The server skips tables of other owners.
    """
    from memory.storage.postgres import clear_errors

    with clear_errors(pool.name):
        async with pool.connection() as conn:
            await conn.execute(f"VACUUM (FULL, ANALYZE) {', '.join(tables)}")
            if conn.info.server_version >= _CLEARS_STATISTICS:
                # ANALYZE does not change the statistics of a table without rows.
                await conn.execute(
                    "SELECT pg_clear_attribute_stats(schemaname, tablename, attname, inherited)"
                    " FROM pg_stats JOIN pg_class AS c"
                    " ON c.oid = format('%%I.%%I', schemaname, tablename)::regclass"
                    " WHERE c.oid = ANY(%s::regclass[]) AND c.reltuples = 0",
                    ([*tables, *MEMORY_TABLES],),
                )
            await conn.execute("VACUUM (FULL) pg_catalog.pg_statistic")


# Facts, their history, and the rows of journal entries


BATCH = 200
"""Facts removed in one transaction."""


class Found(NamedTuple):
    """Rows of journal entries that contain erased words."""

    gone: list[str]
    """Ids of the rows of entries that go."""
    stale: set[str]
    """Entries that stay and whose rows are made again: a row also holds the entries before it."""


async def erase(
    semantic: SemanticMemory, scope: Scope, facts: Mapping[str, Fact], rows: Sequence[str]
) -> None:
    """Remove facts with Mem0's history of them, and `rows`. Missing facts are skipped."""
    if facts:
        filters = {**scope_filters(scope), "kind": "fact", "id": list(facts)}
        await semantic.run(_delete_facts, semantic, filters)
    if rows:
        await semantic.drop_episodes(scope, rows)


async def mend(
    semantic: SemanticMemory, scope: Scope, staying: Sequence[Fact], erasure: Erasure
) -> None:
    """Update the facts that stay, and drop their history where it names the person."""
    for fact in staying:
        if changes := fact_after(fact, erasure):
            await semantic.update(scope, fact["id"], changes)
    ids = [fact["id"] for fact in staying]
    await semantic.run(_mend_history, semantic, ids, erasure)


async def erase_memories(semantic: SemanticMemory, whose: Mapping[str, str]) -> int:
    """Remove every row of an agent, or of a user in all agents; return how many.

    `whose`: the filters of the agent's scope, or of the user.
    """
    count = await semantic.run(_erase_rows, semantic, whose)
    await semantic.scrub()
    return count


def rows_that_hold(semantic: SemanticMemory, scope: Scope, erasure: Erasure) -> Found:
    """The rows made from any entry that goes or changes. Blocking."""
    changed = erasure.gone.union(one["id"] for one in erasure.rewritten)
    filters = {**scope_filters(scope), "kind": "episode"}
    found = Found([], set())
    for row in semantic.open_table().select(filters):
        op, payload = row.payload["op"], row.payload
        made_of = (op, *payload["source_entries"], *payload["source_events"])
        if changed.isdisjoint(made_of):
            continue
        if erasure.entries.get(op) is not None:
            found.stale.add(op)
        else:
            found.gone.append(op)
            found.stale.update(one for one in made_of if erasure.entries.get(one) is not None)
    return found


def _delete_facts(semantic: SemanticMemory, filters: Mapping[str, object]) -> int:
    """Delete through Mem0, which keeps a history of each fact; return how many."""
    ids = [row.id for row in semantic.open_table().select(dict(filters))]
    for batch in batch_iterate(BATCH, ids):
        with semantic.writing() as mem0:
            for id_ in batch:
                mem0.delete(id_)
    return len(ids)


def _erase_rows(semantic: SemanticMemory, whose: Mapping[str, str]) -> int:
    facts = _delete_facts(semantic, {**whose, "kind": "fact"})
    return facts + semantic.open_table().delete(whose)


def _mend_history(semantic: SemanticMemory, ids: Sequence[str], erasure: Erasure) -> None:
    history = semantic.open_mem0().history
    for id_ in ids:
        rows = history.get_history(id_)
        told = [row[key] or "" for row in rows for key in ("old_memory", "new_memory")]
        if any(map(erasure.names.within, told)):
            history.add_history(id_, None, None, "DELETE")
