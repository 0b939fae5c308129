"""What the offline model reads in a prompt: the blocks and lines that the nodes write. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from memory.messages import as_said, unescaped
from memory.text import content_stems, shortened

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


# Which goal or project a person means: matched by id, key or words against the prompt. Pure.


_GOAL_ID = re.compile(r"\bgoal_\d+_\d+\b")


_POINTERS = {"it", "that", "this", "that one", "this one", "that goal", "this goal"}


_THE_GOAL = {"goal", "the goal", "my goal", "our goal"}


_LEAST_SHARE = 0.5
"""Of the words in a phrase, the part that must stand in the goal's description."""


@dataclass(frozen=True)
class Call:
    """A tool call to make."""

    tool: str
    args: dict[str, Any]


@dataclass(frozen=True)
class Unclear:
    """A request that cannot be carried out as it is put; said in the reply."""

    text: str


@dataclass(frozen=True)
class Later:
    """A request that waits for the result of a call made before it in the same message."""


Step = Call | Unclear | Later


@dataclass
class Scene:
    """What is known while the requests of one message are read, in order."""

    prompt: Prompt
    remarks: str = ""
    """The message's sentences that ask for nothing."""
    planned: list[Call] = field(default_factory=list)
    pointed: GoalLine | None = None
    """The goal that the message spoke of last: what "it" means."""

    def __post_init__(self) -> None:
        self.goals: list[GoalLine] = goals(self.prompt)
        """Those in the prompt, and those that the requests read so far have made."""
        self.awaited: list[Call] = []
        """Goals asked for by the requests read so far, and not made yet."""
        self.projects: list[ProjectLine] = projects(self.prompt)
        self.active: ProjectLine | None = active_project(self.prompt)

    def plan(self, call: Call) -> None:
        """Take a request into account for those that follow it."""
        self.planned.append(call)
        if call.tool == "add_goal":
            made = added_goal(self.prompt, call.args)
            if made is None:
                self.awaited.append(call)
            else:
                self.goals.append(made)
                self.pointed = made

    @property
    def person(self) -> str:
        """How to call the sender in a sentence."""
        return self.prompt.sender.replace("_", " ")


def find_goal(phrase: str, scene: Scene) -> GoalLine | Unclear | Later | None:
    """The goal that `phrase` means. None: it speaks of no goal that is known."""
    if named := _GOAL_ID.search(phrase):
        known = next((goal for goal in scene.goals if goal.id == named[0]), None)
        return known or Unclear(f"I know no goal {named[0]}.")
    bare = phrase.strip(" \"'.,:").lower()
    if bare in _POINTERS | _THE_GOAL:
        return _pointed(bare, scene)
    stems = set(content_stems(phrase)) - {"goal"}
    if any(_share(stems, one.args["description"]) >= _LEAST_SHARE for one in scene.awaited):
        return Later()
    found = _best([goal for goal in scene.goals if goal.status == "active"], stems)
    found = found or _best(scene.goals, stems)
    if not found and re.search(r"\bgoal\b", phrase, re.IGNORECASE):
        return Unclear(f"I know no goal like '{shortened(phrase, 60)}'.")
    return _only(found, stems, scene.goals)


def find_project(phrase: str, scene: Scene) -> ProjectLine | Unclear | None:
    """The project that `phrase` means, by its key or by words of its key and summary."""
    slug = key_of(phrase)
    exact = [one for one in scene.projects if one.key.lower() in (phrase.lower(), slug)]
    if exact:
        return exact[0]
    stems = set(content_stems(phrase)) - {"project"}
    if not stems:
        return None
    near = [
        one
        for one in scene.projects
        if stems & set(content_stems(_spaced(one.key)))
        and stems <= set(content_stems(f"{_spaced(one.key)} {one.summary}"))
    ]
    if len(near) > 1:
        return Unclear(f"Which project do you mean: {', '.join(one.key for one in near)}?")
    return near[0] if near else None


def key_of(phrase: str) -> str:
    """A project key made from a phrase: "the Garden Fence" gives garden_fence."""
    kept = re.findall(r"[^\W_]+", re.sub(r"['\u2019]", "", phrase.lower().replace("_", " ")))
    while kept and kept[0] in ("the", "a", "an", "my", "our"):
        kept = kept[1:]
    return "_".join(kept[:5])


def _pointed(bare: str, scene: Scene) -> GoalLine | Unclear | Later | None:
    if scene.awaited:
        return Later()
    if scene.pointed is not None:
        return scene.pointed
    if bare not in _THE_GOAL:
        return None
    roots = [goal for goal in scene.goals if goal.depth == 0 and goal.status == "active"]
    if len(roots) == 1:
        return roots[0]
    return _which(roots) if roots else Unclear("There is no open goal.")


def _best(candidates: Sequence[GoalLine], stems: set[str]) -> list[GoalLine]:
    """Those that share most words with the phrase, if they share enough."""
    shares = [(_share(stems, goal.description), goal) for goal in candidates]
    best = max((share for share, _ in shares), default=0.0)
    return [goal for share, goal in shares if share == best >= _LEAST_SHARE]


def _share(stems: set[str], description: str) -> float:
    return len(stems & set(content_stems(description))) / len(stems) if stems else 0.0


def _only(
    found: Sequence[GoalLine], stems: set[str], all_goals: Sequence[GoalLine]
) -> GoalLine | Unclear | None:
    """The one meant: alone, or said in all its words, or the parent of the others."""
    if len(found) <= 1:
        return found[0] if found else None
    complete = [goal for goal in found if set(content_stems(goal.description)) <= stems]
    if len(complete) == 1:
        return complete[0]
    below = _subtree(found[0], all_goals)
    return found[0] if set(found[1:]) <= below else _which(found)


def _subtree(goal: GoalLine, all_goals: Sequence[GoalLine]) -> set[GoalLine]:
    """The goals below `goal`; the prompt shows each goal before its subtasks."""
    below: set[GoalLine] = set()
    for other in all_goals[list(all_goals).index(goal) + 1 :]:
        if other.depth <= goal.depth:
            break
        below.add(other)
    return below


def _which(found: Sequence[GoalLine]) -> Unclear:
    names = "; ".join(f"{goal.id} ({shortened(goal.description, 60)})" for goal in found[:5])
    return Unclear(f"Which goal do you mean: {names}?")


def _spaced(key: str) -> str:
    return re.sub(r"[_\W]+", " ", key)
