"""The table of memories without what is a forgotten person's: facts, and rows that find entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memory.forgetting.erasure import Erasure
from memory.forgetting.lineage import fact_after
from memory.records import Fact
from memory.scope import Scope
from memory.semantic import SemanticMemory
from memory.vectorstore.payload import scope_filters

BATCH = 200
"""Facts that are removed in one transaction."""


class Found(NamedTuple):
    """Rows by which journal entries are found, and that hold what is erased."""

    gone: list[str]
    """Ids under which those were put that go."""
    stale: set[str]
    """Entries that stay, and whose rows are made anew: they hold words of what was said before."""


async def rows_that_hold(semantic: SemanticMemory, scope: Scope, erasure: Erasure) -> Found:
    """The rows that were made of anything that goes, or is written anew."""
    return await semantic.run(_rows_that_hold, semantic, scope, erasure)


async def erase(
    semantic: SemanticMemory, scope: Scope, facts: Mapping[str, Fact], rows: Sequence[str]
) -> None:
    """Remove facts with what Mem0 kept of their changes, and rows that find entries.

    Facts that are gone already are passed over.
    """
    ids = list(facts)
    for first in range(0, len(ids), BATCH):
        await semantic.run(_erase, semantic, scope, ids[first : first + BATCH])
    if rows:
        await semantic.drop_episodes(scope, rows)


async def mend(
    semantic: SemanticMemory, scope: Scope, staying: Sequence[Fact], erasure: Erasure
) -> None:
    """Take out of the facts that stay what points to something erased, and of their history the
    changes that hold the person's words.
    """
    for fact in staying:
        changes = fact_after(fact, erasure.events, erasure.facts, erasure.scrubber)
        if changes:
            await semantic.update(scope, fact["id"], changes)
    ids = [fact["id"] for fact in staying]
    await semantic.run(_mend_history, semantic, scope, ids, erasure)


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


def _erase(semantic: SemanticMemory, scope: Scope, ids: Sequence[str]) -> None:
    with semantic.writing() as mem0:
        filters = {**scope_filters(scope), "kind": "fact", "id": list(ids)}
        for row in mem0.table.select(filters):
            mem0.delete(row.id)


def _mend_history(
    semantic: SemanticMemory, scope: Scope, ids: Sequence[str], erasure: Erasure
) -> None:
    history = semantic.open_mem0().history
    for one in ids:
        told = [
            (row["old_memory"] or "", row["new_memory"] or "") for row in history.get_history(one)
        ]
        if any(erasure.scrubber.text(text, "unknown") != text for pair in told for text in pair):
            history.add_history(one, None, None, "DELETE")
