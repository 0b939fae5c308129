"""What of a memory is the person's, by what it was made from. Pure.

The rule: an event is erased that the person sent or that names them. What was made from erased
events alone goes with them; a fact goes with any of its sources, for it cannot be divided. An
archive or a note that covers other events too is written anew without the sentences that are the
person's (`memory.forgetting.scrubbing`), and goes where nothing is left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

from memory.forgetting.names import Names
from memory.forgetting.resemblance import Speech
from memory.forgetting.scrubbing import Level, Scrubber
from memory.records import Event, Fact, JournalEntry

ARCHIVE = "[CONTEXT SYNTHESIS]\n"
"""How the content of an archive begins (`memory.journal.archive_entry`)."""


def erased_events(
    events: Iterable[Event], entries: Iterable[JournalEntry], names: Names
) -> set[str]:
    """The ids of the events that the person sent, or that name them, be it in the id alone."""

    def theirs(id_: str, sender: str | None, text: str) -> bool:
        spelled = f"{id_.replace('_', ' ')}\n{text}"
        return names.means(sender) or names.within(spelled)

    waiting = {one["id"] for one in events if theirs(one["id"], one["sender"], one["text"])}
    journaled = {
        one["sources"][0]
        for one in entries
        if is_of_event(one) and theirs(one["sources"][0], one["source_entity"], one["content"])
    }
    return waiting | journaled


def speech(
    entries: Iterable[JournalEntry],
    events: Iterable[Event],
    erased: Collection[str],
    names: Names,
    texts: Iterable[str] = (),
) -> list[Speech]:
    """All that was said: in the journal, by events that are not in it, and in erased `texts`."""

    def of(id_: str, at: str, sender: str | None, text: str) -> Speech:
        return Speech(at, text, erased=id_ in erased, own=names.means(sender))

    said = {
        one["sources"][0]: of(
            one["sources"][0], one["timestamp"], one["source_entity"], one["content"]
        )
        for one in entries
        if is_of_event(one)
    }
    waiting = {one["id"]: of(one["id"], one["at"], one["sender"], one["text"]) for one in events}
    return [*(waiting | said).values(), *(Speech("", one, erased=True) for one in texts)]


def is_of_event(entry: JournalEntry) -> bool:
    """Whether the entry is what somebody said, and no note of the assistant's."""
    return len(entry["sources"]) == 1 and entry["source_type"] not in ("inference", "compaction")


def fate(entry: JournalEntry, gone: Collection[str], names: Names) -> Literal["goes"] | Level:
    """Whether an entry goes with what is `gone` (ids), else how it is to be scrubbed."""
    if names.means(entry["source_entity"]):
        return "goes"
    sources = [*entry["sources"], *entry.get("evidence", [])]
    erased = [one for one in sources if one in gone]
    if erased and len(erased) == len(sources):
        return "goes"
    if is_of_event(entry) and entry["id"].startswith("event_"):
        return "said"
    return "mixed" if erased else "unknown"


def entry_after(
    entry: JournalEntry, gone: Collection[str], scrubber: Scrubber
) -> JournalEntry | None:
    """The entry as it stays; None where it goes, the same where nothing of it is the person's."""
    level = fate(entry, gone, scrubber.names)
    if level == "goes":
        return None
    head = ARCHIVE if entry["content"].startswith(ARCHIVE) else ""
    content = scrubber.text(entry["content"].removeprefix(ARCHIVE), level)
    if content is None:
        return None
    after: JournalEntry = {
        **entry,
        "content": head + content,
        "tags": [one for one in entry["tags"] if not scrubber.names.within(one)],
        "related_projects": [scrubber.value(one, "said") for one in entry["related_projects"]],
        "sources": [one for one in entry["sources"] if one not in gone],
    }
    if "evidence" in entry:
        after["evidence"] = [one for one in entry["evidence"] if one not in gone]
    return after


def fact_goes(
    fact: Fact,
    events: Collection[str],
    entries: Mapping[str, JournalEntry | None],
    before: Mapping[str, JournalEntry],
    scrubber: Scrubber,
) -> bool:
    """Whether a fact goes: it is about the person, by them, or from what is erased.

    `entries` are the entries as they stay, None for those that go; `before` as they were. Where a
    source stays that covered erased events too, the fact's own words decide.
    """
    names = scrubber.names
    said = (fact["speaker"], *fact["entities"])
    if any(names.means(one) or names.within(one) for one in said if one):
        return True
    if names.within(fact["text"]):
        return True
    sources = fact["source_entries"]
    if any(entries.get(one, False) is None for one in sources):
        return True
    erased = set(fact["source_events"]) & set(events)
    covered = {event for one in sources if one in before for event in before[one]["sources"]}
    if erased - covered:
        return True
    touched = erased or any(one in before and entries[one] != before[one] for one in sources)
    return bool(touched) and scrubber.text(fact["text"], "mixed") != fact["text"]


def fact_after(
    fact: Fact, events: Collection[str], facts: Mapping[str, Fact], scrubber: Scrubber
) -> dict[str, Any]:
    """What changes of a fact that stays while `facts` go.

    It loses erased sources, holds again where the fact that superseded it goes, and keeps of what
    was noted on it in the light of others what is not the person's.
    """
    ops = {one["op"] for one in facts.values()}
    after: dict[str, Any] = {
        "source_events": [one for one in fact["source_events"] if one not in events]
    }
    if fact["superseded_by"] in facts:
        after |= {"superseded_by": None, "invalid_at": None}
    if context := fact.get("context"):
        after["context"] = scrubber.text(context, "mixed")
    if "tags" in fact:
        after["tags"] = [one for one in fact["tags"] if scrubber.text(one, "mixed") == one]
    if "earlier" in fact:
        after["earlier"] = [one for one in fact["earlier"] if scrubber.value(one, "mixed") == one]
    if "disputed" in fact:
        after["disputed"] = [one for one in fact["disputed"] if one not in ops]
    before: Mapping[str, Any] = dict(fact)
    return {key: one for key, one in after.items() if one != before[key]}
