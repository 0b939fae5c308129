"""Erasing from the table of memories: facts, their history, and the rows of journal entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memory.facts import SemanticMemory, scope_filters, user_filters
from memory.forgetting.erasure import Erasure, fact_after
from memory.records import Fact, Scope

BATCH = 200
"""Facts removed in one transaction."""


class Found(NamedTuple):
    """Rows of journal entries that contain erased words."""

    gone: list[str]
    """Ids of the rows of entries that go."""
    stale: set[str]
    """Entries that stay and whose rows are made again: a row also holds the entries before it."""


async def rows_that_hold(semantic: SemanticMemory, scope: Scope, erasure: Erasure) -> Found:
    """The rows made from any entry that goes or changes."""
    return await semantic.run(_rows_that_hold, semantic, scope, erasure)


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
    await semantic.run(_mend_history, semantic, scope, ids, erasure)


async def erase_memories(semantic: SemanticMemory, user: str) -> int:
    """Remove every row of a user, in all agents; return how many.

    Raises:
        MemoryStoreError: the files cannot be written, or cleaned of what was removed.
    """
    count = await semantic.run(_erase_user, semantic, user)
    await semantic.scrub()
    return count


def _rows_that_hold(semantic: SemanticMemory, scope: Scope, erasure: Erasure) -> Found:
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
    for first in range(0, len(ids), BATCH):
        with semantic.writing() as mem0:
            for id_ in ids[first : first + BATCH]:
                mem0.delete(id_)
    return len(ids)


def _erase_user(semantic: SemanticMemory, user: str) -> int:
    filters = user_filters(Scope(user, ""))
    facts = _delete_facts(semantic, {**filters, "kind": "fact"})
    return facts + semantic.open_table().delete(filters)


def _mend_history(
    semantic: SemanticMemory, scope: Scope, ids: Sequence[str], erasure: Erasure
) -> None:
    history = semantic.open_mem0().history
    for id_ in ids:
        rows = history.get_history(id_)
        told = [row[key] or "" for row in rows for key in ("old_memory", "new_memory")]
        if any(map(erasure.names.within, told)):
            history.add_history(id_, None, None, "DELETE")
