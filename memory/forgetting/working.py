"""Working memory without what is a forgotten person's. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from memory.at_rest import at_rest
from memory.forgetting.erasure import Erasure
from memory.forgetting.history import events_in, history_after
from memory.forgetting.scrubbing import FORGOTTEN
from memory.goals import Goals
from memory.records import Conversation, Event, Projects, SessionMemory
from memory.state import AssistantPrompt, PromptVersion
from memory.tick import ParkedTick

Values: TypeAlias = dict[str, Any]


def events_of(values: Mapping[str, Any], owner: str) -> list[Event]:
    """The events that stand in the state: in hand, parked, overheard, in the history."""
    parked = [one["event"] for one in values.get("parked", [])]
    found = [values.get("event"), *parked, *values.get("context_buffer", [])]
    return [*(one for one in found if one), *events_in(values.get("messages", []), owner)]


def dropped(values: Mapping[str, Any], erasure: Erasure) -> list[ParkedTick]:
    """The ticks that wait for a person and do so no more.

    Those of erased events, and those that hold anything of the person's: a person would approve
    other arguments than the model gave. Where the event of one stays, its tick is done again.
    """
    return [one for one in values.get("parked", []) if not _waits_on(one, erasure)]


def state_after(values: Mapping[str, Any], erasure: Erasure, handled: Mapping[str, int]) -> Values:
    """The values between two runs, scrubbed; {} where the agent has never run.

    Events that they contain are to be out of the inbox by then (`memory.inbox.settle`).
    """
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
            after[key] = erasure.scrubber.value(value, "unknown")
    return after


def _goals(goals: Goals, erasure: Erasure) -> Goals:
    """Structure, ids and progress stay. A goal that the person set goes with all its steps."""
    return {
        id_: {
            **goal,
            "description": FORGOTTEN
            if _stands_below(id_, goals, erasure.goals)
            else erasure.scrubber.value(goal["description"], "unknown"),
        }
        for id_, goal in goals.items()
    }


def _stands_below(id_: str, goals: Goals, erased: frozenset[str]) -> bool:
    seen: set[str] = set()
    at: str | None = id_
    while at is not None and at in goals and at not in seen:
        if at in erased:
            return True
        seen.add(at)
        at = goals[at]["parent_id"]
    return False


def _projects(projects: Projects, erasure: Erasure) -> Projects:
    renamed, active = erasure.scrubber.renamed, projects["active"]
    return {
        "active": renamed.get(active, active) if active is not None else None,
        "slots": {
            renamed.get(key, key): erasure.scrubber.value(slot, "unknown")
            for key, slot in projects["slots"].items()
        },
    }


def _session_memory(memory: SessionMemory, erasure: Erasure) -> SessionMemory:
    """A fact or pattern of which nothing is left goes; a completed task stays in the list."""
    scrub = erasure.scrubber

    def left(texts: list[str]) -> list[str]:
        return [one for text in texts if (one := scrub.text(text, "unknown")) is not None]

    after: SessionMemory = {
        **memory,
        "key_facts": left(memory["key_facts"]),
        "learned_patterns": left(memory["learned_patterns"]),
        "completed_tasks": scrub.value(memory["completed_tasks"], "unknown"),
    }
    if names := memory.get("said_by"):
        said = {one: by for text, by in names.items() for one in left([text])}
        after["said_by"] = {text: "".join(left([by])) or FORGOTTEN for text, by in said.items()}
    return after


def _conversations(
    conversations: dict[str, Conversation], erasure: Erasure
) -> dict[str, Conversation]:
    return {
        key: erasure.scrubber.value(one, "unknown")
        for key, one in conversations.items()
        if not (erasure.names.means(one["entity"]) or erasure.names.within(key))
    }


def _overheard(events: list[Event], erasure: Erasure) -> list[Event]:
    staying = [one for one in events if one["id"] not in erasure.events]
    return [erasure.scrubber.value(one, "said") for one in staying]


def _parked(parked: list[ParkedTick], erasure: Erasure) -> list[ParkedTick]:
    return [one for one in parked if _waits_on(one, erasure)]


def _waits_on(parked: ParkedTick, erasure: Erasure) -> bool:
    event = parked["event"]
    if event is not None and event["id"] in erasure.events:
        return False
    return bool(erasure.scrubber.value(parked, "unknown") == parked)


def _prompt(prompt: AssistantPrompt, erasure: Erasure) -> AssistantPrompt:
    """The versions stay as they are numbered; of their texts what is the person's is cut."""
    scrub = erasure.scrubber
    versions: list[PromptVersion] = [
        {
            **one,
            "text": scrub.text(one["text"], "unknown") or "",
            "reason": scrub.value(one["reason"], "unknown"),
            "by": scrub.value(one["by"], "label"),
        }
        for one in prompt["versions"]
    ]
    return {**prompt, "text": scrub.text(prompt["text"], "unknown") or "", "versions": versions}


_RULES: Mapping[str, Callable[[Any, Erasure], Any]] = {
    "goals": _goals,
    "projects": _projects,
    "session_memory": _session_memory,
    "conversations": _conversations,
    "context_buffer": _overheard,
    "parked": _parked,
    "assistant_prompt": _prompt,
}
