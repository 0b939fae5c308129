"""Whom or what to forget: reads the memory, decides what goes, and sums it up."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from langgraph.store.base import BaseStore
from typing_extensions import TypedDict

from memory import audit, entities, pages
from memory.audit import AuditEntry
from memory.compaction import SUMMARIES
from memory.events import inbox
from memory.facts import SemanticMemory
from memory.forgetting.carrying_out import Begun
from memory.forgetting.erasure import (
    Acts,
    Erasure,
    ForgetTarget,
    KnownMemory,
    RecordPrefilter,
    Start,
    Statement,
    acts_of,
    decide,
    events_of,
    names_of,
    start_of,
)
from memory.forgetting.scrubbing import Forgettable
from memory.forgetting.store_changes import WITH_OTHERS, StoreChanges
from memory.forgetting.working import events_in_state
from memory.journal import by_time, read_many
from memory.operations import UNDREAMED, apply
from memory.recall import probes
from memory.records import Fact, InboxItem, JournalEntry, Scope
from memory.storage import Sieve, Wanted, list_items, shelves
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
    "prompts": (inbox.PROMPTS,),
    "pages": (pages.PAGES,),
    "recalls": (probes.PROBES,),
    "summaries": (SUMMARIES,),
    "undreamed": (UNDREAMED,),
}


class Selection(NamedTuple):
    """What goes with whom or what is forgotten."""

    erasure: Erasure
    said: list[str]
    """The sentences of a statement; [] for a person."""
    facts: list[Fact]
    """All facts of the agent, those that stay too."""
    handled: dict[str, int]
    """Event id -> the tick that handled it."""
    unjournaled: list[str]
    """Ids of erased events that are not in the journal."""
    prefilter: RecordPrefilter | None
    """What a record shows if it may change; None if all records are to be read."""


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
    sifting: bool = False,
) -> Selection:
    """Decide what goes with `wanted`; changes nothing.

    `sifting`: of a statement, read only the records that may have to do with it, until they lead to
    no others. The selection is the same, but lacks most of the facts that stay.
    """
    prefilter = at_hand = None
    if sifting and wanted.kind != "entity":
        prefilter = RecordPrefilter(frozenset(), frozenset((wanted.name,)))
        at_hand = await _at_hand(store, semantic, scope, wanted)
    while True:
        known = at_hand or await _known(store, semantic, scope, values, owner, prefilter)
        if not sifting:  # only carrying out needs to know what stands beside the facts that stay
            links = await list_items(store, scope.namespace(apply.LINKS))
            known = known._replace(links={item.key: item.value["linked_to"] for item in links})
        # In threads: every text of the memory is searched.
        begun = await asyncio.to_thread(_begun, wanted, known, earlier)
        acts = await _acts(store, scope, begun.events, prefilter)
        erasure = await asyncio.to_thread(
            decide,
            known,
            begun.subject,
            begun.profiles,
            begun.events,
            acts,
            begun.memories,
            sources_stay=wanted.kind != "entity",
        )
        more = prefilter and prefilter.widened(known, begun.subject, erasure.gone)
        if more == prefilter and at_hand is None:
            break
        prefilter, at_hand = more, None
    marks = await list_items(store, scope.namespace(inbox.HANDLED))
    handled = {item.key: int(item.value["tick"]) for item in marks}
    journaled = {one["sources"][0] for one in known.entries if one["sources"]}
    unjournaled = sorted(begun.events - journaled)
    return Selection(erasure, begun.said, list(known.facts), handled, unjournaled, prefilter)


async def _at_hand(
    store: BaseStore, semantic: SemanticMemory, scope: Scope, wanted: ForgetTarget
) -> KnownMemory:
    """A memory with those linked to it, and the sources: what their words are looked for with."""
    links = await store.aget(scope.namespace(apply.LINKS), wanted.name)
    near = [wanted.name, *(links.value["linked_to"] if links else [])]
    facts = [*(await semantic.by_id(scope, near)).values()]
    ids = [*near, *(id_ for fact in facts for id_ in fact["source_entries"])]
    entries = [*(await read_many(store, scope, ids)).values()]
    return KnownMemory(entries, facts, [], [], [])


async def _known(
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
    values: Mapping[str, Any],
    owner: str,
    prefilter: RecordPrefilter | None,
) -> KnownMemory:
    """The memory, or what of it may have to do with a statement."""
    wanted = prefilter.wanted() if prefilter else None
    # Two files, and two threads.
    found, facts = await asyncio.gather(
        _all(store, scope, "journal", wanted), semantic.all(scope, wanted)
    )
    entries = [cast(JournalEntry, one) for one in found]
    projects = list((values.get("projects") or {}).get("slots", {}))
    if prefilter is not None:
        return KnownMemory(entries, facts, [], [], projects)
    waiting = [cast(InboxItem, one) for one in await _all(store, scope, inbox.INBOX)]
    waiting += [cast(InboxItem, one) for one in await _all(store, scope, inbox.SET_ASIDE)]
    events = [*(one["event"] for one in waiting), *events_in_state(values, owner)]
    return KnownMemory(entries, facts, await entities.everyone(store, scope), events, projects)


class _Beginning(NamedTuple):
    """Where the search by lineage begins."""

    subject: Forgettable
    said: list[str]
    profiles: frozenset[str]
    events: frozenset[str]
    memories: frozenset[str]


def _begun(wanted: ForgetTarget, known: KnownMemory, earlier: Begun | None) -> _Beginning:
    nobody: frozenset[str] = frozenset()
    before = Start([], nobody, nobody)
    if earlier is not None:
        said = earlier.get("said", [])
        before = Start(said, frozenset(earlier["events"]), frozenset(earlier["memories"]))
    if wanted.kind == "entity":
        names, profiles = names_of(wanted.name, known)
        events = events_of(known, names) | before.events
        return _Beginning(names, [], profiles, events, before.memories)
    start = start_of(wanted, known) if earlier is None else before
    return _Beginning(Statement(start.said), start.said, nobody, start.events, start.memories)


def counts(
    erasure: Erasure, before: Mapping[str, Any], after: Mapping[str, Any], store: StoreChanges
) -> dict[str, int]:
    """Number of records that go or change, by kind, including zeros."""
    of_store = {
        name: sum(store.removed[kind] + store.rewritten[kind] for kind in kinds)
        for name, kinds in _OF_THE_STORE.items()
    }
    named = {kind for kinds in _OF_THE_STORE.values() for kind in kinds} | WITH_OTHERS | {"night"}
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


async def _all(
    store: BaseStore, scope: Scope, kind: str, wanted: Wanted | None = None
) -> list[dict[str, Any]]:
    found = shelves(store, scope, kind, wanted and (lambda namespace: wanted))
    return [item.value async for shelf in found for item in shelf.items]


async def _acts(
    store: BaseStore, scope: Scope, events: frozenset[str], prefilter: RecordPrefilter | None
) -> Acts:
    """Read day by day: the log is long."""
    wanted = prefilter.wanted() if prefilter else None
    sieve: Sieve | None = wanted and (lambda namespace: wanted)
    found = [
        acts_of([cast(AuditEntry, item.value) for item in shelf.items], events)
        async for shelf in shelves(store, scope, audit.AUDIT, sieve)
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
