"""Evidence of a tool's write: where the write comes from, and what its text may stand on.

A write stands on what people said. Recalled memories, rules, answers of tools and the assistant's
own replies are no evidence, and text taken from them is not stored again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from memory.events import entry_for_event
from memory.guards import (
    MIN_OWN_SHARE,
    Source,
    from_elsewhere,
    is_copy,
    is_plain,
    languages,
    said_in,
    share,
    ungrounded,
    worded,
)
from memory.messages import data_in, mark_of, prompt_lines
from memory.operations import Collector, PlanCollector
from memory.records import LOCAL_USER, EntityProfile, Event, JournalEntry, names_from
from memory.runtime import settings_of
from memory.text import STOP_WORDS, name_key, regex, says
from tools.answers import Runtime, event_of, now_of
from tools.origins import OWN_TOOLS, owners_in

_WORD = regex(r"\w+")


def origin_of(runtime: Runtime, collector: Collector) -> str:
    """`night:<time>`, `tick:<event id>`, or `tick:autonomous:<number>` without an event.

    Ids of operations are made from it, and so never from model text. A tick with an event goes by
    the event's id, because its number changes when the tick is tried again.
    """
    if isinstance(collector, PlanCollector):
        return f"night:{now_of(runtime).isoformat()}"
    event = event_of(runtime)
    return f"tick:{event['id']}" if event else f"tick:autonomous:{runtime.state['tick']}"


def is_extracting(runtime: Runtime) -> bool:
    """Whether the call comes from the extraction before an emergency compaction."""
    loop = runtime.state.get("loop")
    return loop is not None and loop["compaction"] == "forced"


def shared_words(text: str, other: str) -> int:
    """Number of different words that two texts share."""
    return len(set(_WORD.findall(text.casefold())) & set(_WORD.findall(other.casefold())))


MEMORIES = "semantic_memories"
"""The block of a night's prompt that shows known facts."""

MEMORY_WRITES = frozenset(
    {"add_journal_entry", "add_session_memory", "store_memory", "update_entity_observation"}
)
"""Their answers, rejections above all, repeat what the model proposed, and so prove nothing."""

RECALLED = "This stands in what you were shown of your memory, your rules or your tools"
WHERE_FROM = "Store only what was said or happened, from the words of what you cite."


@dataclass
class ShownTexts:
    """Texts that the model was shown and that are no evidence."""

    own: list[str] = field(default_factory=list)
    """Rules, recalled memories, goals and summaries."""
    returned: list[str] = field(default_factory=list)
    """Answers of tools that look at the world."""
    replies: list[str] = field(default_factory=list)
    """What the assistant said, and what it confirmed."""

    @property
    def everything(self) -> list[str]:
        """All texts but replies: what a reply confirms may be noted again."""
        return [*self.own, *self.returned]

    def recalls(self, text: str, grounds: Sequence[str]) -> bool:
        """Whether `text` repeats a memory or a rule, or a reply that nobody's words bear out."""
        if not is_plain(text) or from_elsewhere(text, grounds, self.own):
            return True
        return share(text, grounds) < MIN_OWN_SHARE and from_elsewhere(text, grounds, self.replies)

    def returns(self, text: str, grounds: Sequence[str]) -> bool:
        """Whether `text` comes from what a tool returned."""
        return from_elsewhere(text, grounds, self.returned)


def shown(runtime: Runtime) -> ShownTexts:
    """The texts of the call's prompt that are no evidence."""
    made = ShownTexts()
    context = runtime.state.get("context")
    if context is not None:
        made.own += [one for one in (context["system"], context.get("front", "")) if one]
    exchange: list[AnyMessage] = runtime.state.get("exchange") or []
    for message in (*runtime.state["messages"], *exchange):
        text = str(message.text)
        if isinstance(message, AIMessage) and text:
            made.replies.append(text)
        elif isinstance(message, SystemMessage):
            made.own.append(text)
        elif isinstance(message, ToolMessage) and message.name not in MEMORY_WRITES:
            (made.own if message.name in OWN_TOOLS else made.returned).append(text)
    return made


@dataclass(frozen=True)
class FactCheck:
    """Checks the facts of one call against what they cite; the prompt is read once for all."""

    runtime: Runtime
    profiles: Sequence[EntityProfile] = ()  # of those whom the facts name

    def unsupported(
        self,
        text: str,
        speaker: str | None,
        cited: Sequence[JournalEntry],
        beside: Sequence[JournalEntry],
    ) -> str | None:
        """Why a text does not follow from the entries that it cites; None if it may.

        `beside`: entries shown with them. They tell whom a pronoun means, and bear nothing out.
        """
        earliest = min(one["timestamp"] for one in cited)
        channels = {one["channel"] for one in cited}
        near = [one for one in beside if one["channel"] in channels]
        before = [one for one in near if one["timestamp"] <= earliest]
        before.sort(key=lambda entry: entry["timestamp"])
        people = [*(one["source_entity"] or "" for one in (*cited, *beside)), *self._senders]
        if self._is_copy(text, cited):
            return f"{RECALLED}, and what it cites says nothing of it"
        owner = _name_of_owner(text, speaker, people)
        tellers = {*owners_in(self.runtime), *(one["source_entity"] or "" for one in cited)}
        called = [names_from(one, tellers) for one in self.profiles]
        own = [
            name
            for profile, names in zip(self.profiles, called, strict=True)
            if any(entry["source_entity"] in profile["senders"] for entry in cited)
            for name in names
        ]
        return ungrounded(
            text,
            owner if speaker == LOCAL_USER and speaker in people else speaker,
            [_named_as(text, _source(one, owner), called) for one in cited],
            before=[_source(one, owner) for one in before],
            people=[one for one in people if one],
            known=self._known,
            called=own,
            zone=settings_of(self.runtime.context).zone,
        )

    def _is_copy(self, text: str, cited: Sequence[JournalEntry]) -> bool:
        """Whether a text stands in the prompt and shares no word with what it cites.

        A reply in another language than its entry may confirm it word for word, and is no such
        copy.
        """
        if share(text, grounds(cited)):
            return False
        seen = self._shown
        alike = any(set(languages(text)) & set(languages(one["content"])) for one in cited)
        others = [*seen.own, *seen.returned, *(seen.replies if alike else ())]
        return is_copy(text, others)

    @cached_property
    def _senders(self) -> list[str]:
        return [one["sender"] for one in heard(self.runtime)]

    @cached_property
    def _shown(self) -> ShownTexts:
        return shown(self.runtime)

    @cached_property
    def _known(self) -> list[Source]:
        exchange: list[AnyMessage] = self.runtime.state.get("exchange") or []
        shown = [str(one.text) for one in exchange if isinstance(one, SystemMessage)]
        lines = [line for text in shown for line in (data_in(text, MEMORIES) or "").splitlines()]
        # A line marked as disputed, past or inferred helps to read a fact, but has no speaker.
        return [
            Source(
                line.text,
                line.speaker if prompt_lines.unmarked(line) == line else None,
                line.at.partition(" ")[2],
            )
            for line in map(prompt_lines.read_shown, lines)
            if line
        ]


def _name_of_owner(text: str, speaker: str | None, people: Sequence[str]) -> str:
    """What a fact calls the local user, whose messages have no name: "Ingrid Solheim"."""
    known = {name_key(one) for one in people}
    opening = _OPENING_NAME.match(text)
    for name in (speaker, opening[0].strip() if opening else None):
        if name and name_key(name) not in known and name.split()[0].lower() not in STOP_WORDS:
            return name
    return LOCAL_USER


_OPENING_NAME = regex(r"(?:[^\W\d_a-z][\w'\u2019-]+ ?)+")


def _source(entry: JournalEntry, owner: str) -> Source:
    who = owner if entry["source_entity"] == LOCAL_USER else entry["source_entity"]
    return Source(entry["content"], who, entry["timestamp"])


def _named_as(fact: str, source: Source, called: Sequence[Sequence[str]]) -> Source:
    """A source with the names of a fact: "Mausi" becomes "Lena" if both name one person."""
    text = source.text
    for names in called:
        for name in (one for one in names if says(fact, one) and not says(text, one)):
            for other in (one for one in names if one != name):
                new = f"{other} {name}" if says(fact, other) else name
                text = new.join(re.split(rf"(?i)(?<!\w){re.escape(other)}(?!\w)", text))
    return source._replace(text=text)


def in_sight(runtime: Runtime, collector: Collector) -> list[JournalEntry]:
    """What people said, oldest first, as journal entries: the evidence for notes and observations.

    It is the event of a tick, the batch of a night, or the history during an extraction.
    """
    if collector.shown:
        return list(collector.shown.values())
    event = event_of(runtime)
    events = [event] if event is not None else []
    if collector.shown is not None or is_extracting(runtime):
        events = list(_history(runtime))
    return [entry_for_event(one, settings=settings_of(runtime.context)) for one in events]


def grounds(entries: Sequence[JournalEntry]) -> list[str]:
    """The texts of `entries` with the names of their speakers."""
    return [*map(worded, said_in(entries))]


def heard_from_others(speaker: str | None, runtime: Runtime) -> list[str]:
    """The words of everyone but `speaker` in the history and the context buffer."""
    return [one["text"] for one in heard(runtime) if one["sender"] != speaker]


def heard(runtime: Runtime) -> list[Event]:
    """What people said in the history and in the context buffer."""
    return [*_history(runtime), *runtime.state["context_buffer"]]


def _history(runtime: Runtime) -> Iterator[Event]:
    now = now_of(runtime).isoformat()
    for message in runtime.state["messages"]:
        mark = mark_of(message)
        if isinstance(message, HumanMessage) and mark.get("event") and message.name is not None:
            yield {
                "id": str(mark["event"]),
                "at": str(mark.get("at") or now),
                "sender": message.name,
                "text": str(message.text),
                "channel": mark.get("channel"),
                "addressed": True,
            }
