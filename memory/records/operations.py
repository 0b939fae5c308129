"""Operations: the only form in which steps and tools ask for changes to long-term memory.

An operation names its target, the values before and after, its sources and a reason. Awake, a
tool's operations are applied at once; asleep they join the night's list.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from memory.records.profiles import Attribute, EntityProfile, Observation, Page
from memory.records.records import Event, Fact, FactDraft, JournalEntry, Operation
from memory.text import content_stems

REFLECTION = "reflection"
"""Store namespace: `last` -> {at}, when insights were last stored."""

BLANK: Mapping[str, Any] = {
    "tags": [],
    "earlier": [],
    "disputed": [],
    "depends_on": [],
    "doubtful": [],
    "other_words": [],
}
"""The values of a fact's fields that were never written."""


def operation_id(*parts: str) -> str:
    """An id from sources and position (32 hex digits). The same parts give the same id."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]


def part_id(op: str, by: str) -> str:
    """The operation that keeps the part of the fact `op` which the fact `by` did not end."""
    return operation_id("remains", op, by)


def with_values(operations: Iterable[Operation]) -> list[Operation]:
    """The operations that still have values; a forget leaves only ids, kinds and reasons."""
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
    """Mark an entry as `consolidated` or `below_threshold`."""
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
    """Change fields of a fact. The fact, and what supersedes it, are named by operation id."""
    before = {name: fact.get(name, BLANK.get(name)) for name in after}
    name = place or ",".join(sorted(after))
    return _operation("change_fact", fact["op"], before, dict(after), sources, reason, place=name)


def supersede_fact(
    fact: Fact, by_op: str, at: str, sources: Sequence[str], reason: str
) -> Operation:
    """Supersede a fact by the fact `by_op`, from the time `at` on."""
    after = {"invalid_at": at, "superseded_by": by_op}
    return change_fact(fact, after, sources, reason, place=by_op)


def doubt_fact(fact: Fact, fallen: str, sources: Sequence[str], reason: str) -> Operation:
    """Mark a fact as doubtful, because the fact `fallen` that it depends on no longer holds."""
    doubts = list(dict.fromkeys([*fact.get("doubtful", []), fallen]))
    return change_fact(fact, {"doubtful": doubts}, sources, reason, place=f"doubtful {fallen}")


def last_heir(fact: Fact, known: Mapping[str, Fact]) -> Fact:
    """The last of those that superseded a fact one after the other; the fact itself if it holds.

    `known`: by what `superseded_by` names, as far as they are known.
    """
    seen = set[str]()
    while (heir := known.get(fact["superseded_by"] or "")) and fact["op"] not in seen:
        seen.add(fact["op"])
        fact = heir
    return fact


def end_doubts(facts: Mapping[str, Fact], sources: Sequence[str], reason: str) -> list[Operation]:
    """End the doubts whose cause is gone: the fact behind it holds, and none contradicts it. Pure.

    What its speaker said instead of a contradicting fact may go on contradicting. `facts`: by
    operation id. What their marks name beside them is taken to hold as it did.
    """
    known = {key: fact for fact in facts.values() for key in (fact["op"], fact["id"])}
    holding = {op: fact for op, fact in facts.items() if fact["invalid_at"] is None}
    against = {
        op: {by for by in fact.get("disputed", ()) if _goes_on(known.get(by), fact, known)}
        for op, fact in holding.items()
    }
    contradicted = {op for op, others in against.items() if others}.union(*against.values())
    made = list[Operation]()
    for fact in holding.values():
        was = fact.get("doubtful", [])
        left = [op for op in was if op not in holding or op in contradicted]
        if left != was:
            after = {"doubtful": left}
            made.append(change_fact(fact, after, sources, reason, place="doubts ended"))
    return made


def _goes_on(by: Fact | None, fact: Fact, known: Mapping[str, Fact]) -> bool:
    """Whether `by`, or what its speaker said in its place, contradicts a fact."""
    if by is None or by["invalid_at"] is None:
        return True
    heir = last_heir(by, known)
    if heir["invalid_at"] or heir["speaker"] != by["speaker"]:
        return False
    mine, was, now = ({*content_stems(one["text"])} for one in (fact, by, heir))
    return len(mine & now) >= _OF_ONE_THING and mine.isdisjoint(now - was)


_OF_ONE_THING = 2
"""Telling words that two statements about one thing share, at least."""


def settle_fact(op: str, reason: str) -> Operation:
    """Mark a new fact as compared with its neighbours."""
    return _operation("settle_fact", op, {"dreamed": False}, {"dreamed": True}, [op], reason)


def link(entry_id: str, fact_op: str, created: str, reason: str) -> Operation:
    """Link a journal entry and a fact, both ways; the fact by its operation id."""
    return _link(entry_id, fact_op, "made_of", created, reason, of="entry_fact")


def link_facts(op: str, other: str, relation: str, created: str, reason: str) -> Operation:
    """Link two facts, both ways; both by operation id."""
    return _link(op, other, relation, created, reason, of="facts")


def link_memories(entry_id: str, other: str, created: str, reason: str) -> Operation:
    """Link a journal entry to its evidence, both ways; both by memory id."""
    return _link(entry_id, other, "evidence", created, reason, of="memories")


def unlink(end: str, other: str, value: Mapping[str, Any], reason: str) -> Operation:
    """Remove a link with a missing end; both ends by memory id."""
    before = {"other": other, "of": "memories", **value}
    return _operation("unlink", end, before, None, [end, other], reason, place=other)


def _link(
    target: str, other: str, relation: str, created: str, reason: str, *, of: str
) -> Operation:
    after = {"other": other, "of": of, "relation": relation, "created": created, "reason": reason}
    return _operation("link", target, None, after, [target, other], reason, place=other)


def prune_entry(entry: JournalEntry, reason: str) -> Operation:
    """Remove a journal entry; the operation keeps it as long as the night can be undone."""
    return _operation("prune_entry", entry["id"], dict(entry), None, entry["sources"], reason)


def reflected(before: str | None, at: str) -> Operation:
    """Restart the count of importance at `at`, because insights were stored."""
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
    """Add an observation and aliases to a profile that keeps `kept`; a new one is called `name`."""
    after = {
        "name": name,
        "observation": dict(observation),
        "aliases": list(aliases),
        "kept": kept,
        "now": now,
    }
    sources, place = observation["sources"], observation["id"]
    return _operation("observe_entity", entity_id, None, after, sources, reason, place=place)


def add_entity(entity_id: str, name: str, *, speaks: bool, now: str, reason: str) -> Operation:
    """Begin a profile with nothing but a name. `speaks`: it is a person, who said something."""
    after = {"name": name, "entity_type": "person" if speaks else "unknown", "now": now}
    return _operation("add_entity", entity_id, None, after, [], reason)


def change_entity(
    profile: EntityProfile,
    attributes: Mapping[str, Attribute | None],
    settled: Collection[str],
    pruned: Collection[str],
    sources: Sequence[str],
    reason: str,
    *,
    read_until: str | None = None,
    place: str = "",
) -> Operation:
    """Set attributes of a profile, mark observations `settled` as consolidated, remove `pruned`.

    Nothing else is named, so that what is observed meanwhile stays. An attribute that is None goes.

    `read_until`: facts made until then are read. `place`: see `_operation`.
    """
    whole = {held["id"]: dict(held) for held in profile["observations"]}
    old = {id_: {"consolidated": whole[id_]["consolidated"]} for id_ in settled}
    before = {
        "attributes": {name: profile["attributes"].get(name) for name in attributes},
        "observations": {**old, **{id_: whole[id_] for id_ in pruned}},
    }
    after = {
        "attributes": dict(attributes),
        "observations": {**{id_: {"consolidated": True} for id_ in old}, **dict.fromkeys(pruned)},
    }
    if read_until is not None:
        before["read_until"], after["read_until"] = profile.get("read_until"), read_until
    place = place + ",".join(sorted(attributes))
    return _operation("change_entity", profile["id"], before, after, sources, reason, place=place)


def write_page(id_: str, before: Page | None, after: Page | None, reason: str) -> Operation:
    """Replace a page; None: there is none."""
    lines = [line for page in (before, after) if page for line in page["lines"]]
    sources = list(dict.fromkeys(op for line in lines for op in line["facts"]))
    was, now = (dict(page) if page else None for page in (before, after))
    return _operation("write_page", id_, was, now, sources, reason)


def meet_entity(
    entity_id: str,
    event: Event,
    *,
    now: str,
    reason: str,
    names: Sequence[str] = (),
    owner: bool = False,
) -> Operation:
    """Note in the sender's profile, new if need be, that a direct message was answered.

    `names`: other names that the sender gave for themselves. An `owner` is believed: what was known
    under such a name is the owner's from now on.
    """
    after: dict[str, Any] = {
        "name": event["sender"],
        "event": event["id"],
        "at": event["at"],
        "now": now,
    }
    if names:
        after |= {"aliases": [*names], "owner": owner}
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
    """`place` distinguishes operations of one kind on one target."""
    return {
        "id": operation_id(kind, target, place),
        "kind": kind,
        "target": target,
        "before": before,
        "after": after,
        "sources": list(sources),
        "reason": reason,
    }
