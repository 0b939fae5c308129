"""Importance and trust of a journal entry, given when it is written and without a model call."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from memory.records import SourceType

TRUST: Mapping[SourceType, float] = {
    "direct": 0.9,
    "observation": 0.8,
    "inference": 0.6,
    "compaction": 0.6,
    "environmental": 0.3,
}
"""How far a source is trusted, 0..1 (design, ruling 2)."""

_BASE, _DIRECT, _MENTION = 2, 3, 2
_HIGHEST_BONUS = 2
_LOWEST, _HIGHEST = 1, 10
_WORD = re.compile(r"\w+")
AT = r"(?<![\w@/.+-])@"
"""The `@` of a mention: not that of an e-mail address or a link."""
_MENTIONED = re.compile(rf"{AT}\w")
_BEFORE = r"(?<!\w)(?<!\w['\u2019-])"
_AFTER = r"(?!\w|-\w|['\u2019](?!s\b)\w)"
_GOAL_WORDS = frozenset({"goal", "goals"})
_QUEST_WORDS = frozenset({"quest", "quests", "task", "tasks"})


def heuristic_importance(
    text: str,
    *,
    direct: bool,
    mentioned: bool,
    known_entities: Collection[str],
    sender_bonus: int = 0,
) -> int:
    """Importance 1..10 (data-flow-03, section 3.1; design, ruling 2).

    2, +3 for a direct message, +2 for a mention, +1 for each keyword kind present (goal, quest or
    task, the name of a known entity), + the sender's bonus (0..2). A mention in a room is no direct
    message.
    """
    score = _BASE + min(max(sender_bonus, 0), _HIGHEST_BONUS) + _keyword_kinds(text, known_entities)
    if direct:
        score += _DIRECT
    if mentioned:
        score += _MENTION
    return min(max(score, _LOWEST), _HIGHEST)


def mentions(text: str) -> bool:
    """Whether someone is addressed with an `@` before a name. An e-mail address is no mention."""
    return _MENTIONED.search(text) is not None


def names_project(text: str, key: str) -> bool:
    """Whether a project's key occurs in `text` as whole words, blanks for `_` and `-` or not.

    A word goes on over an apostrophe or a hyphen ("don't", "e-mail"); a genitive's `'s` is no part
    of it.
    """
    words = [re.escape(word) for word in re.split(r"[\s_-]+", key) if word]
    if not words:
        return False
    spelled = r"[\s_-]+".join(words)
    return re.search(f"{_BEFORE}{spelled}{_AFTER}", text, re.IGNORECASE) is not None


def _keyword_kinds(text: str, known_entities: Collection[str]) -> int:
    """How many of the three kinds of keyword stand in `text` as whole words."""
    words = _WORD.findall(text.casefold())
    found = frozenset(words)
    spoken = f" {' '.join(words)} "
    named = any(_named(name, spoken) for name in known_entities)
    return bool(found & _GOAL_WORDS) + bool(found & _QUEST_WORDS) + named


def _named(name: str, spoken: str) -> bool:
    """Whether the words of `name` stand side by side in `spoken`, words joined by one space."""
    words = _WORD.findall(name.casefold())
    return bool(words) and f" {' '.join(words)} " in spoken
