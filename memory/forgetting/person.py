"""Finding what is to be forgotten: reading a memory as far as the decision needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from langgraph.store.base import BaseStore

from memory import audit, entities, inbox
from memory.audit import AuditEntry
from memory.forgetting.erasure import Acts, Erasure, Known, acts_of, decide, events_of, names_of
from memory.forgetting.open_forget import Begun
from memory.forgetting.working import events_of as events_in
from memory.records import Event, Fact, InboxItem, JournalEntry
from memory.scope import Scope
from memory.semantic import SemanticMemory
from memory.store_access import list_items
from memory.store_walk import Shelf, shelves


class Person(NamedTuple):
    """Whom to forget, and what goes."""

    erasure: Erasure
    facts: list[Fact]
    """All of the agent's, those that stay, too."""
    handled: dict[str, int]
    """Events and the ticks that they were handled in."""
    unjournaled: list[Event]
    """Erased events that are not in the journal."""


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
    """What goes with `entity`: a name, an alias, a sender's id, or a profile's. Changes nothing.

    `values`: the state. `earlier`: the same forget, broken off before.
    """
    entries = [cast(JournalEntry, one) for one in await _all(store, scope, "journal")]
    waiting = [cast(InboxItem, one) for one in await _all(store, scope, inbox.INBOX)]
    waiting += [cast(InboxItem, one) for one in await _all(store, scope, inbox.SET_ASIDE)]
    known = Known(
        entries,
        await semantic.all(scope),
        await entities.everyone(store, scope),
        [*(one["event"] for one in waiting), *events_in(values, owner)],
        list((values.get("projects") or {}).get("slots", {})),
    )
    names, profiles = names_of(entity, known)
    events = events_of(known, names) | frozenset(earlier["events"] if earlier else ())
    acts = await _acts(store, scope, events)
    texts = earlier["texts"] if earlier else []
    # In a thread: every text of the memory is read word by word.
    erasure = await asyncio.to_thread(decide, known, names, profiles, events, acts, texts)
    handled = {
        item.key: int(item.value["tick"])
        for item in await list_items(store, scope.namespace(inbox.HANDLED))
    }
    journaled = {one["sources"][0] for one in entries if one["sources"]}
    unjournaled = {
        one["id"]: one for one in known.events if one["id"] in events and one["id"] not in journaled
    }
    return Person(erasure, list(known.facts), handled, list(unjournaled.values()))


async def _all(store: BaseStore, scope: Scope, kind: str) -> list[dict[str, Any]]:
    return [item.value async for shelf in shelves(store, scope, kind) for item in shelf.items]


async def _acts(store: BaseStore, scope: Scope, events: frozenset[str]) -> Acts:
    """Day by day: the log is long."""
    found = [
        acts_of(_told(shelf), events)
        async for shelf in shelves(store, scope, audit.AUDIT)
        if len(shelf.labels) == 2
    ]
    goals = (one for acts in found for one in acts.goals)
    return Acts(frozenset(goals), frozenset(one for acts in found for one in acts.written))


def _told(shelf: Shelf) -> Iterable[AuditEntry]:
    return (cast(AuditEntry, item.value) for item in shelf.items)
