"""Remove links of the night's memories to memories that are gone, without a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import journal
from memory.journal import links
from memory.night import NightContext, Thought, night_in_hand, plan, proceed
from memory.records import Operation, unlink
from memory.settings import Settings
from memory.state import State, checked

BATCH = 500
"""Journal ids read in one batch."""


@checked
async def prune_links(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Unlink the night's memories from memories that no longer exist."""
    context = await night_in_hand(state, runtime, config)
    await plan(context, "prune_links", [], partial(_think, context))
    return {"night": await proceed(context)}


async def _think(context: NightContext) -> Thought:
    """Only memories that this night names: to read all links takes too long."""
    operations = context.plans.operations()
    ops = sorted({*context.record.get("facts", []), *(one["target"] for one in operations)})
    facts = await context.resources.semantic.by_op(context.scope, ops)
    ids = {*context.record["pending"], *ops, *(fact["id"] for fact in facts.values())}
    ends = await links.read(context.store, context.scope, ids)
    ids = {*ends, *(other for end in ends.values() for other in end["linked_to"])}
    known = await _existing(context, ids) if ids else set()
    return Thought(operations=_unlinked(ends, known, context.now))


async def _existing(context: NightContext, ids: Collection[str]) -> set[str]:
    """Those of `ids` that are facts or journal entries; all, where the table of facts is lost."""
    known = {*await context.resources.semantic.by_id(context.scope, sorted(ids))}
    if not known and not await context.resources.semantic.count(context.scope):
        return set(ids)
    asked = sorted(id_ for id_ in ids if id_ not in known)
    for start in range(0, len(asked), BATCH):
        some = asked[start : start + BATCH]
        known |= (await journal.read_many(context.store, context.scope, some)).keys()
    return known


def _unlinked(ends: Mapping[str, links.End], known: Collection[str], night: str) -> list[Operation]:
    """An operation for each pair of linked ids with an id that is not in `known`."""
    pairs = {
        (min(one, other), max(one, other)): end["relations"].get(other, {})
        for one, end in ends.items()
        for other in end["linked_to"]
        if one not in known or other not in known
    }
    return [
        unlink(
            one,
            other,
            {
                "relation": value.get("relation", "made_of"),
                "reason": value.get("reason", ""),
                "created": value.get("at", night),
            },
            "its other end is gone",
        )
        for (one, other), value in sorted(pairs.items())
    ]
