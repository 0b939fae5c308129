"""How the offline model reflects on what happened: it counts, and quotes. Pure.

It asks about the people who come up most and the words that they use most. What it answers is how
many of the memories shown are whose and say what, with the newest of them quoted. Nothing in it
goes beyond that, and what is of the assistant is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from memory.models.offline_prompt import Prompt, data_lines, entries
from memory.models.offline_speech import states_something
from memory.models.words import STOP_WORDS, sentences, shortened, stem, words
from memory.persona import is_assistant, violation

_QUESTIONS = 3
_ASSISTANT = ("assistant", "circadian")
_SHORTEST = 4
"""Letters of a word that says something."""
_QUOTED = 160
"""Characters of a quotation."""
_LEAST = 2
"""Memories that an insight stands on, where there are so many."""
_IMPORTANCE = 8
_ASKED = "Question: "
_MEMORY = re.compile(
    r"^\[(?P<id>[^\]]+)\] (?P<day>\d{4}-\d{2}-\d{2}) (?:(?P<who>[^:]{1,60}): )?(?P<text>.*)$"
)


class Memory(NamedTuple):
    """A memory as it was shown."""

    id: str
    day: str
    speaker: str | None
    text: str


def questions(prompt: Prompt) -> dict[str, Any]:
    """Three questions: of the people who said most, what they said most; then of the words left."""
    told = [one for one in entries(prompt.human) if states_something(one.text)]
    shown = [one for one in told if one.speaker is None or not _is_self(one.speaker)]
    people = Counter(one.speaker for one in shown if one.speaker)
    asked: list[str] = []
    used = {stem(one) for one in _ASSISTANT}
    for who, _ in _ranked(people)[:_QUESTIONS]:
        said = _frequent([one.text for one in shown if one.speaker == who], used)[:2]
        used |= {stem(one) for one in said}
        asked.append(f"What did {who} say about {' and '.join(said)}?" if said else "")
    left = _frequent([one.text for one in shown], used)
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


def _insight(shown: Sequence[Memory]) -> dict[str, Any] | None:
    """Whose most of the memories are, and which word most of those share."""
    people = Counter(one.speaker for one in shown if one.speaker)
    who = next((name for name, count in _ranked(people) if count >= _LEAST), None)
    mine = [one for one in shown if who is None or one.speaker == who]
    word = next(iter(_frequent([one.text for one in mine], set())), "")
    having = [one for one in mine if word and stem(word) in _stems(one.text)]
    count = f"of the {len(shown)} memories near to what was asked"
    if len(having) >= _LEAST:
        told = f'{who} speaks of "{word}" in' if who else f'The word "{word}" stands in'
        return _given(having, f"{told} {len(having)} {count}")
    return _given(mine, f"{who} said {len(mine)} {count}") if who else None


def _given(memories: Sequence[Memory], told: str) -> dict[str, Any] | None:
    """The statement with the newest memory quoted that is not about the assistant."""
    for newest in sorted(memories, key=lambda one: one.day, reverse=True):
        said = shortened(newest.text, _QUOTED).replace('"', "'")
        who = f", {newest.speaker}" if newest.speaker else ""
        text = f'{told}; the newest ({newest.day}{who}): "{said}"'
        if violation(text) is None:
            evidence = [one.id for one in memories]
            return {"text": text, "evidence": evidence, "importance": _IMPORTANCE}
    return None


def _read(prompt: Prompt) -> list[list[Memory]]:
    """The memories shown under each question, but for the assistant's own."""
    found: list[list[Memory]] = []
    for line in data_lines(prompt, "memories"):
        if line.startswith(_ASKED):
            found.append([])
        elif found and (match := _MEMORY.match(line)):
            who = (match["who"] or "-").strip()
            if who == "-" or not _is_self(who):
                speaker = None if who == "-" else who
                memory = Memory(match["id"], match["day"], speaker, match["text"].strip())
                found[-1].append(memory)
    return found


def _frequent(texts: Sequence[str], used: set[str]) -> list[str]:
    """The words that most of `texts` have, as they are written first; those `used` left out."""
    written: dict[str, str] = {}
    spread: Counter[str] = Counter()
    for text in texts:
        said = [one for part in sentences(text) for one in words(part)]
        telling = [one for one in said if one not in STOP_WORDS and len(one) >= _SHORTEST]
        for one in telling:
            written.setdefault(stem(one), one)
        spread.update({stem(one) for one in telling} - used)
    return [written[one] for one, count in _ranked(spread) if count >= _LEAST or len(texts) == 1]


def _stems(text: str) -> set[str]:
    return {stem(one) for one in words(text)}


def _ranked(counted: Counter[Any]) -> list[tuple[str, int]]:
    """The most frequent first; of equals in the order of the alphabet."""
    return sorted(counted.items(), key=lambda one: (-one[1], one[0]))


def _is_self(speaker: str) -> bool:
    return is_assistant(speaker, _ASSISTANT)
