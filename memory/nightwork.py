"""What dreaming has to do: fixed once, when compacting is over, so that a night is repeatable."""

from __future__ import annotations

from datetime import datetime

from langgraph.store.base import BaseStore
from typing_extensions import TypedDict

from memory import entities, journal
from memory.apply import UNDREAMED
from memory.dreaming.attributes import ripe
from memory.dreaming.pruning import stale
from memory.night_view import NightView
from memory.reflected import counted_entries, cumulative_importance, last_reflection
from memory.scope import Scope
from memory.semantic import SemanticMemory
from memory.settings import Settings
from memory.state import State
from memory.store_access import count_items, list_items


class Work(TypedDict):
    """The inputs of dreaming, as they stand in the night's record."""

    facts: list[str]
    """Operation ids of facts that no night has seen with their neighbours."""
    entities: list[str]
    reflect: bool


async def work_waits(
    state: State, store: BaseStore, scope: Scope, settings: Settings, now: datetime
) -> bool:
    """Whether there is anything to dream of, beside what is pending."""
    if await count_items(store, scope.namespace(UNDREAMED)):
        return True
    if stale(state["conversations"], now=now, settings=settings):
        return True
    profiles = await entities.everyone(store, scope)
    if any(ripe(one, settings.min_observations) for one in profiles):
        return True
    return await cumulative_importance(store, scope) >= settings.reflection_threshold


async def work_of(view: NightView, semantic: SemanticMemory, settings: Settings) -> Work:
    """What there is to do, with what compacting decided."""
    store, scope = view.store, view.scope
    marked = [item.key for item in await list_items(store, scope.namespace(UNDREAMED))]
    added = view.added_facts()
    overlay = view.overlay(semantic)
    profiles = await overlay.everyone()
    since = await last_reflection(store, scope)
    counted = view.entries_after(await counted_entries(store, scope, since))
    total = sum(entry["importance"] for entry in counted if journal.counts(entry))
    return {
        "facts": list(dict.fromkeys([*marked, *added])),
        "entities": [
            id_ for id_, one in sorted(profiles.items()) if ripe(one, settings.min_observations)
        ],
        "reflect": total >= settings.reflection_threshold,
    }
