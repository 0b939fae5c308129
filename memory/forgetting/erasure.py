"""Deciding which memories are erased with a person, before anything is changed. Pure.

Two rules decide: names and lineage. An event goes if the person sent it or if it names them. An
entry or a fact goes if it is by the person, if a fact names them, or if anything that it was made
from goes: a text made from several sources cannot be divided. Of what stays, the lines that name
the person are cut (`memory.forgetting.scrubbing`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, cast

from memory.audit import AuditEntry
from memory.forgetting.scrubbing import FORGOTTEN, Forgettable, Names, Scrubber, Statement, compared
from memory.journal import SYNTHESIS
from memory.records import EntityProfile, Event, Fact, JournalEntry, end_doubts, part_id
from memory.text import sentences, terms


class KnownMemory(NamedTuple):
    """The part of a memory on which the decision depends."""

    entries: Sequence[JournalEntry]
    facts: Sequence[Fact]
    profiles: Sequence[EntityProfile]
    events: Sequence[Event]
    """Events that wait, are set aside, or are in the state."""
    projects: Sequence[str]
    """Keys of project slots."""
    links: Mapping[str, Sequence[str]] = {}
    """Memory id -> ids linked to it."""


class Acts(NamedTuple):
    """The assistant's acts in ticks of erased events, from the audit log."""

    goals: frozenset[str]
    """Ids of the goals that it created."""
    written: frozenset[str]
    """Texts that it passed to tools."""


@dataclass(frozen=True)
class Erasure:
    """The memories that are erased, and the others as they stay."""

    names: Forgettable
    scrubber: Scrubber
    profiles: frozenset[str]
    events: frozenset[str]
    goals: frozenset[str]
    before: Mapping[str, JournalEntry]
    entries: Mapping[str, JournalEntry | None]
    """Journal entries as they stay; None for those that go."""
    facts: Mapping[str, Fact]
    gone: frozenset[str]
    """Ids of erased events, entries and facts, and the operation ids of the facts."""
    links: Mapping[str, Sequence[str]]
    since: str
    """When the oldest erased memory was made (ISO 8601); an earlier night saw none of them."""

    @cached_property
    def all_gone(self) -> frozenset[str]:
        """Ids of everything that is erased: `gone`, and the profiles."""
        return self.gone | self.profiles

    @cached_property
    def memories(self) -> frozenset[str]:
        """Ids of the entries and facts that go."""
        return self.gone - self.events

    @cached_property
    def rewritten(self) -> list[JournalEntry]:
        """Entries that stay with a changed text."""
        return [left for id_, left in self.entries.items() if left and left != self.before[id_]]


def names_of(entity: str, known: KnownMemory) -> tuple[Names, frozenset[str]]:
    """The names of the person meant by `entity`, and the ids of their profiles.

    A profile is the person's if its id, its name, an alias or a sender's id equals `entity`;
    similarity does not count. A profile whose own name contains theirs ("Ana's dog") goes too.
    """
    key = compared(entity)
    mine = [
        profile
        for profile in known.profiles
        if profile["id"] == entity or key in map(compared, _called(profile))
    ]
    others = [name for one in known.profiles if one not in mine for name in _called(one)]
    others += [str(one["source_entity"]) for one in known.entries if is_of_event(one)]
    given = [] if any(profile["id"] == entity for profile in mine) else [entity]
    names = Names([*(name for profile in mine for name in _called(profile)), *given], others)
    named_after = (profile for profile in known.profiles if names.within(profile["name"]))
    return names, frozenset(profile["id"] for profile in (*mine, *named_after))


def events_of(known: KnownMemory, names: Names) -> frozenset[str]:
    """Ids of the events that the person sent, or whose text or id names them."""

    def theirs(id_: str, sender: str | None, text: str) -> bool:
        return names.means(sender) or names.within(f"{id_.replace('_', ' ')}\n{text}")

    waiting = {one["id"] for one in known.events if theirs(one["id"], one["sender"], one["text"])}
    journaled = {
        entry["sources"][0]
        for entry in known.entries
        if is_of_event(entry)
        and theirs(entry["sources"][0], entry["source_entity"], entry["content"])
    }
    return frozenset(waiting | journaled)


def is_of_event(entry: JournalEntry) -> bool:
    """Whether the entry records an event, and is no note of the assistant's."""
    return len(entry["sources"]) == 1 and entry["source_type"] not in ("inference", "compaction")


def acts_of(log: Collection[AuditEntry]) -> Acts:
    """The acts in `log`, which has the entries of ticks of erased events."""
    goals = (entry["target"] for entry in log if entry["what"] == "goal_created")
    calls = (entry["detail"].get("args") for entry in log if entry["what"] == "tool_call")
    return Acts(frozenset(goals), frozenset(text for args in calls for text in _texts(args)))


def decide(known: KnownMemory, start: Start, acts: Acts) -> Erasure:
    """Decide which memories are erased with those of `start`, and how the others stay.

    `acts`: what the assistant did in ticks of erased events. An entry that a remaining fact cites
    stays, with FORGOTTEN for its text.
    """
    names = start.subject
    gone = descendants(known, names, start.events | start.memories)
    scrubber = Scrubber(
        names,
        written=acts.written,
        ids=frozenset(one for one in start.events if names.in_id(one)),
        renamed=_renamed(known.projects, names),
    )
    facts = {one["id"]: one for one in known.facts if one["id"] in gone}
    before = {one["id"]: one for one in known.entries}
    entries = {
        id_: None if id_ in gone else entry_after(entry, scrubber) for id_, entry in before.items()
    }
    if start.names is None:
        # An entry without any words left stays if a remaining fact cites it.
        staying = (fact for fact in known.facts if fact["id"] not in gone)
        cited = {id_ for fact in staying for id_ in fact["source_entries"]}
        empty = [id_ for id_, left in entries.items() if left is None and id_ in cited]
        entries |= {id_: {**before[id_], "content": FORGOTTEN} for id_ in empty}
    gone = gone.union(id_ for id_, left in entries.items() if left is None)
    made = [before[id_]["timestamp"] for id_, left in entries.items() if left is None]
    made += [one["created"] for one in facts.values()]
    return Erasure(
        names=names,
        scrubber=scrubber,
        profiles=start.profiles,
        events=start.events,
        goals=acts.goals,
        before=before,
        entries=entries,
        facts=facts,
        gone=gone,
        links=known.links,
        since="" if start.memories else min(made, default=""),
    )


def descendants(known: KnownMemory, names: Forgettable, start: frozenset[str]) -> frozenset[str]:
    """`start` and the ids of all memories that are the person's or derive from what goes."""
    gone = set(start)
    entries = {one["id"]: one for one in known.entries}
    facts = {one["id"]: one for one in known.facts}
    while True:
        entries_going = [id_ for id_, one in entries.items() if _entry_goes(one, gone, names)]
        facts_going = [id_ for id_, one in facts.items() if _fact_goes(one, gone, names)]
        if not entries_going and not facts_going:
            return frozenset(gone)
        gone.update(entries.pop(id_)["id"] for id_ in entries_going)
        for id_ in facts_going:
            gone.update((id_, facts.pop(id_)["op"]))


def entry_after(entry: JournalEntry, scrubber: Scrubber) -> JournalEntry | None:
    """The entry without lines that name the person; None if nothing is left."""
    label = SYNTHESIS if entry["content"].startswith(SYNTHESIS) else ""
    words = (entry["content"], *entry["tags"], *entry["related_projects"])
    if not scrubber.prefilter.within("\n".join((*words, *entry.get("origins", ())))):
        return entry
    content = scrubber.text(entry["content"].removeprefix(SYNTHESIS))
    if content is None:
        return None
    after: Any = {
        **entry,
        "content": label + content,
        "tags": [one for one in entry["tags"] if not scrubber.names.within(one)],
        "related_projects": [scrubber.value(one) for one in entry["related_projects"]],
        **scrubber.origins(entry),
    }
    return cast(JournalEntry, after)


def fact_after(fact: Fact, erasure: Erasure) -> dict[str, Any]:
    """The fields that change in a fact that stays.

    The fact is valid again if the fact that superseded it goes. A night's notes on it are dropped
    if they name the person, or if an erased memory is linked to the fact: they may derive from it.
    """
    after = erasure.scrubber.origins(fact)
    if fact["superseded_by"] in erasure.gone:
        after |= {"superseded_by": None, "invalid_at": None}
    words = fact.get("other_words", [])
    if erasure.scrubber.value(words) != words:
        after["other_words"] = []
    notes = {key: one for key, one in fact.items() if key in ("context", "tags", "earlier")}
    beside = not erasure.gone.isdisjoint(erasure.links.get(fact["id"], ()))
    if any(notes.values()) and (beside or erasure.scrubber.value(notes) != notes):
        after |= {"context": None, "tags": [], "earlier": []}
    for name in ("disputed", "depends_on", "doubtful"):
        if name in fact:
            after[name] = [one for one in fact[name] if one not in erasure.gone]
    old: Mapping[str, Any] = dict(fact)
    # A missing field that would become empty does not change.
    return {key: new for key, new in after.items() if (new != old[key] if key in old else new)}


def facts_after(facts: Collection[Fact], erasure: Erasure) -> dict[str, dict[str, Any]]:
    """The fields that change, by the ids of the facts that stay and change.

    A doubt ends with the fact that caused it, or when that fact holds again.
    """
    changes = {fact["op"]: fact_after(fact, erasure) for fact in facts}
    after = {fact["op"]: cast(Fact, {**fact, **changes[fact["op"]]}) for fact in facts}
    for operation in end_doubts(after, [], "forgotten"):
        changes[operation["target"]] |= operation["after"]
    return {after[op]["id"]: changed for op, changed in changes.items() if changed}


def _entry_goes(entry: JournalEntry, gone: Collection[str], names: Forgettable) -> bool:
    return names.means(entry["source_entity"]) or any(one in gone for one in _made_from(entry))


def _fact_goes(fact: Fact, gone: Collection[str], names: Forgettable) -> bool:
    if any(id_ in gone for id_ in (fact["id"], *_cites(fact))) or names.within(fact["text"]):
        return True
    people = filter(None, (fact["speaker"], *fact["entities"]))
    return any(names.means(name) or names.within(name) for name in people)


def _renamed(keys: Sequence[str], names: Forgettable) -> dict[str, str]:
    naming = [one for one in keys if names.within(one) or names.within(one.replace("_", " "))]
    free = (f"forgotten_{n}" for n in range(1, 2 + len(keys)) if f"forgotten_{n}" not in keys)
    return dict(zip(naming, free, strict=False))


def _called(profile: EntityProfile) -> list[str]:
    return [profile["name"], *profile["aliases"], *profile["senders"]]


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


Kind = Literal["entity", "fact", "entry"]


class ForgetTarget(NamedTuple):
    """Who or what is to be forgotten."""

    kind: Kind
    name: str
    """A name, or the id of a fact or an entry."""


def _made_from(entry: JournalEntry) -> tuple[str, ...]:
    return (entry["id"], *entry["sources"], *entry.get("evidence", []))


def _cites(fact: Fact) -> tuple[str, ...]:
    return (*fact["source_entries"], *fact["source_events"])


class Start(NamedTuple):
    """What a forget starts from; `decide` adds what derives from it."""

    said: list[str]
    """The texts and sentences that say what is forgotten; empty for a person."""
    events: frozenset[str]
    memories: frozenset[str]
    names: Names | None = None
    profiles: frozenset[str] = frozenset()
    """Ids of a person's profiles."""

    @property
    def subject(self) -> Forgettable:
        """What texts are searched for."""
        return self.names or Statement(self.said)


def start_of(wanted: ForgetTarget, known: KnownMemory) -> Start:
    """What goes with the person, the fact or the entry `wanted`."""
    if wanted.kind == "entity":
        names, profiles = names_of(wanted.name, known)
        return Start([], events_of(known, names), frozenset(), names, profiles)
    if wanted.kind == "entry":
        return _of_entry(next(one for one in known.entries if one["id"] == wanted.name), known)
    return _of_fact(next(one for one in known.facts if one["id"] == wanted.name), known)


def cited_by(facts: Iterable[Fact], gone: Collection[str]) -> frozenset[str]:
    """Ids of entries and events that the facts which stay were made from."""
    staying = (fact for fact in facts if fact["id"] not in gone)
    return frozenset(id_ for fact in staying for id_ in _cites(fact))


def _of_entry(entry: JournalEntry, known: KnownMemory) -> Start:
    own = [one["text"] for one in known.facts if one["source_entries"] == [entry["id"]]]
    events = entry["sources"] if is_of_event(entry) else []
    return Start([entry["content"], *own], frozenset(events), frozenset((entry["id"],)))


def _of_fact(fact: Fact, known: KnownMemory) -> Start:
    same = Statement([fact["text"]])
    successors = (one["op"] for one in known.facts if one["id"] == fact["superseded_by"])
    # A fact that was superseded in part left its remainder as a fact of its own.
    remainders = {part_id(fact["op"], op) for op in successors}
    others = (one for one in known.facts if one != fact)
    going = [fact, *(one for one in others if one["op"] in remainders or same.within(one["text"]))]
    gone = {id_ for one in going for id_ in (one["id"], one["op"])}
    needed = cited_by(known.facts, gone)
    said, memories = [one["text"] for one in going], set(gone)
    events, cut = set[str](), set[str]()
    for entry, texts in _sources(going, known):
        said += [line for text in texts for line in sentences_on(entry["content"], text)]
        if entry["id"] in needed:
            cut.update((entry["id"], *entry["sources"]))
            continue
        memories.add(entry["id"])
        if is_of_event(entry) and needed.isdisjoint(entry["sources"]):
            events.update(entry["sources"])
    return Start(said, frozenset(events), frozenset(memories.union(_derived(known, cut, needed))))


def sentences_on(content: str, text: str) -> list[str]:
    """The sentences of an entry that a fact rests on: all that share the most words with it."""
    wanted, lines = set(terms(text)), sentences(content)
    shared = [len(wanted.intersection(terms(line))) for line in lines]
    return [line for line, number in zip(lines, shared, strict=True) if number == max(shared)]


def _sources(facts: Iterable[Fact], known: KnownMemory) -> Iterator[tuple[JournalEntry, list[str]]]:
    """The entries that the facts cite, each with the texts of the facts that cite it."""
    of_facts = [({*one["source_entries"], *one["source_events"]}, one["text"]) for one in facts]
    for entry in known.entries:
        ids = {entry["id"], *(entry["sources"] if is_of_event(entry) else [])}
        if texts := [text for cited, text in of_facts if not cited.isdisjoint(ids)]:
            yield entry, texts


def _derived(known: KnownMemory, cut: Collection[str], needed: Collection[str]) -> Iterator[str]:
    """Entries made from an entry that loses a sentence go whole, unless a fact cites them."""
    for entry in known.entries:
        made_from = (*entry["sources"], *entry.get("evidence", []))
        derived = not is_of_event(entry) and entry["id"] not in needed
        if derived and any(one in cut for one in made_from):
            yield entry["id"]
