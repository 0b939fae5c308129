"""Precision: whether a text says what its sources say and nothing else. Pure.

A model that was shown the words of several people may have made its text of any of them, whatever
it cites: in another language, in code, or turned into its opposite. No list of such ways is ever
complete, so nothing is looked for in the text. It has to be what its source says.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from memory.guards.lexicon import alike, content, languages
from memory.guards.mood import denies, sentences

NEAR = 0.3
"""Least share (0..1) of a text's words in its sources, at which a fair rewording stands on them."""

_NUMBER = re.compile(r"\d+")


def repeats(text: str, sources: Sequence[str], names: Collection[str] = ()) -> bool:
    """Whether each sentence of `text` is one of the sources', perhaps shortened.

    Its content words and numbers stand in one sentence of a source, in the same order, and neither
    denies what the other says. `names` may stand in it besides, as those of the speakers.
    """
    told = [part for one in sources for _, part in sentences(one)]
    mine = [part for _, part in sentences(text) if part.strip()]
    return bool(mine) and all(any(_repeats(one, each, names) for each in told) for one in mine)


def stands_near(text: str, sources: Sequence[str], names: Collection[str] = ()) -> bool:
    """Whether `text` may be a fair rewording: enough of its words are its sources'."""
    mine = _words(text, names)
    theirs = [word for one in sources for word in _words(one, ())]
    near = sum(any(alike(one, each) for each in theirs) for one in mine)
    return bool(mine) and near >= NEAR * len(mine)


def _repeats(text: str, source: str, names: Collection[str]) -> bool:
    mine, theirs = _words(text, names), iter(_words(source, ()))
    if not mine or _denies(text) != _denies(source):
        return False
    if not {*_NUMBER.findall(text)} <= {*_NUMBER.findall(source)}:
        return False
    return all(any(alike(word, other) for other in theirs) for word in mine)


def _denies(text: str) -> bool:
    return denies(text, languages(text))


def _words(text: str, names: Collection[str]) -> list[str]:
    """The content words of a text, in order, without those of `names`."""
    left = {part for one in names for part in content(one, ())}
    return [one for one in content(text) if one not in left]


def rests_on(speaker: str | None, record: Mapping[str, Any], owners: Collection[str]) -> list[str]:
    """Everybody but the owners on whose words a memory rests: its speaker, and its origins.

    Several speakers of one fact stand as "Ada and Ben".
    """
    said = [speaker] if speaker in owners else (speaker or "").split(" and ")
    names = [*said, *record.get("origins", ())]
    return [one for one in dict.fromkeys(names) if one and one not in owners]
