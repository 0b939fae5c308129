"""A prompt as the offline model reads it, cut at its newest human message. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from memory.messages import MARK as SUMMARY
from memory.messages import (
    GoalLine,
    ProjectLine,
    as_said,
    data_in,
    event_text,
    front_of,
    mark_of,
    prompt_lines,
    unescaped,
)

_NOW = re.compile(r"^Now: (?P<now>.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Call:
    """A tool call to make."""

    tool: str
    args: dict[str, Any]


@dataclass(frozen=True)
class Done:
    """A tool call since the newest human message, and its result once it is there."""

    name: str
    args: dict[str, Any]
    result: Mapping[str, Any] | str | None


@dataclass(frozen=True)
class Quotable:
    """A text that an answer can quote."""

    label: str
    """Where it stands, with date and speaker: "memory, 2026-05-10, Alice"."""
    text: str


@dataclass(frozen=True)
class Prompt:
    """A prompt cut at its newest human message."""

    system: str
    """The system message, and what stands in front of the newest event."""
    human: str
    sender: str
    """Whoever sent it; "the user" when it has no name or the owner's."""
    history: tuple[BaseMessage, ...]
    done: tuple[Done, ...]
    now: str | None = None
    """The time as the prompt's clock shows it: weekday, date, time and zone."""

    def system_lines(self, tag: str) -> list[str]:
        """The lines of a block beside the event."""
        return (data_in(self.system, tag) or "").splitlines()

    def data_lines(self, tag: str) -> list[str]:
        """The lines of a block of the newest human message; all lines if it has no such block."""
        data = data_in(self.human, tag)
        return (unescaped(self.human) if data is None else data).splitlines()

    @property
    def goals(self) -> list[GoalLine]:
        """The goals, each before its subtasks."""
        found = map(prompt_lines.read_goal, self.system_lines("goals"))
        return [goal for goal in found if goal]

    @property
    def projects(self) -> list[ProjectLine]:
        """The active project, if any, first and with its context; then the others."""
        return prompt_lines.read_projects(self.system_lines("projects"))

    @property
    def active_project(self) -> ProjectLine | None:
        """The project whose context is in the prompt."""
        return next((project for project in self.projects if project.status == "active"), None)


def read_prompt(messages: Sequence[BaseMessage]) -> Prompt:
    """Cut the messages at the newest human one. Without one, the event in hand is empty."""
    # A prompt component of the user's is nothing that somebody said.
    messages = [message for message in messages if "component" not in mark_of(message)]
    places = [at for at, message in enumerate(messages) if isinstance(message, HumanMessage)]
    at = places[-1] if places else len(messages)
    newest = messages[at] if places else HumanMessage("")
    system = [str(message.text) for message in messages if isinstance(message, SystemMessage)]
    front = str(newest.text)[: front_of(newest)]
    name = newest.name if newest.name not in (None, "", "local") else None
    return Prompt(
        system="\n".join([*(text for text in system if not text.startswith(SUMMARY)), front]),
        human=event_text(newest).strip(),
        sender=name or "the user",
        history=tuple(messages[:at]),
        done=tuple(_done(messages[at + 1 :])),
        now=clocks[-1].strip() if (clocks := _NOW.findall("\n".join([*system, front]))) else None,
    )


_LISTED = re.compile(r"^- ([a-zA-Z0-9_-]{1,64})\(", re.MULTILINE)


def known_tools(bound: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of the bound tools, and of those that the description of `use_tool` lists."""
    functions = [one["function"] for one in bound]
    listed = [one["description"] for one in functions if one["name"] == "use_tool"]
    return [one["name"] for one in functions] + _LISTED.findall("\n".join(listed))


def sources(prompt: Prompt) -> list[Quotable]:
    """All that can be quoted: memories, session memory, projects, goals, events, history."""
    found = _shown("memory", prompt.system_lines("semantic_memories"))
    found += _shown("memory", prompt.system_lines("pages"))
    remembered = prompt_lines.read_session_memory(prompt.system_lines("session_memory"))
    found += [Quotable("session memory", text) for text in remembered]
    active = prompt.active_project
    for project in prompt.projects:
        label = f"project {project.key} ({project.status})"
        label = f"the active project {project.key}" if project == active else label
        found += [Quotable(label, text) for text in (project.summary, *project.context) if text]
    for goal in prompt.goals:
        state = f"({goal.status}, {goal.progress}%)"
        found.append(Quotable("goal", f"{goal.description} {state}"))
    found += _shown("what was said nearby", prompt.system_lines("context_buffer"))
    return found + _from_history(prompt)


def _done(messages: Sequence[BaseMessage]) -> list[Done]:
    results = {each.tool_call_id: each for each in messages if isinstance(each, ToolMessage)}
    return [
        Done(call["name"], call["args"], _result(results.get(call["id"] or "")))
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    ]


def _result(message: ToolMessage | None) -> Mapping[str, Any] | str | None:
    if message is None:
        return None
    text = event_text(message)
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value if isinstance(value, dict) else text


def _shown(kind: str, lines: Sequence[str]) -> list[Quotable]:
    found = [line for line in map(prompt_lines.read_shown, lines) if line]
    return [
        Quotable(", ".join(filter(None, (kind, line.at, line.speaker))), line.text)
        for line in found
    ]


def _from_history(prompt: Prompt) -> list[Quotable]:
    found: list[Quotable] = []
    for message in prompt.history:
        text = str(message.text)
        if text.startswith(SUMMARY):
            lines = as_said(text.removeprefix(SUMMARY).strip()).splitlines()
            found += [Quotable("the summary of this conversation", line) for line in lines if line]
    # The newest first: what corrects something comes before it. Ticks begin with a bracket.
    for message in reversed(prompt.history):
        text = event_text(message).strip() if isinstance(message, HumanMessage) else ""
        if text and not text.startswith("["):
            by = f", {message.name}" if message.name else ""
            found.append(Quotable(f"this conversation{by}", text))
    return found
