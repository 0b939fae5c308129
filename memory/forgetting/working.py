"""Working memory and the conversation without a forgotten person. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast

from langchain_core.messages import (
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)

from memory.forgetting.erasure import Erasure
from memory.forgetting.scrubbing import FORGOTTEN
from memory.messages import EVENT_KEY, event_of, is_history, is_summary, mark_of, text_of
from memory.messages import MARK as SUMMARY
from memory.planning import Goals
from memory.records import (
    AssistantPrompt,
    Conversation,
    Event,
    ParkedTick,
    Projects,
    PromptVersion,
    SessionMemory,
)
from memory.state import at_rest

Values: TypeAlias = dict[str, Any]

_NEVER = datetime.min.replace(tzinfo=UTC)

_SPOKEN = ("content", "tool_calls", "invalid_tool_calls", "additional_kwargs", "artifact")
"""Fields of a message that hold what a model or a tool said."""


def events_in_state(values: Mapping[str, Any], owner: str) -> list[Event]:
    """Events in the state: the one in hand, parked, overheard, and those of the conversation."""
    parked = [one["event"] for one in values.get("parked", [])]
    found = [values.get("event"), *parked, *values.get("context_buffer", [])]
    for message in values.get("messages", []):
        if not isinstance(message, HumanMessage):
            continue
        mark = mark_of(message) if is_history(message) else {"event": str(message.id), "at": ""}
        if mark.get("event"):
            event = event_of(message, owner=owner, now=_NEVER)
            found.append(cast(Event, {**event, "id": mark["event"], "at": str(mark.get("at"))}))
    return [one for one in found if one]


def dropped(values: Mapping[str, Any], erasure: Erasure) -> list[ParkedTick]:
    """Parked ticks that no longer wait: those of erased events, and those that name the person.

    Scrubbed, a tick would ask for approval of other arguments than the model gave. If the event of
    a dropped tick stays, its tick runs again.
    """
    return [one for one in values.get("parked", []) if not _still_waits(one, erasure)]


def state_after(values: Mapping[str, Any], erasure: Erasure, handled: Mapping[str, int]) -> Values:
    """The scrubbed state between two runs, once the inbox is settled; {} before the first run."""
    after: Values = {}
    for key, value in at_rest(values).items():
        rule = _RULES.get(key)
        if key == "messages":
            after[key] = history_after(value, erasure, handled)
        elif key == "handled":
            after[key] = []
        elif rule is not None and value:
            after[key] = rule(value, erasure)
        else:
            after[key] = erasure.scrubber.value(value)
    return after


def history_after(
    messages: Sequence[AnyMessage], erasure: Erasure, handled: Mapping[str, int]
) -> list[AnyMessage]:
    """The conversation as it stays.

    The ticks of erased events go, and summaries that cover them. A tick whose tools returned an
    erased memory keeps messages without texts. Elsewhere the lines that name the person are cut.
    """
    ticks = ticks_of(messages, erasure.events, handled)
    informed = informed_ticks(messages, erasure)
    left = []
    for message in messages:
        if _tick(message) in ticks or _event(message) in erasure.events:
            continue
        if isinstance(message, SystemMessage) and is_summary(message):
            after = _summary_after(message, erasure)
        else:
            by_model = not isinstance(message, HumanMessage)
            after = _message_after(message, erasure, blank=by_model and _tick(message) in informed)
        if after is not None:
            left.append(after)
    return left


def ticks_of(
    messages: Sequence[AnyMessage], events: Collection[str], handled: Mapping[str, int]
) -> set[int]:
    """The ticks in the conversation that one of `events` set off.

    The `handled` mark names the tick of a message that was compacted away, unless the tick handled
    another event, too.
    """
    asked = {_tick(one): _event(one) for one in messages if isinstance(one, HumanMessage)}
    theirs = {tick for tick, event in asked.items() if tick is not None and event in events}
    others = {tick for event, tick in handled.items() if event not in events}
    cut = {tick for event, tick in handled.items() if event in events} - set(asked)
    return theirs | (cut - others)


def informed_ticks(messages: Sequence[AnyMessage], erasure: Erasure) -> set[int | None]:
    """The ticks in the conversation whose tools returned an erased memory, or may have."""
    if not erasure.gone:
        return set()
    found = {_tick(one) for one in messages if _shows_erased(one, erasure)}
    first = next((one for one in messages if not isinstance(one, SystemMessage)), None)
    # A compaction may have cut a tick in two: what its tools returned is out of sight.
    beheaded = any(map(is_summary, messages)) and not isinstance(first, HumanMessage | None)
    return found | {_tick(first)} if first is not None and beheaded else found


def _message_after(message: AnyMessage, erasure: Erasure, *, blank: bool) -> AnyMessage:
    before = messages_to_dict([message])[0]
    data = erasure.scrubber.value(before["data"])
    if data is before["data"] and not blank:
        return message
    data = {**data}
    if blank:
        spoken = {key: one for key, one in before["data"].items() if key in _SPOKEN}
        data |= erasure.scrubber.blank(spoken)
    # These fields bind messages to each other, and hold nobody's words.
    kept = ("id", "type", "tool_call_id")
    data |= {key: before["data"][key] for key in kept if key in before["data"]}
    if EVENT_KEY in before["data"]["additional_kwargs"]:
        mark = {EVENT_KEY: erasure.scrubber.value(mark_of(message))}
        data["additional_kwargs"] = data["additional_kwargs"] | mark
    if data == before["data"]:
        return message
    after: Any = messages_from_dict([{**before, "data": data}])[0]
    return cast(AnyMessage, after)


def _summary_after(message: SystemMessage, erasure: Erasure) -> AnyMessage | None:
    metadata = message.additional_kwargs.get("metadata", {})
    sources = metadata.get("sources", []) if isinstance(metadata, dict) else []
    if not erasure.events.isdisjoint(sources):
        return None
    text = erasure.scrubber.text(str(message.text).removeprefix(SUMMARY).strip())
    return None if text is None else message.model_copy(update={"content": f"{SUMMARY}\n{text}"})


def _shows_erased(message: AnyMessage, erasure: Erasure) -> bool:
    if not isinstance(message, ToolMessage):
        return False
    text = text_of(message.content)
    return any(f'"{one}"' in text for one in erasure.memories)


def _tick(message: AnyMessage) -> int | None:
    tick = mark_of(message).get("tick")
    return tick if isinstance(tick, int) else None


def _event(message: AnyMessage) -> str | None:
    if not isinstance(message, HumanMessage):
        return None
    if not is_history(message):
        return str(message.id)
    event = mark_of(message).get("event")
    return str(event) if event is not None else None


def _goals_after(goals: Goals, erasure: Erasure) -> Goals:
    """Structure, ids and progress stay. A goal made for an erased event, and all goals below it,
    lose their texts. Fields that say who made a goal, or whose words it rests on, lose the person.
    """
    scrubber, after = erasure.scrubber, dict[str, Any]()
    for id_, goal in goals.items():
        below = _is_below(id_, goals, erasure.goals)
        after[id_] = {
            **goal,
            **({"by": scrubber.label(goal["by"])} if goal.get("by") else {}),
            **scrubber.origins(goal),
            "description": FORGOTTEN if below else scrubber.value(goal["description"]),
        }
        if "public" in goal:
            after[id_]["public"] = [] if below else scrubber.value(goal["public"])
    return after


def _is_below(id_: str, goals: Goals, erased: frozenset[str]) -> bool:
    seen: set[str] = set()
    at: str | None = id_
    while at is not None and at in goals and at not in seen:
        if at in erased:
            return True
        seen.add(at)
        at = goals[at]["parent_id"]
    return False


def _projects_after(projects: Projects, erasure: Erasure) -> Projects:
    renamed, active = erasure.scrubber.renamed, projects["active"]
    return {
        "active": renamed.get(active, active) if active is not None else None,
        "slots": {
            renamed.get(key, key): erasure.scrubber.value(slot)
            for key, slot in projects["slots"].items()
        },
    }


def _session_memory_after(memory: SessionMemory, erasure: Erasure) -> SessionMemory:
    """A fact or pattern goes if the person said it, or if nothing of it is left."""
    scrub, names = erasure.scrubber, erasure.names
    said_by = memory.get("said_by", {})

    def left(texts: list[str]) -> list[str]:
        scrubbed = (scrub.text(text) for text in texts if not names.means(said_by.get(text)))
        return [text for text in scrubbed if text is not None]

    after: SessionMemory = {
        **memory,
        "key_facts": left(memory["key_facts"]),
        "learned_patterns": left(memory["learned_patterns"]),
        "completed_tasks": scrub.value(memory["completed_tasks"]),
    }
    if said_by:
        after["said_by"] = {
            kept: scrub.label(by) for text, by in said_by.items() for kept in left([text])
        }
    if origins := memory.get("origins"):
        labels = {text: [*map(scrub.label, names)] for text, names in origins.items()}
        after["origins"] = {kept: labels[text] for text in labels for kept in left([text])}
    if private := memory.get("private"):
        after["private"] = left(private)
    return after


def _conversations_after(
    conversations: dict[str, Conversation], erasure: Erasure
) -> dict[str, Conversation]:
    return {
        key: erasure.scrubber.value(conversation)
        for key, conversation in conversations.items()
        if not (erasure.names.means(conversation["entity"]) or erasure.names.within(key))
    }


def _still_waits(parked: ParkedTick, erasure: Erasure) -> bool:
    event = parked["event"]
    if event is not None and event["id"] in erasure.events:
        return False
    return bool(erasure.scrubber.value(parked) == parked)


def _prompt_after(prompt: AssistantPrompt, erasure: Erasure) -> AssistantPrompt:
    """Versions keep their numbers and lose the lines that name the person."""
    scrub = erasure.scrubber
    versions: list[PromptVersion] = [
        {
            **version,
            "text": scrub.text(version["text"]) or "",
            "reason": scrub.value(version["reason"]),
            "by": scrub.label(version["by"]),
        }
        for version in prompt["versions"]
    ]
    return {**prompt, "text": scrub.text(prompt["text"]) or "", "versions": versions}


_RULES: Mapping[str, Callable[[Any, Erasure], Any]] = {
    "goals": _goals_after,
    "projects": _projects_after,
    "session_memory": _session_memory_after,
    "conversations": _conversations_after,
    "shared_channels": lambda channels, erasure: erasure.scrubber.value(channels),
    "context_buffer": lambda events, erasure: [
        erasure.scrubber.value(event) for event in events if event["id"] not in erasure.events
    ],
    "parked": lambda parked, erasure: [one for one in parked if _still_waits(one, erasure)],
    "assistant_prompt": _prompt_after,
}
