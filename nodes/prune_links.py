"""Take away links to memories that are gone (data-flow-03, section 4.4). No model is asked."""

from __future__ import annotations

from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import journal, links
from memory.night_view import NightView, Thought
from memory.operations import unlink
from memory.resources import Resources, resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import State
from memory.state_check import checked
from memory.store_access import list_items

ENTITY = "entity_"
BATCH = 500
"""Ids that are looked up at a time."""


@checked
async def prune_links(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Unlink every end whose other end is no journal entry and no fact any more."""
    settings = settings_of(runtime.context)
    view = await NightView.of(state, store_of(runtime), scope_of(config))

    async def think() -> Thought:
        return Thought(operations=await _orphans(view, resources_of(config)))

    await view.plan("prune_links", [], think)
    return {"night": await view.onward(state, settings)}


async def _orphans(view: NightView, resources: Resources) -> list[Any]:
    items = await list_items(view.store, view.scope.namespace(links.LINKS))
    ends = {item.key: cast(links.End, item.value) for item in items}
    ids = sorted({*ends, *(other for end in ends.values() for other in end["linked_to"])})
    facts = {fact["id"] for fact in await resources.semantic.all(view.scope)} if ids else set()
    known = set(facts)
    for start in range(0, len(ids), BATCH):
        some = [one for one in ids[start : start + BATCH] if one not in facts]
        known |= (await journal.read_many(view.store, view.scope, some)).keys()
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
                "created": value.get("at", view.record["started"]),
            },
            "its other end is gone",
        )
        for (one, other), value in sorted(pairs.items())
    ]
