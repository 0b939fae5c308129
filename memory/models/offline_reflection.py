"""How the offline model looks at its own work: what failed, and what came up again. Pure.

It reads the journal once and notes at most one line, in words that stand there or in the event.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from memory.journal import ASIDE, SELF
from memory.models.offline_prompt import Done, Prompt, read_prompt
from memory.models.offline_scene import Call
from memory.models.offline_speech import statement
from memory.models.words import shortened
from memory.reflection import OPENING

NOTHING = "Nothing new failed, and nothing new came up twice."

_TOOLS = frozenset({"noop", "add_journal_entry", "review_journal"})
_READ = 50
"""Journal entries that it looks at, newest."""
_LONGEST = 200
_COUNTERS = re.compile(r"tool calls in this session: \d+, (?P<failed>failed: [1-9]\d*)\b")

Row = Mapping[str, Any]


def is_asked(prompt: Prompt, tools: Collection[str]) -> bool:
    """Whether the call is for a reflection, as its tools and its first words say."""
    if set(tools) - _TOOLS:
        return False
    return "review_journal" in tools or prompt.human.startswith(OPENING)


def calls(messages: Sequence[BaseMessage], tools: Collection[str]) -> list[Call]:
    """Read the journal; then note a line, or say in a noop that there is none; then nothing."""
    prompt = _prompt(messages)
    done = {one.name for one in prompt.done}
    if "review_journal" in tools and "review_journal" not in done:
        return [Call("review_journal", {"limit": _READ})]
    if not {"add_journal_entry", "noop"} <= set(tools) or done & {"add_journal_entry", "noop"}:
        return []
    line = _worth_noting(prompt)
    return [Call("add_journal_entry", {"content": line}) if line else _nothing()]


def reply(messages: Sequence[BaseMessage]) -> str:
    """What it says in the end: the line that it noted, or that there was none."""
    noted = [one for one in _prompt(messages).done if one.name == "add_journal_entry"]
    return str(noted[-1].args.get("content")) if noted else NOTHING


def _prompt(messages: Sequence[BaseMessage]) -> Prompt:
    """Without the event, as its continuation shows it, all that stands there was done for it."""
    asked = any(isinstance(one, HumanMessage) for one in messages)
    return read_prompt(messages if asked else [HumanMessage(OPENING), *messages])


def _nothing() -> Call:
    return Call("noop", {"reasoning": NOTHING})


def _worth_noting(prompt: Prompt) -> str | None:
    """The first line that no earlier note holds."""
    rows = [row for done in prompt.done if done.name == "review_journal" for row in _rows(done)]
    notes = [str(row.get("content")) for row in rows if SELF in row.get("tags", ())]
    events = [row for row in rows if SELF not in row.get("tags", ())]
    candidates = [*_failures(prompt.human, events), *_repetitions(events)]
    return next((line for line, mark in candidates if not any(mark in one for one in notes)), None)


def _rows(done: Done) -> Iterator[Row]:
    result = done.result if isinstance(done.result, Mapping) else {}
    yield from (row for row in result.get("entries") or [] if isinstance(row, Mapping))


def _failures(asked: str, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Lines on what failed, each with the words by which an earlier note of it is known."""
    if counters := _COUNTERS.search(asked):
        line = f"{counters[0][:1].upper()}{counters[0][1:]}."
        yield line, f"{counters['failed']}."
    for row in rows:
        if ASIDE in row.get("tags", ()):
            said = shortened(str(row.get("content")), _LONGEST)
            yield f"Its ticks failed: {said}", said


def _repetitions(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Lines on statements that stand there more than once, the most frequent first."""
    said = Counter(
        shortened(str(row.get("content")), _LONGEST)
        for row in rows
        if statement(str(row.get("content")))
    )
    yield from ((f"Came up {n} times: {text}", text) for text, n in said.most_common() if n > 1)
