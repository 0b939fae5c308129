"""What the offline model reads in a prompt: the blocks and lines that the nodes write. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from memory.trust import as_said, unescaped

SUMMARY_MARK = "[CONTEXT SUMMARY]"

_GOAL = re.compile(
    r"^(?P<indent> *)- (?P<id>\S+) \[(?P<priority>\w+)\] (?P<text>.*) "
    r"\((?P<status>\w+), (?P<progress>\d+)%\)$"
)
_DATED = re.compile(r"^- \[(?P<id>[^\]]+)\] (?P<at>\S+) (?P<who>[^:]*): (?P<text>.*)$")
_ACTIVE = re.compile(r"^Active project: (?P<key>.+?) - (?P<summary>.*)$")
_OTHER = re.compile(r"^- (?P<key>.+?) \((?P<status>\w+)\): (?P<summary>.*)$")
_REMEMBERED = re.compile(r"^- (?:fact|pattern): (?P<text>.*)$")
_ENTRY = re.compile(r"^\[(?P<id>[^\]]+)\] (?P<at>\S+) (?P<who>[^:]*): (?P<text>.*)$")


@dataclass(frozen=True)
class GoalLine:
    """A goal as the prompt shows it."""

    id: str
    description: str
    priority: str = "medium"
    status: str = "active"
    progress: int = 0
    depth: int = 0


@dataclass(frozen=True)
class ProjectLine:
    """A project as the prompt shows it."""

    key: str
    summary: str
    status: str = "active"
    context: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """Something that can be quoted."""

    label: str
    """Where it stands, with id and date: "memory [f1], 2026-05-10, Alice"."""
    text: str


@dataclass(frozen=True)
class Entry:
    """A journal entry of a night's batch."""

    id: str
    speaker: str | None
    text: str


@dataclass(frozen=True)
class Done:
    """A tool call since the newest human message, and its result once it is there."""

    name: str
    args: dict[str, Any]
    result: Mapping[str, Any] | str | None


@dataclass(frozen=True)
class Prompt:
    """A prompt cut at its newest human message."""

    system: str
    human: str
    sender: str
    """Whoever sent it; "the user" when it has no name or the owner's."""
    history: tuple[BaseMessage, ...]
    done: tuple[Done, ...]


def read_prompt(messages: Sequence[BaseMessage]) -> Prompt:
    """Cut the messages at the newest human one. Without one, the event in hand is empty."""
    messages = [one for one in messages if not _is_component(one)]
    places = [at for at, one in enumerate(messages) if isinstance(one, HumanMessage)]
    at = places[-1] if places else len(messages)
    newest = messages[at] if places else HumanMessage("")
    system = "\n".join(
        str(one.text)
        for one in messages
        if isinstance(one, SystemMessage) and not str(one.text).startswith(SUMMARY_MARK)
    )
    name = newest.name if newest.name not in (None, "", "local") else None
    return Prompt(
        system=system,
        human=_plain(newest).strip(),
        sender=name or "the user",
        history=tuple(messages[:at]),
        done=tuple(_done(messages[at + 1 :])),
    )


def goals(prompt: Prompt) -> list[GoalLine]:
    """The goals in the prompt, each before its subtasks."""
    return [_goal(match) for match in map(_GOAL.match, _block(prompt, "goals")) if match]


def added_goal(prompt: Prompt, args: Mapping[str, Any]) -> GoalLine | None:
    """The goal that a call of add_goal with these arguments has made since the newest message."""
    for done in prompt.done:
        goal_id = done.result.get("goal_id") if isinstance(done.result, Mapping) else None
        if done.name == "add_goal" and done.args == args and goal_id:
            return GoalLine(str(goal_id), str(args.get("description", "")))
    return None


def projects(prompt: Prompt) -> list[ProjectLine]:
    """The projects in the prompt; the active one, if any, first and with its context."""
    lines = _block(prompt, "character_context")
    found: list[ProjectLine] = []
    for at, line in enumerate(lines):
        if active := _ACTIVE.match(line):
            context = tuple(line.strip() for line in _until_heading(lines[at + 1 :]))
            found.insert(0, ProjectLine(active["key"], active["summary"], "active", context))
    for line in _under(lines, "Other projects:"):
        if other := _OTHER.match(line):
            found.append(ProjectLine(other["key"], other["summary"], other["status"]))
    return found


def active_project(prompt: Prompt) -> ProjectLine | None:
    """The project whose context is in the prompt."""
    shown = any(_ACTIVE.match(line) for line in _block(prompt, "character_context"))
    return projects(prompt)[0] if shown else None


def sources(prompt: Prompt) -> list[Source]:
    """All that can be quoted: memories, session memory, projects, goals, events, history."""
    found = [_dated("memory", match) for match in _dated_lines(prompt, "semantic_memories")]
    lines = _under(_block(prompt, "character_context"), "Session memory:")
    found += [Source("session memory", m["text"]) for m in map(_REMEMBERED.match, lines) if m]
    active = active_project(prompt)
    for project in projects(prompt):
        label = f"project {project.key} ({project.status})"
        label = f"the active project {project.key}" if project == active else label
        found += [Source(label, text) for text in (project.summary, *project.context) if text]
    for goal in goals(prompt):
        state = f"({goal.status}, {goal.progress}%)"
        found.append(Source(f"goal {goal.id}", f"{goal.description} {state}"))
    found += [_dated("event", match) for match in _dated_lines(prompt, "context_buffer")]
    return found + _from_history(prompt)


def entries(text: str) -> list[Entry]:
    """The batch of a night's prompt, in order."""
    found: list[Entry] = []
    for line in unescaped(text.partition("Entries:")[2]).splitlines():
        if line.startswith("Known facts:"):
            break
        if match := _ENTRY.match(line):
            who = match["who"].strip()
            found.append(Entry(match["id"], None if who == "-" else who, match["text"].strip()))
    return found


def data_lines(prompt: Prompt, tag: str) -> list[str]:
    """The lines of a block of data in the newest human message, with what was escaped put back."""
    match = re.search(rf"^<{tag}>\n(.*?)\n</{tag}>$", prompt.human, re.DOTALL | re.MULTILINE)
    return unescaped(match[1] if match else prompt.human).splitlines()


def said_by_people(messages: Sequence[BaseMessage]) -> list[tuple[str, HumanMessage]]:
    """What people said, with its text; ticks and other messages of the system left out."""
    return [
        (text, one)
        for one in messages
        if isinstance(one, HumanMessage)
        and (text := _plain(one).strip())
        and not text.startswith("[")
    ]


def _plain(message: BaseMessage) -> str:
    """A message's text, without the block that marks it as data."""
    return as_said(str(message.text))


def _is_component(message: BaseMessage) -> bool:
    """Whether it is a prompt component of the user's, and nothing that somebody said."""
    mark = message.additional_kwargs.get("circadian")
    return isinstance(mark, dict) and "component" in mark


def _done(messages: Sequence[BaseMessage]) -> list[Done]:
    answers = {one.tool_call_id: one for one in messages if isinstance(one, ToolMessage)}
    return [
        Done(call["name"], call["args"], _result(answers.get(call["id"] or "")))
        for one in messages
        if isinstance(one, AIMessage)
        for call in one.tool_calls
    ]


def _result(message: ToolMessage | None) -> Mapping[str, Any] | str | None:
    if message is None:
        return None
    text = _plain(message)
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value if isinstance(value, dict) else text


def _goal(match: re.Match[str]) -> GoalLine:
    return GoalLine(
        id=match["id"],
        description=match["text"],
        priority=match["priority"],
        status=match["status"],
        progress=int(match["progress"]),
        depth=len(match["indent"]) // 2,
    )


def _dated_lines(prompt: Prompt, tag: str) -> list[re.Match[str]]:
    return [match for match in map(_DATED.match, _block(prompt, tag)) if match]


def _dated(kind: str, match: re.Match[str]) -> Source:
    who = match["who"].strip()
    speaker = f", {who}" if who != "-" else ""
    return Source(f"{kind} [{match['id']}], {match['at']}{speaker}", match["text"])


def _from_history(prompt: Prompt) -> list[Source]:
    found: list[Source] = []
    for one in prompt.history:
        text = str(one.text)
        if text.startswith(SUMMARY_MARK):
            lines = as_said(text.removeprefix(SUMMARY_MARK).strip()).splitlines()
            found += [Source("the summary of this conversation", line) for line in lines if line]
    for text, one in said_by_people(prompt.history):
        mark = one.additional_kwargs.get("circadian")
        event = mark.get("event") if isinstance(mark, dict) else one.id
        place = "this conversation" + (f" [{event}]" if event else "")
        found.append(Source(place + (f", {one.name}" if one.name else ""), text))
    return found


def _block(prompt: Prompt, tag: str) -> list[str]:
    """The lines between the tags, with what the prompt escaped put back."""
    match = re.search(rf"^<{tag}>\n(.*?)\n</{tag}>$", prompt.system, re.DOTALL | re.MULTILINE)
    return unescaped(match[1]).splitlines() if match else []


def _under(lines: Sequence[str], heading: str) -> list[str]:
    return _until_heading(lines[lines.index(heading) + 1 :]) if heading in lines else []


def _until_heading(lines: Sequence[str]) -> list[str]:
    found: list[str] = []
    for line in lines:
        if line in ("Other projects:", "Session memory:"):
            break
        found.append(line)
    return found
