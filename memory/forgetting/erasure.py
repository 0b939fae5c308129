"""All that goes with a person, decided before anything is changed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from memory.audit import AuditEntry
from memory.forgetting.lineage import entry_after, erased_events, fact_goes, is_of_event, speech
from memory.forgetting.names import Names, compared
from memory.forgetting.resemblance import Resemblance
from memory.forgetting.scrubbing import Scrubber
from memory.profiles import EntityProfile
from memory.records import Event, Fact, JournalEntry


class Known(NamedTuple):
    """What of a memory has to be known before anything can be decided."""

    entries: Sequence[JournalEntry]
    facts: Sequence[Fact]
    profiles: Sequence[EntityProfile]
    events: Sequence[Event]
    """Those that wait, are set aside, or stand in the state."""
    projects: Sequence[str]
    """Keys of slots."""


class Acts(NamedTuple):
    """What the assistant did because of erased events, as the audit log tells it."""

    goals: frozenset[str]
    """Ids of the goals that it made."""
    written: frozenset[str]
    """The texts that it gave to tools."""


@dataclass(frozen=True)
class Erasure:
    """What goes, and what is left of the rest."""

    names: Names
    scrubber: Scrubber
    profiles: frozenset[str]
    events: frozenset[str]
    goals: frozenset[str]
    before: Mapping[str, JournalEntry]
    entries: Mapping[str, JournalEntry | None]
    """As they stay; None: it goes."""
    facts: Mapping[str, Fact]
    """Those that go."""

    @cached_property
    def memories(self) -> frozenset[str]:
        """The ids of the entries and facts that go."""
        entries = (one for one, left in self.entries.items() if left is None)
        return frozenset((*entries, *self.facts))

    @cached_property
    def gone(self) -> frozenset[str]:
        """The ids of events, entries and facts that go, and the operations that made the facts."""
        ops = (fact["op"] for fact in self.facts.values())
        return frozenset((*self.events, *self.memories, *ops))

    @cached_property
    def rewritten(self) -> list[JournalEntry]:
        """The entries that stay in other words."""
        return [one for id_, one in self.entries.items() if one and one != self.before[id_]]


def names_of(entity: str, known: Known) -> tuple[Names, frozenset[str]]:
    """The names of whoever is meant by `entity`, and the ids of their profiles.

    A profile is theirs that has it as its id, its name, an alias or a sender's id, and no other,
    however much alike. One whose own name names them ("Ana's dog") goes with them.
    """
    key = compared(entity)
    mine = [
        one for one in known.profiles if one["id"] == entity or key in map(compared, _called(one))
    ]
    others = [name for one in known.profiles if one not in mine for name in _called(one)]
    others += [str(one["source_entity"]) for one in known.entries if is_of_event(one)]
    given = [] if any(one["id"] == entity for one in mine) else [entity]
    names = Names([*(name for one in mine for name in _called(one)), *given], others)
    with_them = (one for one in known.profiles if names.within(one["name"]))
    return names, frozenset(one["id"] for one in (*mine, *with_them))


def acts_of(audit: Iterable[AuditEntry], events: frozenset[str]) -> Acts:
    """What the log tells of the ticks of `events`."""
    goals: set[str] = set()
    written: set[str] = set()
    for entry in audit:
        if entry["origin"] not in events:
            continue
        if entry["what"] == "goal_created":
            goals.add(entry["target"])
        elif entry["what"] == "tool_call":
            written |= set(_texts(entry["detail"].get("args")))
    return Acts(frozenset(goals), frozenset(written))


def decide(
    known: Known,
    names: Names,
    profiles: frozenset[str],
    events: frozenset[str],
    acts: Acts,
    texts: Iterable[str] = (),
) -> Erasure:
    """What goes with the erased `events`, and what is left of the rest.

    `texts` were erased too, where an earlier try was broken off.
    """
    before = {one["id"]: one for one in known.entries}
    scrubber = _scrubber(known, names, events, acts, [], texts)
    entries = {one["id"]: entry_after(one, events, scrubber) for one in known.entries}
    facts = {
        fact["id"]: fact
        for fact in known.facts
        if fact_goes(fact, events, entries, before, scrubber)
    }
    # Again, with the facts that stay: what they say, too, is not the person's alone.
    staying = [one["text"] for one in known.facts if one["id"] not in facts]
    scrubber = _scrubber(known, names, events, acts, staying, texts)
    memories = {one for one, left in entries.items() if left is None} | set(facts)
    gone = events.union(memories, (fact["op"] for fact in facts.values()))
    entries = {one["id"]: entry_after(one, gone, scrubber) for one in known.entries}
    return Erasure(names, scrubber, profiles, events, acts.goals, before, entries, facts)


def events_of(known: Known, names: Names) -> frozenset[str]:
    """The events that are the person's."""
    return frozenset(erased_events(known.events, known.entries, names))


def _scrubber(
    known: Known,
    names: Names,
    events: frozenset[str],
    acts: Acts,
    kept: Sequence[str],
    texts: Iterable[str],
) -> Scrubber:
    said = speech(known.entries, known.events, events, names, texts)
    likeness = Resemblance(said, kept=kept, written=acts.written)
    ids = frozenset(one for one in events if names.in_id(one))
    return Scrubber(names, likeness, ids=ids, renamed=_renamed(known.projects, names))


def _renamed(keys: Sequence[str], names: Names) -> dict[str, str]:
    """Other keys for the projects whose key names the person."""
    naming = [one for one in keys if names.within(one) or names.within(one.replace("_", " "))]
    free = (f"forgotten_{n}" for n in range(1, 2 + len(keys)) if f"forgotten_{n}" not in keys)
    return dict(zip(naming, free, strict=False))


def _called(profile: EntityProfile) -> list[str]:
    return [profile["name"], *profile["aliases"], *profile.get("senders", [])]


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
