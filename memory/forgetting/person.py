"""Whom to forget: reads the memory, decides what goes, and sums it up."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from langgraph.store.base import BaseStore

from memory import audit, entities
from memory.audit import AuditEntry
from memory.events import inbox
from memory.facts import SemanticMemory
from memory.forgetting.carrying_out import Begun
from memory.forgetting.erasure import (
    Acts,
    Erasure,
    KnownMemory,
    acts_of,
    decide,
    events_of,
    is_of_event,
    names_of,
)
from memory.forgetting.scrubbing import Names
from memory.forgetting.store_changes import StoreChanges
from memory.forgetting.working import events_in_state
from memory.journal import by_time
from memory.operations import apply
from memory.records import Fact, InboxItem, JournalEntry, Scope
from memory.storage import list_items, shelves
from memory.text import shortened

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
}

_WITH_OTHERS = frozenset(
    ("journal", "pending", "archives", "unindexed", "entity_names", "handled", "night", "runs")
)
"""Kinds that are counted together with others."""


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
    """Decide what goes with `entity`, or with the journal entry of that id; changes nothing."""
    entries = [cast(JournalEntry, one) for one in await _all(store, scope, "journal")]
    waiting = [cast(InboxItem, one) for one in await _all(store, scope, inbox.INBOX)]
    waiting += [cast(InboxItem, one) for one in await _all(store, scope, inbox.SET_ASIDE)]
    links = await list_items(store, scope.namespace(apply.LINKS))
    known = KnownMemory(
        entries,
        await semantic.all(scope),
        await entities.everyone(store, scope),
        [*(one["event"] for one in waiting), *events_in_state(values, owner)],
        list((values.get("projects") or {}).get("slots", {})),
        {item.key: item.value["linked_to"] for item in links},
    )
    names, profiles = names_of(entity, known)
    events, erased = events_of(known, names), list[str]()
    if entry := next((one for one in entries if one["id"] == entity), None):
        names, profiles, erased = Names([], []), frozenset(), [entity]
        events = frozenset(entry["sources"]) if is_of_event(entry) else frozenset()
    if earlier is not None:
        events, erased = events.union(earlier["events"]), earlier["memories"]
    acts = await _acts(store, scope, events)
    # In a thread: every text of the memory is searched for the names.
    erasure = await asyncio.to_thread(decide, known, names, profiles, events, acts, erased)
    marks = await list_items(store, scope.namespace(inbox.HANDLED))
    handled = {item.key: int(item.value["tick"]) for item in marks}
    journaled = {one["sources"][0] for one in entries if one["sources"]}
    return Person(erasure, list(known.facts), handled, sorted(events - journaled))


def counts(
    erasure: Erasure, before: Mapping[str, Any], after: Mapping[str, Any], store: StoreChanges
) -> dict[str, int]:
    """Number of records that go or change, by kind, including zeros."""
    of_store = {
        name: sum(store.removed[kind] + store.rewritten[kind] for kind in kinds)
        for name, kinds in _OF_THE_STORE.items()
    }
    named = {kind for kinds in _OF_THE_STORE.values() for kind in kinds} | _WITH_OTHERS
    rest = Counter(store.removed) + Counter(store.rewritten)
    return {
        "events": len(erasure.events),
        "journal": sum(left is None for left in erasure.entries.values()),
        "journal_rewritten": len(erasure.rewritten),
        "facts": len(erasure.facts),
        **_of_state(before, after),
        **of_store,
        "other": sum(number for kind, number in rest.items() if kind not in named),
    }


def examples(erasure: Erasure) -> list[str]:
    """Beginnings of some texts that go: the newest entries, then facts."""
    going = [one for id_, one in erasure.before.items() if erasure.entries[id_] is None]
    texts = [one["content"] for one in reversed(by_time(going))]
    texts = [*texts[: EXAMPLES - 2], *(fact["text"] for fact in erasure.facts.values())]
    return [shortened(one, QUOTED) for one in dict.fromkeys(texts)][:EXAMPLES]


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
