"""Lines of prompts: each format is written and read here, and nowhere else. Pure.

A prompt shows records as lines, one record a line. The nodes write them for every model; the
offline model, which is rules and no language model, reads them. Readers return None for a line of
another format, and expect text as `unescaped` gives it.

Ids are long, so models shorten them, mistype them and copy the brackets around them. A prompt shows
handles instead, 1, 2, 3 ..., and an answer is joined to its records by these numbers alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator

from memory.messages.trust import as_data, unescaped
from memory.records import EntityProfile, Fact, Goal, JournalEntry, Observation, RecallHit
from memory.text import one_line, regex, shortened, shown_day, shown_time

TICK = "[autonomous tick]"
"""First words of the message that sets off a tick without an event."""

EXTRACTION = "[pre-compaction]"
"""First words of the message that asks for conclusions before a compaction."""

SUMMARISE = "Summarise the conversation below"
"""First words of the system prompt that asks for a summary."""

SETTLE = "Call store_memory"
"""First words of the message that reminds a night's model of its tools."""

ENTRIES = "Entries:"
"""Line before the block of journal entries in a night's prompt."""

FACTS = "Facts, each with the numbers of the entries that it was made from:"
"""Line before the block of facts that are looked at again."""

OTHER_PROJECTS = "Other projects:"

TO_SETTLE = (
    "To settle: when an owner says which one holds, or that a fact still holds though what it "
    "rests on changed, call settle_dispute through use_tool:"
)

_NOBODY = "-"

_ASKED = "    (answers the assistant's question) "

DISPUTED, PAST, INFERENCE = " (disputed)", " (no longer holds)", " (an inference)"
DOUBTFUL = " (in doubt)"
"""Marks of a memory, behind its speaker."""

_DATED = regex(
    r"^(?:- )?\[(?P<id>[^\]]+)\] (?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?"
    r"(?P<at>\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2}(?= )|\S*)) "
    r"(?:(?P<who>[^:]{1,60}): )?(?P<text>.*)$"
)
_SHOWN = regex(
    r"^- (?:\[(?P<id>[^\]]+)\] )?(?P<at>[A-Z][a-z]{2} \d{4}-\d{2}-\d{2}(?: \d{2}:\d{2})?) "
    r"(?:(?P<who>[^:]{1,60}): )?(?P<text>.*)$"
)
_GOAL = regex(
    r"^(?P<indent> *)- (?P<id>\S+) \[(?P<priority>\w+)\] (?P<text>.*) "
    r"\((?P<status>\w+), (?P<progress>\d+)%\)$"
)
_ACTIVE = regex(r"^Active project: (?P<key>.+?) - (?P<summary>.*)$")
_OTHER = regex(r"^- (?P<key>.+?) \((?P<status>\w+)\): (?P<summary>.*)$")
_REMEMBERED = regex(r"^- (?:fact|pattern): (?P<text>.*)$")
_ENTITY = regex(r"^Entity \[(?P<id>[^\]]+)\] (?P<name>.*)$")
_TURN = regex(r"^(?P<role>\w+)(?: \((?P<name>[^)]*)\))?: (?P<text>.*)$")
_PAGE_LINE = regex(
    r"^(?:- |  or )\[(?P<id>[^\]]+)\] (?P<text>.*) \((?:(?P<who>[^()]{1,60}), )?"
    r"(?P<at>[A-Z][a-z]{2} \d{4}-\d{2}-\d{2})(?:, [a-z ]+)?\)$"
)
_CLAIM = regex(
    r"(?:- |or |rests on )?(?:\[(?P<ids>[^\]]+)\]:? ?)?(?P<text>.*?)"
    r"(?: \((?:[^()]{1,60}, )?(?:[A-Z][a-z]{2} )?\d{4}-\d{2}-\d{2}(?:, [a-z ]+)?\))?",
    re.DOTALL,
)
_GOAL_TO_SPLIT = regex(r"^Goal: (?P<text>.+)$", re.MULTILINE)


class DatedLine(NamedTuple):
    """A journal entry, observation, memory, event or fact as a prompt shows it."""

    id: str
    at: str
    """Day, or time up to the minute."""
    speaker: str | None
    text: str


class GoalLine(NamedTuple):
    """A goal as a prompt shows it; `depth` counts the levels above it."""

    id: str
    description: str
    priority: str = "medium"
    status: str = "active"
    progress: int = 0
    depth: int = 0


class ProjectLine(NamedTuple):
    """A project as a prompt shows it; only the active one has a context."""

    key: str
    summary: str
    status: str = "active"
    context: tuple[str, ...] = ()


def entry_line(entry: JournalEntry, handle: str, zone: tzinfo) -> str:
    """A journal entry: `[3] Tue 2026-11-17 09:00 speaker: text`."""
    who = one_line(entry["source_entity"] or _NOBODY)
    return f"[{handle}] {shown_time(entry['timestamp'], zone)} {who}: {one_line(entry['content'])}"


def derived_line(handle: str, text: str, sources: Iterable[str]) -> str:
    """A fact that was made from entries: `[2] text (from 1, 3)`."""
    return f"[{handle}] {one_line(text)} (from {', '.join(sources)})"


def asked_line(question: str) -> str:
    """The assistant's question that the entry above answers."""
    return f"{_ASKED}{one_line(question)}"


def observation_line(seen: Observation, zone: tzinfo) -> str:
    """An observation of an entity: `[id] Tue 2026-11-17 speaker: text`."""
    who = one_line(seen["speaker"] or _NOBODY)
    return f"[{seen['id']}] {shown_day(seen['at'], zone)} {who}: {one_line(seen['text'])}"


def memory_line(when: str, speaker: str | None, text: str, doubt: str = "") -> str:
    """A recalled memory: `- Sun 2026-11-22 15:09 speaker: text`. Nothing cites it: it has no id."""
    return f"- {when} {one_line(speaker or _NOBODY)}{doubt}: {one_line(text)}"


def event_line(id_: str, when: str, who: str, text: str) -> str:
    """An event of the context buffer: `- [id] Sun 2026-11-22 15:09 speaker: text`."""
    return f"- [{one_line(id_)}] {when} {one_line(who)}: {one_line(text)}"


def read_shown(line: str) -> DatedLine | None:
    """Inverse of `memory_line`, `event_line` and `page_line`; names as in `read_dated`."""
    match = _SHOWN.match(line) or _PAGE_LINE.match(line)
    if match is None:
        return None
    who = (match["who"] or _NOBODY).strip()
    speaker = None if who == _NOBODY else who
    return DatedLine(match["id"] or "", match["at"], speaker, match["text"].strip())


def doubt_mark(memory: Mapping[str, Any]) -> str:
    """The mark of a memory that is contradicted, or rests on something that changed."""
    if memory.get("disputed"):
        return DISPUTED
    return DOUBTFUL if memory.get("doubtful") else ""


def with_earlier(hit: RecallHit, zone: tzinfo) -> str:
    """What a memory says, and what it superseded: `X (until Mon 2026-03-09: Y)`."""
    return hit["text"] + "".join(
        f" (until {shown_day(one['until'], zone)}: {one['text']})" for one in hit.get("earlier", ())
    )


def hit_line(hit: RecallHit, handle: str, zone: tzinfo, *, inferred: bool = False) -> str:
    """A memory under a night's question, with its marks; an inference has no speaker."""
    mark = PAST if hit.get("superseded") else doubt_mark(hit)
    who = one_line((not inferred and hit["speaker"]) or _NOBODY)
    marks, says = f"{INFERENCE if inferred else ''}{mark}", one_line(with_earlier(hit, zone))
    return f"[{handle}] {shown_time(hit['at'], zone)} {who}{marks}: {says}"


def fact_line(fact: Fact, handle: str, zone: tzinfo) -> str:
    """A fact of a dream: `[3] Tue 2026-11-17 09:00 speaker: text`."""
    who = f"{one_line(fact['speaker'] or _NOBODY)}{doubt_mark(fact)}"
    return f"[{handle}] {shown_time(fact['valid_from'], zone)} {who}: {one_line(fact['text'])}"


def read_dated(line: str) -> DatedLine | None:
    """Inverse of the dated lines above.

    A name that contains a colon or has over 60 characters is not recognised as the speaker. A text
    without a speaker is read as having one if a colon stands in its first 60 characters.
    """
    match = _DATED.match(line)
    if match is None:
        return None
    who = (match["who"] or _NOBODY).strip()
    speaker = None if who == _NOBODY else who
    return DatedLine(match["id"], match["at"], speaker, match["text"].strip())


def unmarked(line: DatedLine) -> DatedLine:
    """The line without the marks behind its speaker."""
    who = line.speaker or _NOBODY
    for mark in (DISPUTED, DOUBTFUL, PAST, INFERENCE):
        who = who.removesuffix(mark)
    return line._replace(speaker=None if who == _NOBODY else who)


def entity_line(profile: EntityProfile) -> str:
    """The heading above what is known of an entity: `Entity [id] name`."""
    return f"Entity [{profile['id']}] {one_line(profile['name'])}"


def read_entity(line: str) -> tuple[str, str] | None:
    """(id, name)."""
    match = _ENTITY.match(line)
    return (match["id"], match["name"].strip()) if match else None


def known_line(name: str, value: str) -> str:
    """An attribute of an entity: `known name: value`."""
    return f"known {one_line(name)}: {one_line(value)}"


def question_line(question: str) -> str:
    """The heading above the memories near a question."""
    return f"Question: {one_line(question)}"


def goal_to_split(description: str) -> str:
    """The message that asks for a goal's subtasks."""
    return f"Goal: {one_line(description)}"


def read_goal_to_split(message: str) -> str | None:
    """The goal's description, from a whole message."""
    match = _GOAL_TO_SPLIT.search(message)
    return match["text"].strip() if match else None


def goal_line(goal: Goal, depth: int, text: str) -> str:
    """A goal of the tree, two spaces a level. `text` is its description as far as it fits."""
    state = f"({goal['status']}, {goal['progress']}%)"
    return f"{'  ' * depth}- {goal['id']} [{goal['priority']}] {text} {state}"


def read_goal(line: str) -> GoalLine | None:
    """Inverse of `goal_line`."""
    match = _GOAL.match(line)
    if match is None:
        return None
    depth, progress = len(match["indent"]) // 2, int(match["progress"])
    id_, text, level = match["id"], match["text"], match["priority"]
    return GoalLine(id_, text, level, match["status"], progress, depth)


def active_project_line(key: str, summary: str) -> str:
    """The active project; the lines of its context follow, each indented."""
    return f"Active project: {one_line(key)} - {summary}"


def project_line(key: str, status: str, summary: str) -> str:
    """A project under OTHER_PROJECTS."""
    return f"- {one_line(key)} ({status}): {summary}"


def read_projects(lines: Sequence[str]) -> list[ProjectLine]:
    """The projects of their block: the active one, if any, first and with its context."""
    found: list[ProjectLine] = []
    for at, line in enumerate(lines):
        if active := _ACTIVE.match(line):
            context = tuple(each.strip() for each in _until_heading(lines[at + 1 :]))
            found.insert(0, ProjectLine(active["key"], active["summary"], "active", context))
    start = lines.index(OTHER_PROJECTS) + 1 if OTHER_PROJECTS in lines else len(lines)
    for line in lines[start:]:
        if other := _OTHER.match(line):
            found.append(ProjectLine(other["key"], other["summary"], other["status"]))
    return found


def remembered_line(kind: str, text: str, said_by: str = "") -> str:
    """A fact or pattern of session memory."""
    return f"- {kind}: {text}{said_by}"


def read_session_memory(lines: Sequence[str]) -> list[str]:
    """The facts and patterns of their block."""
    found = map(_REMEMBERED.match, lines)
    return [match["text"] for match in found if match]


def turn_line(role: str, name: str | None, text: str) -> str:
    """A message of a conversation to summarise: `role (name): text`, its text in one line."""
    return f"{role}{f' ({one_line(name)})' if name else ''}: {text}"


def read_turn(line: str) -> tuple[str, str] | None:
    """(name or else role, text)."""
    match = _TURN.match(line)
    return (match["name"] or match["role"], match["text"]) if match else None


def page_line(ids: Sequence[str], text: str, speaker: str | None, day: str, doubt: str = "") -> str:
    """A line of a page: `- [id, id] text (speaker, day)`."""
    who = f"{one_line(speaker)}, " if speaker else ""
    return f"- [{', '.join(ids)}] {one_line(text)} ({who}{day}{doubt})"


def claim_named(given: str, speaker: str | None) -> tuple[list[str], str]:
    """(ids, text) of a `page_line` as a model gives it back: the whole line or a part of it.

    The text stands in quotes then, or behind its `speaker`: `speaker says: "text"`.
    """
    found = _CLAIM.fullmatch(given.strip())
    ids, text = (found["ids"], found["text"]) if found else (None, given)
    lead = rf"(?:it is noted|{re.escape(speaker or _NOBODY)}(?: says)?): *"
    return (ids or "").split(", ") if ids else [], re.sub(lead, "", text, count=1, flags=re.I)


def dispute_lines(pairs: Sequence[tuple[str, str, bool]]) -> list[str]:
    """Open contradictions and doubts below their heading.

    `pairs`: two lines of `page_line` each, and whether the first rests on the second, which fell.
    """
    told = [TO_SETTLE]
    for one, other, rests_on in pairs:
        told += [one, f"  {'rests on' if rests_on else 'or'} {other[2:]}"]
    return told


def entries_message(lines: str) -> str:
    """The message that shows a night's batch of journal entries."""
    return f"{ENTRIES}\n{as_data('entries', lines)}"


def read_entries(message: str) -> list[DatedLine]:
    """The journal entries of a night's message, in order."""
    lines = unescaped(message.partition(ENTRIES)[2]).splitlines()
    return [entry for entry in map(read_dated, lines) if entry]


def _until_heading(lines: Sequence[str]) -> list[str]:
    headings = [at for at, line in enumerate(lines) if line == OTHER_PROJECTS]
    return list(lines[: headings[0]] if headings else lines)


LEAST_PREFIX = 6
"""Characters of the shortest beginning of an id that stands for it."""

_LONGEST_CITED = 40
"""Characters of a citation in a correction."""

_MOST_WORDS = 3
"""Words before a number, such as `journal entry 3`."""

_LINE = regex(r"\[#?(\d+)\]")
_NUMBERS = regex(r"[\d\s,;#()\[\]\"']+")
_WORD = regex(r"\w+")
_AROUND = " \t\r\n[](){}<>\"'`*#."


def cited(given: str, ids: Iterable[str]) -> str | None:
    """The id that a model means by `given`: the whole one, or the only one that begins so."""
    bare, ids = given.strip(_AROUND), list(ids)
    if whole := next((id_ for id_ in ids if id_ in (given, bare)), None):
        return whole
    begun = [id_ for id_ in ids if id_.startswith(bare)]
    return begun[0] if len(begun) == 1 and len(bare) >= LEAST_PREFIX else None


class Handles:
    """The numbers of one prompt, from 1, and the ids that they stand for, in the order shown."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = list(dict.fromkeys(ids))
        self._numbers = {id_: str(place) for place, id_ in enumerate(self._ids, 1)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def of(self, id_: str) -> str:
        """The number of an id. Raises KeyError if it was not shown."""
        return self._numbers[id_]

    def resolve(self, given: str | int) -> str | None:
        """The id that a model means by `given`; None if it was not shown.

        That is a number (`3`, `#3`, `entry 3`, the line `[3] ...`), an id, or the beginning of one.
        """
        text = str(given).strip()
        number = _number(text)
        if number is not None and 1 <= number <= len(self._ids):
            return self._ids[number - 1]
        return cited(text, self._ids)

    def unknown(self, given: Iterable[str], what: str) -> str | None:
        """What a model is told about citations of a `what` that was not shown; None if all were."""
        found = [one for one in dict.fromkeys(given) if self.resolve(one) is None]
        named = ", ".join(shortened(one, _LONGEST_CITED) for one in found)
        return f"There is no {what} {named}: {self.range}." if found else None

    @property
    def range(self) -> str:
        """The numbers that may be cited, for a correction."""
        return "the only number shown is 1" if len(self) == 1 else f"shown are 1 to {len(self)}"


def _number(text: str) -> int | None:
    """The number in `text`, if that is all it says but for words before it."""
    if line := _LINE.match(text):
        return int(line[1])
    parts = _WORD.findall(text[:100])
    if not parts or len(parts) > 1 + _MOST_WORDS or not parts[-1].isdecimal() or "-" in text:
        return None
    return int(parts[-1]) if all(part.isalpha() for part in parts[:-1]) else None


def _as_text(given: object) -> object:
    """A number as text; models cite `3` as often as `"3"`."""
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    return str(given) if isinstance(given, int) and not isinstance(given, bool) else given


def _as_list(given: object) -> object:
    found: list[object] = []
    for each in given if isinstance(given, list | tuple) else [given]:
        if isinstance(each, str) and _NUMBERS.fullmatch(each):
            found += re.findall(r"\d+", each)
        else:
            found.append(each)
    return [] if given is None else found


Citation = Annotated[str, BeforeValidator(_as_text)]
"""What a model cites, as it gave it: see `Handles.resolve`."""

Citations = Annotated[list[Citation], BeforeValidator(_as_list)]
"""Citations in a list, however a model gave them."""
