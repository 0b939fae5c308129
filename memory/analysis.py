"""Analysis: which terms a text is looked up by, what of it is embedded, and how a query is read.

Pure, no download. English words are stemmed; scripts that write without blanks are cut into pairs
of characters; every other word counts as it stands, without case and accents.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from memory.dates import Day, days_in
from memory.models.words import STOP_WORDS, stem

ANALYSIS_VERSION = 1
"""To be raised when `terms` gives other terms for a text: what is kept is then analysed again."""

OWN_WEIGHT = 2
"""How often an entry's own terms count beside those of the entries before it."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
)
"""Thai, Lao, Burmese, Hangul (whose particles stick to the word), Khmer, Kana and Han."""
_MARKS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
"""Vowel signs and the like, which Python does not count as letters, though they are in words."""
_PIECE = re.compile(
    rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])(?:[^\W_]|[{_MARKS}]))+(?:['\u2019][a-z]+)?"
)
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_ACCENTS = re.compile("[\u0300-\u036f]")
_QUESTION = re.compile(r"[?\uff1f\u061f\u037e][\s\"'\u201d\u2019)\]]*$")
_ASIDE = re.compile(r"\s*\[[^\[\]]*\]\s*$")
"""At the end of a text: a picture's caption and the like."""

_PAST = re.compile(
    r"\bused to\b|\bno longer\b|\bnot any ?more\b|\bany ?more\b|\bpreviously\b|\bformer(?:ly)?\b"
    r"|\bback then\b|\bin the past\b|\bbefore[.?!]*$"
    r"|\b(?:was|were|did|had)\b.*\bbefore\b|\bdid(?:n['\u2019]?t)?\b.*\buse to\b"
    r"|\boriginally\b|\buntil recently\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Query:
    """A query as it is read."""

    terms: tuple[str, ...]
    """What is looked up, each once."""
    text: str
    """What is embedded: without the names of those who speak. They say who spoke, not of what."""
    people: frozenset[str]
    """Those names, as they were given."""
    days: tuple[Day, ...]
    """The dates in it."""
    past: bool
    """It asks for what used to be."""


def terms(text: str) -> list[str]:
    """The index terms of `text`, in order, without stop words; all of them where it has no other.

    The same rule for what is kept and for a query.
    """
    pieces = [match.group() for match in _PIECE.finditer(_folded(text))]
    bare = [_bare(piece) for piece in pieces]
    return _indexed(word for word in bare if word not in STOP_WORDS) or _indexed(bare)


def entry_terms(text: str, speaker: str | None, before: Sequence[str]) -> list[str]:
    """The index terms of a journal entry: its own count twice, beside those of `before` it.

    An answer seldom repeats the words of what it answers, and is found by them all the same.
    """
    own = [*terms(text), *terms(speaker or "")]
    return [*(own * OWN_WEIGHT), *(term for one in before for term in terms(one))]


def fact_terms(text: str, beside: Sequence[str]) -> list[str]:
    """The index terms of a fact: its own count twice where what nights wrote `beside` it adds any.

    A context says what a fact is about in words that it lacks; that makes it found by them.
    """
    own = terms(text)
    new = [term for term in dict.fromkeys(terms(" ".join(beside))) if term not in own]
    return [*(own * OWN_WEIGHT), *new] if new and any(one.strip() for one in beside) else own


def embedded_text(text: str, names: Iterable[str]) -> str:
    """What of a journal entry is embedded: its text, but for the names of those it is said among.

    "Thanks, Ana!" would else be near to every question about Ana. "Ana's dog" stays.
    """
    return _without(text, names, "(?!['\u2019]s)")


def without_names(text: str, names: Iterable[str]) -> str:
    """`text` without these names where they stand as whole words; all of it if nothing is left."""
    return _without(text, names, "(?:['\u2019]s\\b)?")


def _without(text: str, names: Iterable[str], behind: str) -> str:
    spelled = sorted({name for name in names if name.strip()}, key=len, reverse=True)
    if not spelled:
        return text
    listed = "|".join(map(re.escape, spelled))
    left = re.sub(rf",?[ \t]*(?<!\w)(?:{listed})(?!\w){behind}", "", text, flags=re.IGNORECASE)
    return left.strip(" \t\n,;:") if any(map(str.isalnum, left)) else text


def read_query(text: str, speakers: Collection[str]) -> Query:
    """What `text` asks for. `speakers` are the names that it may say."""
    said = frozenset(name for name in speakers if is_named(name, text))
    return Query(
        terms=tuple(dict.fromkeys(terms(text))),
        text=without_names(text, said),
        people=said,
        days=tuple(days_in(text)),
        past=bool(_PAST.search(text.strip())),
    )


def is_named(name: str, text: str) -> bool:
    """Whether `name` stands in `text` as whole words, in any case."""
    spelled = name.strip()
    found = re.search(rf"(?<!\w){re.escape(spelled)}(?!\w)", text, re.IGNORECASE)
    return bool(spelled and found)


def asks(text: str) -> bool:
    """Whether `text` ends in a question, what stands in brackets behind it aside."""
    return bool(_QUESTION.search(_ASIDE.sub("", text)))


def _folded(text: str) -> str:
    """Without case, accents and compatibility forms: Café is cafe, and a wide letter a letter."""
    if text.isascii():
        return text.lower()
    opened = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    return unicodedata.normalize("NFC", opened)


def _bare(piece: str) -> str:
    """A word without its genitive: ana's is ana, but don't is dont."""
    head, _, tail = piece.replace("\u2019", "'").partition("'")
    return head if tail == "s" else head + tail


def _indexed(words: Iterable[str]) -> list[str]:
    return [term for word in words for term in _terms_of(word)]


def _terms_of(word: str) -> list[str]:
    if _IS_UNSPACED.match(word):
        return [word[at : at + 2] for at in range(len(word) - 1)] or [word]
    return [stem(word)] if word.isascii() else [word]
