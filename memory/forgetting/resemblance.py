"""What else is theirs: texts that quote what is erased, or that nothing else can have given. Pure.

Where it is written down what a text was made from, that decides (`memory.forgetting.lineage`).
Here are the rules for texts of which it is not: session memory, goals, replies, summaries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from memory.forgetting.names import unspaced
from memory.models.words import STOP_WORDS, stem, words

RUN = 4
"""Content words in a row that make a quotation."""
MOST_ALIKE = 0.5
"""A sentence is from an erased text that has more than this share of its content words."""
LEAST_SHARED = 2
"""Content words that it has to have in common with it."""

_Stems = tuple[str, ...]


class Speech(NamedTuple):
    """What somebody said."""

    at: str
    """ISO 8601, UTC."""
    text: str
    erased: bool
    own: bool = True
    """Of what is erased: the person said it, and nobody else about them."""


class _Texts:
    """Texts by the words that they have."""

    def __init__(self, texts: Iterable[_Stems]) -> None:
        self._with: dict[str, list[int]] = {}
        for number, stems in enumerate({frozenset(one) for one in texts}):
            for one in stems:
                self._with.setdefault(one, []).append(number)

    @property
    def words(self) -> set[str]:
        return set(self._with)

    def most_shared(self, wanted: frozenset[str]) -> int:
        """How many of these words one text has, at the most."""
        shared = Counter(number for one in wanted for number in self._with.get(one, ()))
        return max(shared.values(), default=0)


class Resemblance:
    """What was said by those who are forgotten and by those who are not, to compare with.

    `kept` are texts that stay and that nobody said in these words (facts); `written` those that the
    assistant wrote on behalf of what is erased.
    """

    def __init__(
        self, said: Iterable[Speech], *, kept: Iterable[str] = (), written: Iterable[str] = ()
    ) -> None:
        spoken = sorted(said, key=lambda one: one.at)
        stems = [content(one.text) for one in spoken]
        erased = [one for one, speech in zip(stems, spoken, strict=True) if speech.erased]
        staying = [one for one, speech in zip(stems, spoken, strict=True) if not speech.erased]
        self._erased, self._staying = _Texts(erased), _Texts((*staying, *map(content, kept)))
        self._own = self._erased.words - self._staying.words
        self._first, self._runs = _quotable(spoken, stems)
        self._written = {_plain(one) for one in written if len(content(one)) > 1}

    def quotes(self, stems: _Stems) -> bool:
        """Whether it has four content words in a row of an erased text, and of no other."""
        return not self._runs.isdisjoint(_runs(stems))

    def repeats(self, stems: _Stems) -> bool:
        """Whether it has four content words in a row that the person was the first to say."""
        return not self._first.isdisjoint(_runs(stems))

    def resembles(self, stems: _Stems) -> bool:
        """Whether more than half of the words are from one erased text, and from no other more."""
        wanted = frozenset(stems)
        shared = self._erased.most_shared(wanted)
        if shared < LEAST_SHARED or shared <= MOST_ALIKE * len(wanted):
            return False
        return self._staying.most_shared(wanted) < shared

    def has_own_word(self, stems: _Stems) -> bool:
        """Whether there is a word that only the erased said."""
        return not self._own.isdisjoint(stems)

    def is_written(self, text: str) -> bool:
        """Whether the assistant wrote exactly this on behalf of what is erased."""
        return _plain(text) in self._written


@lru_cache(maxsize=65_536)
def content(text: str) -> _Stems:
    """The stems of the content words in order; of a script without blanks, its runs of four."""
    found: list[str] = []
    for word in words(text):
        if word in STOP_WORDS:
            continue
        if len(word) > RUN and unspaced(word):
            found += (word[at : at + RUN] for at in range(len(word) - RUN + 1))
        else:
            found.append(stem(word))
    return tuple(found)


def _quotable(spoken: Sequence[Speech], stems: Sequence[_Stems]) -> tuple[set[_Stems], set[_Stems]]:
    """(runs that the person was the first to say, runs that only erased texts have)."""
    erased = [set(_runs(one)) for one, s in zip(stems, spoken, strict=True) if s.erased]
    wanted = set().union(*erased)
    theirs: set[_Stems] = set()
    others: set[_Stems] = set()
    staying: set[_Stems] = set()
    for speech, some in zip(spoken, stems, strict=True):
        runs = wanted.intersection(_runs(some))
        if speech.erased and speech.own:
            theirs |= runs - others
        else:
            others |= runs - theirs
            staying |= set() if speech.erased else runs - theirs
    return theirs, wanted - staying


def _runs(stems: _Stems) -> Iterable[_Stems]:
    return (stems[at : at + RUN] for at in range(len(stems) - RUN + 1))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
