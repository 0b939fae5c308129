"""Operations: the one form in which steps and tools ask for changes to long-term memory.

Awake, a tool's operations are applied at once; in a night they join the night's list. Both go
through `memory.apply.apply_operations`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from memory.profiles import Attribute, EntityProfile, Observation
from memory.records import Event, Fact, FactDraft, JournalEntry, Operation

BLANK: Mapping[str, Any] = {"tags": [], "earlier": [], "disputed": []}
"""What a fact has where nothing was written yet."""


def operation_id(*parts: str) -> str:
    """An id from sources and position (32 hex digits). The same parts give the same id."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]


def told(operations: Iterable[Operation]) -> list[Operation]:
    """Those that still tell what they change: of what was forgotten only their ids are kept."""
    return [one for one in operations if one["before"] is not None or one["after"] is not None]


def add_entry(entry: JournalEntry, reason: str) -> Operation:
    """Write a journal entry."""
    return _operation("add_entry", entry["id"], None, dict(entry), entry["sources"], reason)


def score_entry(entry: JournalEntry, importance: int, reason: str) -> Operation:
    """Replace a heuristic importance (1..10) by the model's."""
    before = {"importance": entry["importance"], "scoring_method": entry["scoring_method"]}
    after = {"importance": importance, "scoring_method": "llm"}
    return _operation("score_entry", entry["id"], before, after, entry["sources"], reason)


def mark_entry(entry: JournalEntry, consolidation: str, reason: str) -> Operation:
    """Settle an entry: `consolidated` or `below_threshold`."""
    before = {"consolidation": entry["consolidation"]}
    after = {"consolidation": consolidation}
    return _operation("mark_entry", entry["id"], before, after, entry["sources"], reason)


def add_fact(draft: FactDraft, reason: str) -> Operation:
    """Write a fact; the operation's id is the draft's `op`."""
    sources = [*draft["source_entries"], *draft["source_events"]]
    return {
        "id": draft["op"],
        "kind": "add_fact",
        "target": draft["op"],
        "before": None,
        "after": dict(draft),
        "sources": sources,
        "reason": reason,
    }


def change_fact(
    fact: Fact, after: Mapping[str, Any], sources: Sequence[str], reason: str, *, place: str = ""
) -> Operation:
    """Change fields of a fact; it is named by its operation id, and so is what supersedes it."""
    before = {name: fact.get(name, BLANK.get(name)) for name in after}
    name = place or ",".join(sorted(after))
    return _operation("change_fact", fact["op"], before, dict(after), sources, reason, place=name)


def supersede_fact(
    fact: Fact, by_op: str, at: str, sources: Sequence[str], reason: str
) -> Operation:
    """Let a fact hold no longer from `at` on; `by_op` takes its place."""
    after = {"invalid_at": at, "superseded_by": by_op}
    return change_fact(fact, after, sources, reason, place=by_op)


def settle_fact(op: str, reason: str) -> Operation:
    """A new fact was looked at together with its neighbours."""
    return _operation("settle_fact", op, {"dreamed": False}, {"dreamed": True}, [op], reason)


def link(entry_id: str, fact_op: str, created: str, reason: str) -> Operation:
    """Link a journal entry and a fact, both ways. The fact is named by its operation id."""
    return _link(entry_id, fact_op, "made_of", created, reason, of="entry_fact")


def link_facts(op: str, other: str, relation: str, created: str, reason: str) -> Operation:
    """Link two facts, both ways; both are named by their operation ids."""
    return _link(op, other, relation, created, reason, of="facts")


def link_memories(entry_id: str, other: str, created: str, reason: str) -> Operation:
    """Link a journal entry to a memory that it stands on, both ways; both by the ids they have."""
    return _link(entry_id, other, "evidence", created, reason, of="memories")


def unlink(end: str, other: str, value: Mapping[str, Any], reason: str) -> Operation:
    """Take a link away, of which one end is gone; both named by the ids they have."""
    before = {"other": other, "of": "memories", **value}
    return _operation("unlink", end, before, None, [end, other], reason, place=other)


def _link(
    target: str, other: str, relation: str, created: str, reason: str, *, of: str
) -> Operation:
    after = {"other": other, "of": of, "relation": relation, "created": created, "reason": reason}
    return _operation("link", target, None, after, [target, other], reason, place=other)


def prune_entry(entry: JournalEntry, reason: str) -> Operation:
    """Forget a journal entry; the operation keeps it as long as the night can be undone."""
    return _operation("prune_entry", entry["id"], dict(entry), None, entry["sources"], reason)


def reflected(before: str | None, at: str) -> Operation:
    """Begin to count importance anew: insights were stored."""
    changed = {"at": before}, {"at": at}
    return _operation("reflected", "reflection", *changed, [], "insights were stored", place=at)


def observe_entity(
    entity_id: str,
    name: str,
    observation: Observation,
    *,
    aliases: Sequence[str] = (),
    kept: int,
    now: str,
    reason: str,
) -> Operation:
    """Add an observation to an entity's profile, and aliases; a new one is made under `name`.

    `kept`: observations that a profile keeps at most (settings.observations_kept).
    """
    after = {
        "name": name,
        "observation": dict(observation),
        "aliases": list(aliases),
        "kept": kept,
        "now": now,
    }
    sources, place = observation["sources"], observation["id"]
    return _operation("observe_entity", entity_id, None, after, sources, reason, place=place)


def change_entity(
    profile: EntityProfile,
    attributes: Mapping[str, Attribute],
    settled: Collection[str],
    pruned: Collection[str],
    sources: Sequence[str],
    reason: str,
) -> Operation:
    """Give a profile attributes; the observations `settled` are consolidated, those `pruned` go.

    Only these are named, so that what is noticed meanwhile stays.
    """
    whole = {one["id"]: dict(one) for one in profile["observations"]}
    old = {one: {"consolidated": whole[one]["consolidated"]} for one in settled}
    before = {
        "attributes": {name: profile["attributes"].get(name) for name in attributes},
        "observations": {**old, **{one: whole[one] for one in pruned}},
    }
    after = {
        "attributes": dict(attributes),
        "observations": {**{one: {"consolidated": True} for one in old}, **dict.fromkeys(pruned)},
    }
    place = ",".join(sorted(attributes))
    return _operation("change_entity", profile["id"], before, after, sources, reason, place=place)


def meet_entity(entity_id: str, event: Event, *, now: str, reason: str) -> Operation:
    """Note that a direct message was answered, in its sender's profile; new, it is made."""
    after = {"name": event["sender"], "event": event["id"], "at": event["at"], "now": now}
    ids = [event["id"]]
    return _operation("meet_entity", entity_id, None, after, ids, reason, place=event["id"])


def _operation(
    kind: Any,
    target: str,
    before: Any,
    after: Any,
    sources: Sequence[str],
    reason: str,
    *,
    place: str = "",
) -> Operation:
    """`place` tells operations of one kind on one target apart."""
    return {
        "id": operation_id(kind, target, place),
        "kind": kind,
        "target": target,
        "before": before,
        "after": after,
        "sources": list(sources),
        "reason": reason,
    }
