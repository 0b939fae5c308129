"""Finding what is to be forgotten: reads the parts of a memory on which the decision depends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from langgraph.store.base import BaseStore

from memory import apply, audit, entities, inbox
from memory.audit import AuditEntry
from memory.forgetting.erasure import Acts, Erasure, Known, acts_of, decide, events_of, names_of
from memory.forgetting.open_forget import Begun
from memory.forgetting.working import events_in_state
from memory.records import Fact, InboxItem, JournalEntry
from memory.scope import Scope
from memory.semantic import SemanticMemory
from memory.store_access import list_items
from memory.store_walk import shelves


class Person(NamedTuple):
    """Whom to forget, and what goes."""

    erasure: Erasure
    facts: list[Fact]
    """All facts of the agent, those that stay too."""
    handled: dict[str, int]
    """Event id -> the tick that handled it."""
    unjournaled: list[str]
    """Ids of erased events that are not in the journal."""


async def find(
    entity: str,
    *,
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
    values: Mapping[str, Any],
    owner: str,
    earlier: Begun | None = None,
) -> Person:
    """Decide what goes with `entity`; changes nothing.

    Args:
        entity: a name, an alias, the id of a sender or of a profile.
        store: keeps the agent's records.
        semantic: keeps its facts.
        scope: the agent.
        values: its state.
        owner: the sender of messages without a name.
        earlier: the same forget, interrupted before.
    """
    entries = [cast(JournalEntry, one) for one in await _all(store, scope, "journal")]
    waiting = [cast(InboxItem, one) for one in await _all(store, scope, inbox.INBOX)]
    waiting += [cast(InboxItem, one) for one in await _all(store, scope, inbox.SET_ASIDE)]
    links = await list_items(store, scope.namespace(apply.LINKS))
    known = Known(
        entries,
        await semantic.all(scope),
        await entities.everyone(store, scope),
        [*(one["event"] for one in waiting), *events_in_state(values, owner)],
        list((values.get("projects") or {}).get("slots", {})),
        {item.key: item.value["linked_to"] for item in links},
    )
    names, profiles = names_of(entity, known)
    events, erased = events_of(known, names), list[str]()
    if earlier is not None:
        events, erased = events.union(earlier["events"]), earlier["memories"]
    acts = await _acts(store, scope, events)
    # In a thread: every text of the memory is searched for the names.
    erasure = await asyncio.to_thread(decide, known, names, profiles, events, acts, erased)
    marks = await list_items(store, scope.namespace(inbox.HANDLED))
    handled = {item.key: int(item.value["tick"]) for item in marks}
    journaled = {one["sources"][0] for one in entries if one["sources"]}
    return Person(erasure, list(known.facts), handled, sorted(events - journaled))


async def _all(store: BaseStore, scope: Scope, kind: str) -> list[dict[str, Any]]:
    return [item.value async for shelf in shelves(store, scope, kind) for item in shelf.items]


async def _acts(store: BaseStore, scope: Scope, events: frozenset[str]) -> Acts:
    """Read day by day: the log is long."""
    found = [
        acts_of([cast(AuditEntry, item.value) for item in shelf.items], events)
        async for shelf in shelves(store, scope, audit.AUDIT)
        if len(shelf.labels) == 2
    ]
    goals = (one for acts in found for one in acts.goals)
    return Acts(frozenset(goals), frozenset(one for acts in found for one in acts.written))
