"""How the offline model reflects on what happened: it counts, and quotes. Pure.

It asks about the people who come up most and the words that they use most. What it answers is how
many of the memories shown are whose and say what, with the newest of them quoted. Nothing in it
goes beyond that, and what is of the assistant is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from memory.guards import is_assistant, violation
from memory.messages.prompt_lines import DatedLine, read_dated, read_entries, read_question
from memory.models.offline.prompt import Call, Done, Prompt, read_prompt
from memory.models.offline.sentences import frequent, ranked, statement, states_something
from memory.records import ASIDE, OPENING, SELF
from memory.text import shortened, stem, words

_QUESTIONS = 3
_ASSISTANT = ("assistant", "circadian")
_SHORTEST = 4
"""Letters of a word that says something."""
_QUOTED = 160
"""Characters of a quotation."""
_LEAST = 2
"""Memories that an insight stands on, where there are so many."""
_IMPORTANCE = 8


def questions(prompt: Prompt) -> dict[str, Any]:
    """Three questions: of the people who said most, what they said most; then of the words left."""
    told = [one for one in read_entries(prompt.human) if states_something(one.text)]
    shown = [one for one in told if not _is_self(one.speaker)]
    people = Counter(one.speaker for one in shown if one.speaker)
    asked: list[str] = []
    used = {stem(one) for one in _ASSISTANT}
    for who, _ in ranked(people)[:_QUESTIONS]:
        said = frequent(
            [one.text for one in shown if one.speaker == who],
            used,
            shortest=_SHORTEST,
            least=_LEAST,
        )[:2]
        used |= {stem(one) for one in said}
        asked.append(f"What did {who} say about {' and '.join(said)}?" if said else "")
    left = frequent([one.text for one in shown], used, shortest=_SHORTEST, least=_LEAST)
    asked += [f"What is known of {word}?" for word in left]
    kept = [one for one in dict.fromkeys(asked) if one and violation(one) is None]
    return {"questions": kept[:_QUESTIONS]}


def insights(prompt: Prompt) -> dict[str, Any]:
    """What the memories under each question have in common; the same memories count once.

    Where none have anything in common, one of them is quoted, as what it is.
    """
    asked = _read(prompt)
    made = {tuple(found["evidence"]): found for one in asked if (found := _insight(one))}
    if made:
        return {"insights": list(made.values())}
    alone = (
        _given([one], "One memory is near to what was asked") for some in asked for one in some
    )
    return {"insights": [found for found in alone if found][:1]}


def _insight(shown: Sequence[DatedLine]) -> dict[str, Any] | None:
    """Whose most of the memories are, and which word most of those share."""
    people = Counter(one.speaker for one in shown if one.speaker)
    who = next((name for name, count in ranked(people) if count >= _LEAST), None)
    mine = [one for one in shown if who is None or one.speaker == who]
    word = next(
        iter(frequent([one.text for one in mine], set(), shortest=_SHORTEST, least=_LEAST)), ""
    )
    having = [one for one in mine if word and stem(word) in _stems(one.text)]
    count = f"of the {len(shown)} memories near to what was asked"
    if len(having) >= _LEAST:
        told = f'{who} speaks of "{word}" in' if who else f'The word "{word}" stands in'
        return _given(having, f"{told} {len(having)} {count}")
    return _given(mine, f"{who} said {len(mine)} {count}") if who else None


def _given(memories: Sequence[DatedLine], told: str) -> dict[str, Any] | None:
    """The statement with the newest memory quoted that is not about the assistant."""
    for newest in sorted(memories, key=lambda one: one.at, reverse=True):
        said = shortened(newest.text, _QUOTED).replace('"', "'")
        who = f", {newest.speaker}" if newest.speaker else ""
        text = f'{told}; the newest ({newest.at}{who}): "{said}"'
        if violation(text) is None:
            evidence = [one.id for one in memories]
            return {"text": text, "evidence": evidence, "importance": _IMPORTANCE}
    return None


def _read(prompt: Prompt) -> list[list[DatedLine]]:
    """The memories shown under each question, but for the assistant's own."""
    found: list[list[DatedLine]] = []
    for line in prompt.data_lines("memories"):
        if read_question(line) is not None:
            found.append([])
        elif found and (memory := read_dated(line)) and not _is_self(memory.speaker):
            found[-1].append(memory)
    return found


def _stems(text: str) -> set[str]:
    return {stem(one) for one in words(text)}


def _is_self(speaker: str | None) -> bool:
    return speaker is not None and is_assistant(speaker, _ASSISTANT)


# How the offline model looks at its own work: what failed, and what came up again. Pure.
#
# It reads the journal once and notes at most one line, in words that stand there or in the event.
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
