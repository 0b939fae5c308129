"""What dreaming has to do: fixed once, when compacting is over, so that a night is repeatable."""

from __future__ import annotations

from datetime import datetime

from langgraph.store.base import BaseStore
from typing_extensions import TypedDict

from memory import entities, journal, night
from memory.apply import REFLECTION, UNDREAMED
from memory.dreaming.attributes import ripe
from memory.dreaming.pruning import stale
from memory.night_view import NightView
from memory.reflected import counted_entries, cumulative_importance, last_reflection
from memory.scope import Scope
from memory.semantic import SemanticMemory
from memory.settings import Settings
from memory.state import State
from memory.store_access import list_items

DREAMT = ("settle_fact", "change_entity", "reflected")
"""Kinds of operations that say that something was dealt with."""


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
    decided = await _decided_already(store, scope)
    marked = await list_items(store, scope.namespace(UNDREAMED))
    if any(item.key not in decided for item in marked):
        return True
    if stale(state["conversations"], now=now, settings=settings):
        return True
    profiles = await entities.everyone(store, scope)
    found = (one for one in profiles if ripe(one, settings.min_observations))
    if any(one["id"] not in decided for one in found):
        return True
    if REFLECTION in decided:
        return False
    return await cumulative_importance(store, scope) >= settings.reflection_threshold


async def work_of(view: NightView, semantic: SemanticMemory, settings: Settings) -> Work:
    """What there is to do, with what compacting decided."""
    store, scope = view.store, view.scope
    marked = [item.key for item in await list_items(store, scope.namespace(UNDREAMED))]
    added = view.added_facts()
    overlay = view.overlay(semantic)
    profiles = await overlay.everyone()
    decided = await _decided_already(store, scope)
    ripened = [id_ for id_, one in sorted(profiles.items()) if ripe(one, settings.min_observations)]
    since = await last_reflection(store, scope)
    counted = view.entries_after(await counted_entries(store, scope, since))
    total = sum(entry["importance"] for entry in counted if journal.counts(entry))
    return {
        "facts": [one for one in dict.fromkeys([*marked, *added]) if one not in decided],
        "entities": [one for one in ripened if one not in decided],
        "reflect": total >= settings.reflection_threshold and REFLECTION not in decided,
    }


async def _decided_already(store: BaseStore, scope: Scope) -> set[str]:
    """The facts (by operation) and entities, and the reflection, of nights that wait for a person.

    What was thought out and paid for is not thought out again, until the night is applied or let
    go. A night that can no longer be applied keeps nothing waiting.
    """
    found: set[str] = set()
    for record in await night.records(store, scope):
        if record.get("status") == "held" and not (
            record.get("reduced") or record.get("forgotten")
        ):
            plans = await night.plans_of(store, scope, record["id"])
            dreamt = plans.operations("dreaming")
            found |= {one["target"] for one in dreamt if one["kind"] in DREAMT}
    return found
