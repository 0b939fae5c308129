"""How the offline model reflects: it counts and quotes memories, and notes what failed. Pure.

In a night it asks about the people who come up most and the words that they use most, and answers
how many of the memories shown are whose and say what. Awake, it reads the journal once and notes at
most one line. Memories of the assistant itself are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from memory.guards import is_assistant, violation
from memory.messages import DatedLine, prompt_lines
from memory.models.offline.prompt import Call, Prompt, read_prompt
from memory.models.offline.sentences import frequent, ranked, statement, states_something
from memory.records import ASIDE, OPENING, SELF
from memory.text import shortened, stem, words

_QUESTIONS = 3
_ASSISTANT = ("assistant", "circadian")
_QUOTED = 160
"""Characters of a quotation."""
_LEAST = 2
"""Memories that an insight stands on, where there are so many."""
_IMPORTANCE = 8


def questions(prompt: Prompt) -> dict[str, Any]:
    """Three questions: of the people who said most, what they said most; then of the words left."""
    told = [
        entry for entry in prompt_lines.read_entries(prompt.human) if states_something(entry.text)
    ]
    shown = [entry for entry in told if not _is_self(entry.speaker)]
    asked: list[str] = []
    used = {stem(name) for name in _ASSISTANT}
    for who, _ in ranked(_people(shown))[:_QUESTIONS]:
        said = frequent([entry.text for entry in shown if entry.speaker == who], used)[:2]
        used |= {stem(word) for word in said}
        asked += [f"What did {who} say about {' and '.join(said)}?"] if said else []
    left = frequent([entry.text for entry in shown], used)
    asked += [f"What is known of {word}?" for word in left]
    kept = [question for question in dict.fromkeys(asked) if violation(question) is None]
    return {"questions": kept[:_QUESTIONS]}


def insights(prompt: Prompt) -> dict[str, Any]:
    """What the memories under each question have in common; the same memories count once.

    Where none have anything in common, one of them is quoted, as what it is.
    """
    asked = _read(prompt)
    made = {tuple(found["evidence"]): found for some in asked if (found := _insight(some))}
    if made:
        return {"insights": list(made.values())}
    told = "One memory is near to what was asked"
    alone = (_given([memory], told) for some in asked for memory in some)
    return {"insights": [found for found in alone if found][:1]}


def _insight(shown: Sequence[DatedLine]) -> dict[str, Any] | None:
    """Whose most of the memories are, and which word most of those share."""
    who = next((name for name, count in ranked(_people(shown)) if count >= _LEAST), None)
    mine = [memory for memory in shown if who is None or memory.speaker == who]
    word = next(iter(frequent([memory.text for memory in mine], set())), "")
    having = [memory for memory in mine if word and stem(word) in map(stem, words(memory.text))]
    count = f"of the {len(shown)} memories near to what was asked"
    if len(having) >= _LEAST:
        told = f'{who} speaks of "{word}" in' if who else f'The word "{word}" stands in'
        return _given(having, f"{told} {len(having)} {count}")
    return _given(mine, f"{who} said {len(mine)} {count}") if who else None


def _given(memories: Sequence[DatedLine], told: str) -> dict[str, Any] | None:
    """The statement with the newest memory quoted that is not about the assistant."""
    for newest in sorted(memories, key=lambda memory: memory.at, reverse=True):
        said = shortened(newest.text, _QUOTED).replace('"', "'")
        who = f", {newest.speaker}" if newest.speaker else ""
        text = f'{told}; the newest ({newest.at[:10]}{who}): "{said}"'
        if violation(text) is None:
            evidence = [memory.id for memory in memories]
            return {"text": text, "evidence": evidence, "importance": _IMPORTANCE}
    return None


def _read(prompt: Prompt) -> list[list[DatedLine]]:
    """The memories shown under each question, but for the assistant's own."""
    found: list[list[DatedLine]] = []
    for line in prompt.data_lines("memories"):
        if prompt_lines.read_question(line) is not None:
            found.append([])
        elif found and (memory := prompt_lines.read_dated(line)) and not _is_self(memory.speaker):
            found[-1].append(prompt_lines.unmarked(memory))
    return found


def _people(shown: Sequence[DatedLine]) -> Counter[str]:
    return Counter(each.speaker for each in shown if each.speaker)


def _is_self(speaker: str | None) -> bool:
    return speaker is not None and is_assistant(speaker, _ASSISTANT)


# A look at its own work, awake: what failed, and what came up again.

NOTHING = "Nothing new failed, and nothing new came up twice."
_TOOLS = frozenset({"noop", "add_journal_entry", "review_journal"})
_READ = 50
"""Journal entries that it looks at, newest."""
_LONGEST = 200
_COUNTERS = re.compile(r"tool calls in this session: \d+, (?P<failed>failed: [1-9]\d*)\b")

_Row = Mapping[str, Any]


def is_asked(prompt: Prompt, tools: Collection[str]) -> bool:
    """Whether the call is for a reflection, as its tools and its first words say."""
    if set(tools) - _TOOLS:
        return False
    return "review_journal" in tools or prompt.human.startswith(OPENING)


def calls(messages: Sequence[BaseMessage], tools: Collection[str]) -> list[Call]:
    """Read the journal; then note a line, or say in a noop that there is none; then nothing."""
    prompt = _prompt(messages)
    done = {each.name for each in prompt.done}
    if "review_journal" in tools and "review_journal" not in done:
        return [Call("review_journal", {"limit": _READ})]
    if not {"add_journal_entry", "noop"} <= set(tools) or done & {"add_journal_entry", "noop"}:
        return []
    line = _worth_noting(prompt)
    if line is None:
        return [Call("noop", {"reasoning": NOTHING})]
    return [Call("add_journal_entry", {"content": line})]


def reply(messages: Sequence[BaseMessage]) -> str:
    """What it says in the end: the line that it noted, or that there was none."""
    noted = [each for each in _prompt(messages).done if each.name == "add_journal_entry"]
    return str(noted[-1].args.get("content")) if noted else NOTHING


def _prompt(messages: Sequence[BaseMessage]) -> Prompt:
    """Without the event, as its continuation shows it, all that stands there was done for it."""
    asked = any(isinstance(message, HumanMessage) for message in messages)
    return read_prompt(messages if asked else [HumanMessage(OPENING), *messages])


def _worth_noting(prompt: Prompt) -> str | None:
    """The first line that no earlier note holds."""
    results = [done.result for done in prompt.done if done.name == "review_journal"]
    found = [result.get("entries") or [] for result in results if isinstance(result, Mapping)]
    rows = [row for each in found for row in each if isinstance(row, Mapping)]
    notes = [str(row.get("content")) for row in rows if SELF in row.get("tags", ())]
    events = [row for row in rows if SELF not in row.get("tags", ())]
    candidates = [*_failures(prompt.human, events), *_repetitions(events)]
    return next(
        (line for line, mark in candidates if not any(mark in note for note in notes)), None
    )


def _failures(asked: str, rows: Sequence[_Row]) -> Iterator[tuple[str, str]]:
    """Lines on what failed, each with the words by which an earlier note of it is known."""
    if counters := _COUNTERS.search(asked):
        yield f"{counters[0][:1].upper()}{counters[0][1:]}.", f"{counters['failed']}."
    for row in rows:
        if ASIDE in row.get("tags", ()):
            said = shortened(str(row.get("content")), _LONGEST)
            yield f"Its ticks failed: {said}", said


def _repetitions(rows: Sequence[_Row]) -> Iterator[tuple[str, str]]:
    """Lines on statements that stand there more than once, the most frequent first."""
    contents = [str(row.get("content")) for row in rows]
    said = Counter(shortened(text, _LONGEST) for text in contents if statement(text))
    yield from ((f"Came up {n} times: {text}", text) for text, n in said.most_common() if n > 1)
