"""Bearing: whether what is to be remembered stands in what it cites, or in something else. Pure.

A model is shown much beside what was said: rules, recalled memories, answers of tools, its own
replies, the words of other people. What it stores has to come from what it cites. A paraphrase
need not share a word with it; but what has the words of something else that was shown, and adds
nothing of what it cites, comes from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from memory.analysis import asks, terms
from memory.caching import cached_by_text
from memory.names import name_key
from memory.records import JournalEntry

LEAST_TERMS = 3
"""Different terms: of a shorter text its words say nothing."""
ELSEWHERE = 0.6
"""Of a text's terms, the share by which it may come from one passage (0..1)."""
BORNE = 0.3
"""The share that what is cited has to have, where it adds a term of its own."""
RUN = 3
"""Terms in a row that tell a copy from a likeness."""
COPIED, OWN = 0.6, 0.5
"""Share of such runs that makes a copy, unless what is cited has so much of the terms itself."""

_ESCAPES = re.compile(r"\\[ntr]")
_PASSAGES = re.compile(r"[\n{}\[\]|]+|(?<=[.!?])\s+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


class Said(NamedTuple):
    """Words, and whose they are."""

    speaker: str | None
    text: str


def share(text: str, others: Iterable[str]) -> float:
    """Of the different terms of `text`, the share that stands in `others` together (0..1)."""
    mine = _terms(text)
    theirs = frozenset[str]().union(*(_terms(one) for one in others))
    return len(mine & theirs) / len(mine) if mine else 0.0


def copied(text: str, others: Iterable[str]) -> float:
    """Of the runs of three terms in `text`, the share that stands in one of `others` (0..1)."""
    mine = _runs(text)
    if len(_terms(text)) < LEAST_TERMS:
        return 0.0
    theirs = frozenset[tuple[str, ...]]().union(*(_runs(one) for one in others))
    return len(mine & theirs) / len(mine)


def from_elsewhere(text: str, cited: Sequence[str], others: Sequence[str]) -> bool:
    """Whether `text` comes from one of `others` rather than from what it cites.

    It does where it copies them, or has most of its words from one passage of them, while what it
    cites has fewer of its words and adds none.
    """
    mine = _terms(text)
    if len(mine) < LEAST_TERMS:
        return False
    own = share(text, cited)
    if own < OWN and copied(text, others) >= COPIED:
        return True
    known = mine & frozenset[str]().union(*(_terms(one) for one in cited))
    for passage in passages(others):
        there = mine & _terms(passage)
        adds = bool(known - there) and own >= BORNE
        if len(there) / len(mine) >= max(ELSEWHERE, own + 1e-9) and not adds:
            return True
    return False


def passages(texts: Iterable[str]) -> Iterator[str]:
    """The lines, sentences and JSON values of `texts`."""
    return chain.from_iterable(_passages(text) for text in texts)


def speaker_of(text: str, given: str | None, said: Sequence[Said]) -> str | None:
    """Whose word `text` is, of those whose words it cites; None: of nobody in particular.

    The model's word (`given`) only settles who of several it is, and only where nobody else's words
    bear the text out better. A question bears nothing out.
    """
    people = list(dict.fromkeys(one.speaker for one in said))
    if len(people) < 2:
        return people[0] if people else None
    borne = {one: share(text, _words_of(one, said)) for one in people}
    wanted = [one for one in people if one and given and name_key(one) == name_key(given)]
    if wanted and borne[wanted[0]] >= max(borne.values()):
        return wanted[0]
    told = {one: share(text, _statements(one, said)) for one in people}
    best = max(told.values())
    first = [one for one in people if told[one] == best]
    return first[0] if len(first) == 1 else None


def cited_in_vain(text: str, speaker: str | None, entries: Sequence[JournalEntry]) -> list[str]:
    """Ids of entries of others that bear nothing of `text`, where its speaker's own do."""
    mine = [one["content"] for one in entries if one["source_entity"] == speaker]
    if speaker is None or len(_terms(text)) < LEAST_TERMS or share(text, mine) < OWN:
        return []
    others = (one for one in entries if one["source_entity"] != speaker)
    return [one["id"] for one in others if not share(text, [one["content"]])]


def said_in(entries: Iterable[JournalEntry]) -> list[Said]:
    """Journal entries as words of whoever they are from."""
    return [Said(one["source_entity"], one["content"]) for one in entries]


def worded(said: Said) -> str:
    """The words with the name of who said them: a fact names them, too."""
    return f"{said.speaker or ''}: {said.text}"


def _words_of(speaker: str | None, said: Sequence[Said]) -> list[str]:
    return [one.text for one in said if one.speaker == speaker]


def _statements(speaker: str | None, said: Sequence[Said]) -> list[str]:
    texts = (one for text in _words_of(speaker, said) for one in _SENTENCE.split(text))
    return [one for one in texts if not asks(one)]


@cached_by_text(1_024)
def _passages(text: str) -> Sequence[str]:
    return tuple(one for one in _PASSAGES.split(_ESCAPES.sub("\n", text)) if one.strip())


@cached_by_text(8_192)
def _terms(text: str) -> frozenset[str]:
    return frozenset(terms(text))


@cached_by_text(8_192)
def _runs(text: str) -> frozenset[tuple[str, ...]]:
    found = terms(text)
    return frozenset(zip(*(found[at:] for at in range(RUN)), strict=False))
