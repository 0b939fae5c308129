"""Where a tool's write comes from: the part of an operation's id that tells ticks and nights apart.

Made of what the record fixes (the event, the tick's number, the night's time), never of model text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from memory import events as journal
from memory.guards import copied, from_elsewhere, said_in, worded
from memory.messages import mark_of
from memory.operations import Collector, PlanCollector
from memory.records import Event, JournalEntry
from memory.settings import Settings
from tools.answers import Runtime, event_of, now_of

_WORD = re.compile(r"\w+")


def origin_of(runtime: Runtime, sink: Collector) -> str:
    """`night:<time>`, `tick:<event id>`, or `tick:autonomous:<number>` where no event is in hand.

    An event is acted on in one tick only, however often that tick is tried; other ticks may come
    between the tries, so the number would not do.
    """
    if isinstance(sink, PlanCollector):
        return f"night:{now_of(runtime).isoformat()}"
    event = event_of(runtime)
    return f"tick:{event['id']}" if event else f"tick:autonomous:{runtime.state['tick']}"


def is_extracting(runtime: Runtime) -> bool:
    """Whether an emergency's extraction asks, and not the tick's own loop."""
    loop = runtime.state.get("loop")
    return loop is not None and loop["compaction"] == "forced"


def shared_words(one: str, other: str) -> int:
    """How many different words two texts have in common."""
    return len(set(_WORD.findall(one.casefold())) & set(_WORD.findall(other.casefold())))


# What a write can stand on, and what else the model was shown beside it.
#
# Recalled memories, rules, answers of tools and the assistant's own replies are no grounds: what
# comes from them is not stored again (ruling 17).


OWN_TOOLS = frozenset(
    {
        "add_goal",
        "add_journal_entry",
        "add_session_memory",
        "compact_session_memory",
        "create_project",
        "decompose_goal",
        "delegate_task",
        "get_system_status",
        "list_projects",
        "noop",
        "recall_memories",
        "review_journal",
        "send_message",
        "store_memory",
        "swap_project",
        "update_entity_observation",
        "update_goal",
        "update_project",
        "update_system_prompt",
    }
)
"""Tools that tell of the assistant itself and its memory; any other looks at the world."""

RECALLED = "This stands in what you were shown of your memory, your rules or your tools"
WHERE_FROM = "Store only what was said or happened, from the words of what you cite."


@dataclass
class Shown:
    """What the model was shown that is no ground, as texts."""

    own: list[str] = field(default_factory=list)
    """Rules, recalled memories, goals, summaries, and answers of the assistant's own tools."""
    returned: list[str] = field(default_factory=list)
    """Answers of tools that look at the world."""
    replies: list[str] = field(default_factory=list)
    """What the assistant said."""

    @property
    def everything(self) -> list[str]:
        """All of it."""
        return [*self.own, *self.returned, *self.replies]

    def recalls(self, text: str, grounds: Sequence[str]) -> bool:
        """Whether `text` is no news: recalled, a rule, or a copy of a reply."""
        if from_elsewhere(text, grounds, self.own):
            return True
        # Of a reply only its very words: what was agreed on is told in others.
        copy = copied(text, self.replies) >= COPY
        return copy and from_elsewhere(text, grounds, self.replies)

    def returns(self, text: str, grounds: Sequence[str]) -> bool:
        """Whether `text` comes from what a tool returned."""
        return from_elsewhere(text, grounds, self.returned)


COPY = 0.6


def shown(runtime: Runtime) -> Shown:
    """What the call's prompt held beside what was said."""
    made = Shown()
    context = runtime.state.get("context")
    if context is not None and context["system"]:
        made.own.append(context["system"])
    exchange: list[AnyMessage] = runtime.state.get("exchange") or []
    for message in (*runtime.state["messages"], *exchange):
        text = str(message.text)
        if isinstance(message, SystemMessage):
            made.own.append(text)
        elif isinstance(message, AIMessage) and text:
            made.replies.append(text)
        elif isinstance(message, ToolMessage):
            (made.own if message.name in OWN_TOOLS else made.returned).append(text)
    return made


def in_sight(runtime: Runtime, settings: Settings, sink: Collector) -> list[JournalEntry]:
    """What was said, oldest first, as journal entries: what a note or an observation stands on.

    In a tick that is its event; in a night what its batch shows; in an extraction the history.
    """
    if sink.shown:
        return list(sink.shown.values())
    event = event_of(runtime)
    events = [event] if event is not None else []
    if sink.shown is not None or is_extracting(runtime):
        events = list(_history(runtime))
    return _as_entries(events, settings)


def grounds(entries: Sequence[JournalEntry]) -> list[str]:
    """The words of `entries`, with the names of those who said them."""
    return [*map(worded, said_in(entries))]


def heard_from_others(speaker: str | None, runtime: Runtime) -> list[str]:
    """What the history and the buffer hold of the words of others than `speaker`."""
    return [one["text"] for one in heard(runtime) if one["sender"] != speaker]


def heard(runtime: Runtime) -> list[Event]:
    """What people said in the history, and what was overheard."""
    return [*_history(runtime), *runtime.state["context_buffer"]]


def _history(runtime: Runtime) -> Iterator[Event]:
    now = now_of(runtime).isoformat()
    for message in runtime.state["messages"]:
        if isinstance(message, HumanMessage) and (one := _event(message, now)) is not None:
            yield one


def _as_entries(events: Sequence[Event], settings: Settings) -> list[JournalEntry]:
    return [
        journal.entry_for_event(one, known_entities=(), projects=(), settings=settings)
        for one in events
    ]


def _event(message: HumanMessage, now: str) -> Event | None:
    """The event that a message of the history was; None where nobody said it."""
    mark = mark_of(message)
    if not mark.get("event") or message.name is None:
        return None
    return {
        "id": str(mark["event"]),
        "at": str(mark.get("at") or now),
        "sender": message.name,
        "text": str(message.text),
        "channel": mark.get("channel"),
        "addressed": True,
    }
