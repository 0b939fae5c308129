"""A forget: what goes with whom or what is forgotten, and carrying that out down to the disk.

Store namespace (below `(user, thread)`): `forgetting` "open" -> Begun, from before the first change
(or an approval) until the store is changed; "residue" -> {at}, until free pages and logs are clean.

A deleted row stays in an SQLite file and its log until it is overwritten, and in PostgreSQL until a
vacuum. `clean` removes both. Log archives and backups are the operator's.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, NotRequired, cast

from langchain_core.utils.iter import batch_iterate
from langgraph.store.base import BaseStore, GetOp, Item, PutOp
from typing_extensions import TypedDict

from memory import audit, entities, night, pages
from memory.audit import AuditEntry
from memory.compaction import SUMMARIES
from memory.errors import MemoryStoreError
from memory.events import inbox
from memory.facts import SemanticMemory, scope_filters
from memory.forgetting.erasure import (
    Erasure,
    ForgetTarget,
    KnownMemory,
    Start,
    acts_of,
    decide,
    facts_after,
    start_of,
)
from memory.forgetting.store_changes import FORGETTING, WITH_OTHERS
from memory.forgetting.working import events_in_state
from memory.journal import by_time
from memory.operations import UNDREAMED, apply
from memory.records import Fact, InboxItem, JournalEntry, Scope
from memory.storage import list_items, shelves, write_batch
from memory.storage.sqlite import OpenedFile
from memory.text import shortened

OPEN, RESIDUE = "open", "residue"


class Begun(TypedDict):
    """A forget, and what nobody could find any more after its first changes."""

    entity: str
    """A name as it was given, or the id of a fact or an entry."""
    kind: NotRequired[Literal["entity", "fact", "entry"]]
    said: NotRequired[list[str]]
    """The sentences of a statement."""
    events: list[str]
    """Ids of erased events."""
    memories: list[str]
    """Ids of erased entries and facts, and the facts' operation ids."""
    informed: list[int | None]
    """Ticks of the conversation whose tools returned an erased memory."""
    counts: NotRequired[dict[str, int]]
    """How much was to go, by kind, for the log."""


EXAMPLES = 5
"""Texts in a preview."""

QUOTED = 100
"""Most characters of each."""

_OF_THE_STORE = {
    "profiles": ("entities",),
    "links": ("links",),
    "inbox": ("inbox", "set_aside"),
    "nights": ("nights",),
    "audit": ("audit",),
    "answers": ("answers", "deeds", "passed_over"),
    "prompts": (inbox.PROMPTS,),
    "pages": (pages.PAGES,),
    "recalls": (night.PROBES,),
    "summaries": (SUMMARIES,),
    "undreamed": (UNDREAMED,),
}


class Selection(NamedTuple):
    """What goes with whom or what is forgotten."""

    erasure: Erasure
    said: list[str]
    """The sentences of a statement; [] for a person."""
    facts: list[Fact]
    """All facts of the agent, also those that stay."""
    handled: dict[str, int]
    """Event id -> the tick that handled it."""


class ErasedMemory(TypedDict):
    """A fact or an entry that goes, or loses a part of its text."""

    id: str
    kind: Literal["fact", "episode"]
    text: str
    left: str | None
    """The text that stays; None if the memory goes."""


async def find(
    wanted: ForgetTarget,
    *,
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
    values: Mapping[str, Any],
    owner: str,
    earlier: Begun | None = None,
) -> Selection:
    """Decide what goes with `wanted`; changes nothing."""
    known = await _known(store, semantic, scope, values, owner, wanted)
    # In threads: every text of the memory is searched.
    start = await asyncio.to_thread(_start, wanted, known, earlier)
    # Day by day: the log is long.
    log = [
        cast(AuditEntry, item.value)
        async for shelf in shelves(store, scope, audit.AUDIT)
        if len(shelf.labels) == 2
        for item in shelf.items
        if item.value["origin"] in start.events
    ]
    erasure = await asyncio.to_thread(decide, known, start, acts_of(log))
    marks = await list_items(store, scope.namespace(inbox.HANDLED))
    handled = {item.key: int(item.value["tick"]) for item in marks}
    return Selection(erasure, start.said, list(known.facts), handled)


async def _known(
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
    values: Mapping[str, Any],
    owner: str,
    target: ForgetTarget,
) -> KnownMemory:
    facts = await semantic.all(scope)
    shelved = shelves(store, scope, "journal")
    entries = [cast(JournalEntry, item.value) async for shelf in shelved for item in shelf.items]
    linked = await list_items(store, scope.namespace(apply.LINKS))
    links = {item.key: item.value["linked_to"] for item in linked}
    projects = list((values.get("projects") or {}).get("slots", {}))
    if target.kind != "entity":
        return KnownMemory(entries, facts, [], [], projects, links)
    waiting = [
        cast(InboxItem, item.value)["event"]
        for kind in (inbox.INBOX, inbox.SET_ASIDE)
        for item in await list_items(store, scope.namespace(kind))
    ]
    events = [*waiting, *events_in_state(values, owner)]
    profiles = await entities.everyone(store, scope)
    return KnownMemory(entries, facts, profiles, events, projects, links)


def _start(wanted: ForgetTarget, known: KnownMemory, earlier: Begun | None) -> Start:
    """Where the forget begins; where an earlier one broke off, with what that had found."""
    here = any(one["id"] == wanted.name for one in (*known.entries, *known.facts))
    if earlier is None or (here and not earlier["memories"]):  # else only the decision is stored
        return start_of(wanted, known)
    before = Start(
        earlier.get("said", []), frozenset(earlier["events"]), frozenset(earlier["memories"])
    )
    if wanted.kind != "entity":
        return before
    start = start_of(wanted, known)
    return start._replace(events=start.events | before.events, memories=before.memories)


def counts(
    erasure: Erasure, before: Mapping[str, Any], after: Mapping[str, Any], puts: Sequence[PutOp]
) -> dict[str, int]:
    """Number of records that go or change, by kind, including zeros."""
    # A record's kind is the first label below (user, thread).
    changed = Counter(kind for put in puts for kind in put.namespace[2:3])
    of_store = {name: sum(changed[kind] for kind in kinds) for name, kinds in _OF_THE_STORE.items()}
    named = {kind for kinds in _OF_THE_STORE.values() for kind in kinds} | WITH_OTHERS
    return {
        "events": len(erasure.events),
        "journal": sum(left is None for left in erasure.entries.values()),
        "journal_rewritten": len(erasure.rewritten),
        "facts": len(erasure.facts),
        **_of_state(before, after),
        **of_store,
        "other": sum(number for kind, number in changed.items() if kind not in named),
    }


def examples(erasure: Erasure) -> list[str]:
    """Beginnings of some texts that go: the newest entries, then facts."""
    going = [one for id_, one in erasure.before.items() if erasure.entries[id_] is None]
    texts = [one["content"] for one in reversed(by_time(going))]
    texts = [*texts[: EXAMPLES - 2], *(fact["text"] for fact in erasure.facts.values())]
    return [shortened(one, QUOTED) for one in dict.fromkeys(texts)][:EXAMPLES]


def memories(erasure: Erasure) -> list[ErasedMemory]:
    """Every fact and entry that goes or changes, with its text: entries by time, then facts."""
    found: list[ErasedMemory] = []
    for entry in by_time(erasure.before.values()):
        after = erasure.entries[entry["id"]]
        left = after["content"] if after else None
        if left != entry["content"]:
            text = entry["content"]
            found.append({"id": entry["id"], "kind": "episode", "text": text, "left": left})
    for fact in erasure.facts.values():
        found.append({"id": fact["id"], "kind": "fact", "text": fact["text"], "left": None})
    return found


def _of_state(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, int]:
    old, new = before.get("messages", []), after.get("messages", [])
    left = {one.id: one for one in new}
    return {
        "messages": sum(one.id not in left for one in old),
        "messages_rewritten": sum(one.id in left and left[one.id] != one for one in old),
        "goals": _changed(before, after, "goals"),
        "projects": _changed(
            (before.get("projects") or {}), (after.get("projects") or {}), "slots"
        ),
        "session_memory": _texts_changed(before, after),
        "conversations": _changed(before, after, "conversations"),
        "overheard": _gone(before, after, "context_buffer"),
        "questions": _gone(before, after, "parked"),
        "prompt_versions": _gone(
            before.get("assistant_prompt", {}), after.get("assistant_prompt", {}), "versions"
        ),
    }


def _changed(before: Mapping[str, Any], after: Mapping[str, Any], key: str) -> int:
    old, new = before.get(key) or {}, after.get(key) or {}
    return sum(new.get(id_) != one for id_, one in old.items())


def _gone(before: Mapping[str, Any], after: Mapping[str, Any], key: str) -> int:
    new: Sequence[Any] = after.get(key) or []
    return sum(one not in new for one in before.get(key) or [])


def _texts_changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> int:
    old, new = before.get("session_memory") or {}, after.get("session_memory") or {}
    lists = ("key_facts", "learned_patterns", "completed_tasks")
    return sum(_gone(old, new, one) for one in lists)


# Carrying out


async def left_over(store: BaseStore, scope: Scope) -> tuple[Begun | None, bool]:
    """A forget interrupted before the store was changed; and whether before files were clean."""
    gets = [GetOp(scope.namespace(FORGETTING), key) for key in (OPEN, RESIDUE)]
    item, residue = await store.abatch(gets)
    return cast(Begun, item.value) if isinstance(item, Item) else None, residue is not None


async def begin(store: BaseStore, scope: Scope, what: Begun, also: Sequence[PutOp]) -> None:
    """Record a forget before anything is changed; `also`: writes of the same transaction."""
    put = PutOp(scope.namespace(FORGETTING), OPEN, cast(dict[str, Any], dict(what)))
    await write_batch(store, [put, *also])


def changed_puts(scope: Scope, at: str) -> list[PutOp]:
    """Writes for the transaction that changes the store: only the files are left to clean."""
    here = scope.namespace(FORGETTING)
    return [PutOp(here, OPEN, None), PutOp(here, RESIDUE, {"at": at})]


async def unfinished(store: BaseStore, scope: Scope) -> str | None:
    """How to finish an interrupted forget; None if there is none."""
    earlier, residue = await left_over(store, scope)
    if earlier is not None:
        kind = earlier.get("kind", "entity")
        what = repr(earlier["entity"]) if kind == "entity" else f"--{kind} {earlier['entity']}"
        return f"a forget has not ended: the next run ends it, or `circadian forget {what} --yes`"
    if residue:
        return "a forget was broken off before its bytes were gone: forget again to clean the files"
    return None


async def ended(store: BaseStore, scope: Scope) -> None:
    """Record that the files are clean."""
    await store.adelete(scope.namespace(FORGETTING), RESIDUE)


SAVER_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "circadian_chunks")

STORE_TABLES = ("store",)

MEMORY_TABLES = ("memories", "memory_terms", "memory_aliases")
"""Semantic memory rewrites these itself; only their statistics are cleared here."""

_CLEARS_STATISTICS = 180_000
"""First version of PostgreSQL in which a table's owner can clear its statistics."""


async def clean(part: Any, tables: tuple[str, ...]) -> None:
    """Rewrite the file or, in PostgreSQL, the `tables` of a saver or a store."""
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
    """Rewrite the tables and the planner's statistics, which contain common values."""
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


class EpisodeRows(NamedTuple):
    """Rows of journal entries that contain erased words."""

    gone: list[str]
    """Ids of the rows of entries that go."""
    stale: set[str]
    """Entries that stay and whose rows are made again: a row also holds the entries before it."""


async def erase(
    semantic: SemanticMemory, scope: Scope, facts: Mapping[str, Fact], rows: Sequence[str]
) -> None:
    """Remove facts, and `rows`. Missing facts are skipped."""
    if facts:
        filters = {**scope_filters(scope), "kind": "fact", "id": list(facts)}
        await semantic.run(_delete_facts, semantic, filters)
    if rows:
        await semantic.drop_episodes(scope, rows)


async def mend(
    semantic: SemanticMemory, scope: Scope, staying: Sequence[Fact], erasure: Erasure
) -> None:
    """Update the facts that stay."""
    for id_, changes in facts_after(staying, erasure).items():
        await semantic.update(scope, id_, changes)


async def erase_memories(semantic: SemanticMemory, whose: Mapping[str, str]) -> int:
    """Remove every row that `whose` filters, of an agent or of a user; return how many."""
    facts = await semantic.run(_delete_facts, semantic, {**whose, "kind": "fact"})
    others = await semantic.run(lambda: semantic.open_table().delete(whose))
    await semantic.scrub()
    return facts + others


def rows_that_hold(semantic: SemanticMemory, scope: Scope, erasure: Erasure) -> EpisodeRows:
    """The rows made from any entry that goes or changes. Blocking."""
    changed = erasure.gone.union(one["id"] for one in erasure.rewritten)
    filters = {**scope_filters(scope), "kind": "episode"}
    found = EpisodeRows([], set())
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
    ids = [row.id for row in semantic.open_table().select(dict(filters))]
    for batch in batch_iterate(BATCH, ids):
        with semantic.writing() as mem0:
            for id_ in batch:
                mem0.delete(id_)
    return len(ids)
