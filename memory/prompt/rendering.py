"""Rendering: the text of each list in a prompt, from records. Pure; no I/O.

Every list has a budget in calibrated tokens and says how much it leaves out. Text that
others wrote is put on one line, so that it cannot pass for a second item.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import TypeVar

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from memory.messages import as_data, is_summary, prompt_lines
from memory.planning import tree
from memory.prompt.components import COMPONENTS, SYSTEM_PROMPT, fill
from memory.records import (
    Conversation,
    EntityProfile,
    Event,
    Goal,
    Observation,
    Project,
    Projects,
    Question,
    RecallHit,
    SessionMemory,
    is_blank,
    speaks_as,
)
from memory.settings import Settings
from memory.text import (
    approximate_tokens,
    calibrated,
    cut_to,
    one_line,
    shown_day,
    shown_time,
    with_nearness,
)

LARGEST = 10
"""In a list that does not fit, a text gets at most one N-th of the budget."""

T = TypeVar("T")


def fitting(
    rows: Sequence[T],
    line: Callable[[T, int], str],
    tokens: int,
    calibration: float,
    *,
    most: int | None = None,
) -> tuple[list[str], int]:
    """(the first lines that fit `tokens`; the number of lines left out).

    `line(row, n)` gives a row's line with a text of at most n tokens. Texts are shortened to `most`
    tokens (default: a tenth) only if the list does not fit with whole ones.
    """
    whole = _first([line(row, tokens) for row in rows], tokens, calibration)
    if not whole[1]:
        return whole
    shorter = tokens // LARGEST if most is None else most
    return _first([line(row, shorter) for row in rows], tokens, calibration)


def left_out(count: int, which: str) -> list[str]:
    """A line that says how many are left out; [] for 0."""
    return [f"... {count} {which} left out"] if count else []


def line_tokens(line: str, calibration: float) -> int:
    """Tokens of a line with its line end."""
    return calibrated(approximate_tokens(line + "\n"), calibration)


def _first(lines: Sequence[str], tokens: int, calibration: float) -> tuple[list[str], int]:
    for count, line in enumerate(lines):
        tokens -= line_tokens(line, calibration)
        if tokens < 0:
            return list(lines[:count]), len(lines) - count
    return list(lines), 0


LEAST_OF_A_MEMORY = 60
"""Tokens of the shortest memory."""

_STEP = 0.25
"""Share of the history's budget that is left out at once, so that a provider's cache holds."""


def block(tag: str, text: str) -> str:
    """`text` as a tagged block that nothing inside can close. Empty text gives no block."""
    return as_data(tag, text) if text else ""


def system_prompt(
    settings: Settings, override: str | None = None, values: Mapping[str, str] | None = None
) -> str:
    """Component 0: the user's prompt, which no override drops, then the template or the default."""
    own = fill(override or str(COMPONENTS[SYSTEM_PROMPT].content), values or placeholders(settings))
    if not settings.user_prompt:
        return own
    return (
        "Your owner's instructions, which come before all others (they end at ---):\n"
        f"{settings.user_prompt}\n---\n\n{own}"
    )


def placeholders(settings: Settings) -> dict[str, str]:
    """The values of placeholders outside a tick."""
    return {
        "agent": next((name for name in settings.names if name.strip()), "the assistant"),
        "owners": ", ".join(one_line(one) for one in settings.owners),
        "tick": "",
        "now_date": "",
        "sender": "",
        "channel": "",
        "context_type": "",
        "reflection_interval": str(settings.reflection_interval),
        "max_iterations": str(settings.max_iterations_per_tick),
    }


def semantic_memories(
    hits: Sequence[RecallHit],
    *,
    tokens: int,
    calibration: float = 1.0,
    zone: tzinfo = UTC,
    now: str | None = None,
) -> str:
    """Component 2000: recalled memories, best first, at most `tokens` tokens.

    Each gets at most half of the tokens left, the last one all. A longer one is shortened, or left
    out if less than 60 tokens are left. Times are in `zone`; dates near `now` stand out.
    """
    lines, left = list[str](), tokens
    for place, hit in enumerate(hits, 1):
        says = with_nearness(hit["text"], now, zone, said=hit["at"]) if now else hit["text"]
        text = prompt_lines.with_earlier({**hit, "text": says}, zone)
        when = shown_time(hit["at"], zone)
        line = prompt_lines.memory_line(when, hit["speaker"], text, _marks(hit))
        most = left if place == len(hits) else max(LEAST_OF_A_MEMORY, left // 2)
        if line_tokens(line, calibration) > min(most, left):
            if left < LEAST_OF_A_MEMORY:
                continue
            line = cut_to(line, most - 1, calibration)
        lines.append(line)
        left -= line_tokens(line, calibration)
    return "\n".join(lines)


def _marks(hit: RecallHit) -> str:
    inferred = prompt_lines.INFERENCE if hit.get("inference") else ""
    if hit.get("superseded"):
        return f"{inferred}{prompt_lines.PAST}"
    if hit.get("partly_superseded"):
        return f"{inferred} (holds only in part)"
    return f"{inferred}{prompt_lines.doubt_mark(hit)}"


def context_buffer(
    events: Sequence[Event], *, tokens: int, calibration: float = 1.0, zone: tzinfo = UTC
) -> str:
    """Component 3000: the newest unaddressed events, oldest first."""
    shown, left = _heard(events, tokens, calibration, zone)
    return "\n".join([*left_out(left, "older"), *reversed(shown)])


def in_buffer(
    events: Sequence[Event], *, tokens: int, calibration: float, zone: tzinfo
) -> list[Event]:
    """The events that component 3000 shows."""
    shown, _ = _heard(events, tokens, calibration, zone)
    return list(events[len(events) - len(shown) :])


def _heard(
    events: Sequence[Event], tokens: int, calibration: float, zone: tzinfo
) -> tuple[list[str], int]:
    """(lines of the newest events, the newest first; the number of those left out)."""

    def line(event: Event, most: int) -> str:
        place = f" on {event['channel']}" if event["channel"] else ""
        text = cut_to(one_line(event["text"]), most, calibration)
        when = shown_time(event["at"], zone)
        return prompt_lines.event_line(event["id"], when, f"{event['sender']}{place}", text)

    return fitting(list(reversed(events)), line, tokens, calibration)


def goals(
    all_goals: dict[str, Goal],
    *,
    tokens: int,
    calibration: float = 1.0,
    zone: tzinfo = UTC,
    now: str | None = None,
) -> str:
    """Component 4000: the goal tree without finished roots; dates near `now` stand out."""
    open_roots = {
        goal_id
        for goal_id, goal in all_goals.items()
        if goal["parent_id"] is None and goal["status"] == "active"
    }

    def line(row: tuple[int, Goal], most: int) -> str:
        depth, goal = row
        text = one_line(goal["description"])
        if now and goal["status"] == "active":
            text = with_nearness(text, now, zone, said=goal["created"])
        return prompt_lines.goal_line(goal, depth, cut_to(text, most, calibration))

    rows = [row for row in tree(all_goals) if _root_of(row[1], all_goals) in open_roots]
    shown, left = fitting(rows, line, tokens, calibration)
    return "\n".join([*shown, *left_out(left, "more")])


def projects(all_projects: Projects, *, tokens: int, calibration: float = 1.0) -> str:
    """Part of component 1000: the active project in 3/4 of the budget, then the others."""
    active, slots = all_projects["active"], all_projects["slots"]
    if tokens <= 0:
        return "\n".join(left_out(len(slots), "projects"))
    lines: list[str] = []
    if active is not None and active in slots:
        summary = cut_to(one_line(slots[active]["summary"]), tokens // LARGEST, calibration)
        lines.append(prompt_lines.active_project_line(active, summary))
        room = tokens * 3 // 4 - line_tokens(lines[0], calibration)
        context = slots[active]["context"].splitlines()
        indented = "\n".join(f"  {line}".rstrip() for line in context)
        lines += _beginning(indented, room, calibration)

    def line(row: tuple[str, Project], most: int) -> str:
        key, slot = row
        summary = cut_to(one_line(slot["summary"]), most, calibration)
        return prompt_lines.project_line(key, slot["status"], summary)

    room = tokens - sum(line_tokens(each, calibration) for each in lines)
    rows = [row for row in slots.items() if row[0] != active]
    shown, left = fitting(rows, line, room, calibration)
    others = [*shown, *left_out(left, "more")]
    return "\n".join([*lines, prompt_lines.OTHER_PROJECTS, *others] if others else lines)


def session_memory(memory: SessionMemory, *, tokens: int, calibration: float = 1.0) -> str:
    """Part of component 1000: the newest facts, then the newest patterns, each oldest first."""
    said, rests_on = memory.get("said_by", {}), memory.get("origins", {})

    def newest(kind: str, texts: list[str], room: int) -> tuple[list[str], int]:
        def line(text: str, most: int) -> str:
            others = " or ".join(map(one_line, rests_on.get(text, ())))
            by = f" (perhaps from words of {others})" if others else ""
            by = f" ({one_line(said[text])} said)" if text in said else by
            return prompt_lines.remembered_line(kind, cut_to(one_line(text), most, calibration), by)

        shown, left = fitting(list(reversed(texts)), line, room, calibration)
        return list(reversed(shown)), left

    patterns, fewer_patterns = newest("pattern", memory["learned_patterns"], tokens // 2)
    room = tokens - sum(line_tokens(one, calibration) for one in patterns)
    facts, fewer_facts = newest("fact", memory["key_facts"], room)
    lines = [*left_out(fewer_facts + fewer_patterns, "older"), *facts, *patterns]
    return "\n".join(lines)


def recent(
    messages: Sequence[AnyMessage], tokens: int | None, calibration: float
) -> list[AnyMessage]:
    """The newest messages in at most `tokens` (calibrated), and a line about the rest.

    Whole ticks are left out, so that a tool call keeps its answers; the newest tick and a
    compaction's summary always stay. The cut moves in steps: the same place is kept until the
    history outgrows its budget by another step. `tokens` None: all messages.
    """
    if tokens is None or calibrated(approximate_tokens(messages), calibration) <= tokens:
        return list(messages)
    summary = [one for one in messages[:1] if is_summary(one)]
    rest = list(messages[len(summary) :])
    starts = [at for at, one in enumerate(rest) if isinstance(one, HumanMessage)]
    over = approximate_tokens(messages) - tokens / calibration
    # Only the calibration's order of magnitude, because it changes slightly with every answer.
    step = tokens * _STEP / 2 ** round(math.log2(calibration))
    cut = _first_after(rest, starts, math.ceil(over / step) * step)
    if cut == 0:
        return list(messages)
    note = SystemMessage(f"... {cut} older messages of this conversation left out")
    return [*summary, note, *rest[cut:]]


def bounded(text: str, tokens: int, calibration: float = 1.0) -> str:
    """`text`, or its beginning in at most `tokens` and a line about the rest."""
    return "\n".join(_beginning(text, tokens, calibration))


def _beginning(text: str, tokens: int, calibration: float) -> list[str]:
    shown = cut_to(text, tokens - 1, calibration)
    left = len(text) - len(shown)
    lines = shown.splitlines()
    return lines if shown == text else [*lines, f"... {left} more characters left out"]


def _first_after(messages: Sequence[AnyMessage], starts: Sequence[int], least: float) -> int:
    """The first place in `starts` with at least `least` tokens before it, else the last place."""
    before, at = 0, 0
    for start in starts:
        before += sum(approximate_tokens([one]) for one in messages[at:start])
        at = start
        if before >= least:
            break
    return at


def _root_of(goal: Goal, all_goals: dict[str, Goal]) -> str:
    while goal["parent_id"] is not None and goal["parent_id"] in all_goals:
        goal = all_goals[goal["parent_id"]]
    return goal["id"]


def pages(texts: Sequence[str], *, tokens: int, calibration: float = 1.0) -> str:
    """Component 1750: the first whole pages that fit, a blank line between them."""
    shown, left = fitting(texts, lambda text, most: f"{text}\n", tokens, calibration)
    return "\n".join([*shown, *left_out(left, "pages")]).rstrip()


def open_questions(questions: Sequence[Question], zone: tzinfo) -> str:
    """Component 4500: the tools that wait for a person's leave, oldest first, without arguments."""
    return "\n".join(
        f"- {one_line(one['tool'])} (asked {shown_time(one['asked_at'], zone)})"
        for one in questions
    )


PEOPLE = "People here, as [relationship] name, and what is known of each:"
TALKS = "Other open conversations, the latest first:"

_SHARE = 0.75
"""Share of the budget for people, if there are conversations too."""

_LEAST = 60
"""Tokens at least to show a person."""

_LEAST_OF_A_TEXT = 30
"""Tokens of the shortest text about a person."""


def entity_context(
    people: Sequence[EntityProfile],
    conversations: Mapping[str, Conversation],
    *,
    tokens: int,
    calibration: float = 1.0,
    zone: tzinfo = UTC,
    owners: Collection[str] = (),
) -> str:
    """Component 1500: the people in the given order, then the open conversations.

    A stranger of whom nothing is known is left out: the event names its sender. `owners`: their
    ids; an owner is shown as one, however seldom they write.
    """
    people = [one for one in people if not is_blank(one)]
    share = int(tokens * _SHARE) if conversations else tokens
    lines = _people(people, share, calibration, zone, owners) if people else []
    room = tokens - sum(line_tokens(line, calibration) for line in lines)
    talks = _talks(conversations, room, calibration, zone) if conversations else []
    return "\n".join([*lines, *talks])


def _talks(
    conversations: Mapping[str, Conversation], tokens: int, calibration: float, zone: tzinfo
) -> list[str]:
    def line(one: Conversation, most: int) -> str:
        place = f" on {one_line(one['channel'])}" if one["channel"] else ""
        return f"- {one_line(one['entity'])}{place}, last at {shown_time(one['last_at'], zone)}"

    rows = sorted(conversations.values(), key=lambda one: one["last_at"], reverse=True)
    shown, left = fitting(rows, line, tokens - line_tokens(TALKS, calibration), calibration)
    return [TALKS, *shown, *left_out(left, "older")]


def _people(
    people: Sequence[EntityProfile],
    tokens: int,
    calibration: float,
    zone: tzinfo,
    owners: Collection[str],
) -> list[str]:
    """Each person gets at most half of the tokens left, the last one all."""
    lines = [PEOPLE]
    for place, profile in enumerate(people, 1):
        left = tokens - sum(line_tokens(line, calibration) for line in lines)
        if left < _LEAST:
            return [*lines, *left_out(len(people) + 1 - place, "people")]
        most = left if place == len(people) else max(_LEAST, left // 2)
        lines += _person(profile, most, calibration, zone, owners)
    return lines


def _person(
    profile: EntityProfile, tokens: int, calibration: float, zone: tzinfo, owners: Collection[str]
) -> list[str]:
    """Name, relationship and aliases; then attributes and observations, the newest first."""
    aliases = ", ".join(one_line(one) for one in profile["aliases"])
    known_as = f", also called {aliases}" if aliases else ""
    is_owner = any(speaks_as(profile, one) for one in owners)
    state = "owner" if is_owner else profile["relationship"]["state"]
    name = f"- [{state}] {one_line(profile['name'])}"
    head = cut_to(name + known_as, tokens // 2, calibration)

    def line(row: tuple[str, str], most: int) -> str:
        return f"  {row[0]}: {cut_to(one_line(row[1]), most, calibration)}"

    room = tokens - line_tokens(head, calibration)
    most = max(_LEAST_OF_A_TEXT, room // 4)
    shown, left = fitting(_rows(profile, zone), line, room, calibration, most=most)
    return [head, *shown, *(f"  {line}" for line in left_out(left, "older"))]


def _rows(profile: EntityProfile, zone: tzinfo) -> list[tuple[str, str]]:
    """Attributes and observations, newest first, as (heading, text)."""
    attributes = sorted(profile["attributes"].items(), key=lambda one: one[1]["at"], reverse=True)
    return [
        *((one_line(name), attribute["value"]) for name, attribute in attributes),
        *((_noticed(profile, one, zone), one["text"]) for one in reversed(profile["observations"])),
    ]


def _noticed(profile: EntityProfile, observation: Observation, zone: tzinfo) -> str:
    day, speaker = shown_day(observation["at"], zone), observation["speaker"]
    if speaker is None:
        people = " or ".join(map(one_line, observation.get("origins", ())))
        return f"{day} (perhaps said by {people})" if people else f"{day} (your conclusion)"
    return day if speaks_as(profile, speaker) else f"{day} {one_line(speaker)} said"
