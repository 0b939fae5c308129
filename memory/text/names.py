"""Names of people, places and things: comparing them, and finding them in a text. Pure.

Comparison ignores case, spaces and a leading `@`, and as a last resort the ending of a genitive.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Sequence
from typing import NamedTuple

from memory.text.words import STOP_WORDS, cached_by_text

LONGEST = 200
"""Most characters of a name."""

MOST_WORDS = 300
"""Most words of a text that are searched for names."""

_WORDS_OF_A_NAME = 4
_GENITIVE = re.compile(r"(?:['\N{RIGHT SINGLE QUOTATION MARK}]s?)+$")
_BREAK = re.compile(r"[\s\N{EM DASH}\N{EN DASH}]+")

_AROUND = "".join(
    (
        ",;:!?*_~`\"'()[]{}<>|",
        "\N{HORIZONTAL ELLIPSIS}",
        "\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}",
        "\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}",
    )
)
"""Punctuation around a name; a full stop may belong to the name ("Ana L.")."""
_AROUND_OR_STOP = f"{_AROUND}."

_ENDS = re.compile(r"[,;:!?)\]}\"\N{RIGHT DOUBLE QUOTATION MARK}\N{HORIZONTAL ELLIPSIS}]$")
"""A name does not continue after a word with this ending."""

_PRONOUNS = """
    i me we us you he she it they him her them someone somebody everyone everybody anyone anybody
    nobody no-one this that these those who
"""
PRONOUNS = frozenset(_PRONOUNS.split())
"""These name nobody: their meaning changes with every sentence."""

_KINSHIP = """
    mom mum mommy mummy mother dad daddy father parents grandma grandpa granny grandmother
    grandfather aunt auntie uncle sister brother son daughter wife husband partner boss friend
    neighbour papa mama mutti vati oma opa papá mamá maman mamie abuela abuelo nonna nonno
    爸爸 妈妈 奶奶 爷爷 外婆 外公
"""
_KIN = frozenset(_KINSHIP.split())
_WHOSE = ("my ", "our ", "your ", "his ", "her ", "their ")

SPEAKER = frozenset(
    ("user", "the user", "human", "the human", "speaker", "the speaker", "sender", "the sender")
)
"""A model's words for an unnamed speaker; as names they would merge all people into one."""


class Place(NamedTuple):
    """A run of words in a text that may be a name."""

    first: int
    """Number of the first word."""
    end: int
    """Number of the word after the last."""
    key: str


def name_key(name: str) -> str:
    """Lookup key of a name or sender id: without case, extra spaces and leading `@`."""
    folded = unicodedata.normalize("NFC", " ".join(name.casefold().split()))
    return folded.lstrip("@ ") or folded


def spellings(name: str) -> list[str]:
    """Possible keys of `name`: its own first, then without a genitive's ending.

    "Ana's" may be Ana, but if there is a McDonald's, "McDonald's" is not McDonald.
    """
    key = name_key(name)
    return list(dict.fromkeys((key, _GENITIVE.sub("", key).strip() or key)))


def shown_name(name: str) -> str:
    """A name as stored: on one line, without a leading `@`."""
    line = " ".join(name.split())
    return line.lstrip("@ ") or line


def depends_on_speaker(name: str) -> bool:
    """Whether the meaning depends on the speaker, as with "Mom" and "my sister"."""
    key = name_key(name)
    return key in _KIN or key.startswith(_WHOSE)


@cached_by_text(256)
def places(text: str) -> Sequence[Place]:
    """Every run of one to four words that may be a name, in order.

    An ordinary word such as "will" counts only with a capital letter. Only the first 300 words are
    searched.
    """
    words = _words(text)
    return tuple(place for first in range(len(words)) for place in _from(words, first))


def says(text: str, name: str) -> bool:
    """Whether `text` contains `name` as whole words."""
    wanted, words = spellings(name), _words(text)
    firsts = {key.partition(" ")[0] for key in wanted}
    return any(
        place.key in wanted
        for number, word in enumerate(words)
        if any(first in name_key(word) for first in firsts)
        for place in _from(words, number)
    )


def longest(found: Sequence[Place], known: Container[str]) -> list[str]:
    """The known keys among `found`, each once; "Ana Lopez" does not name Ana."""
    taken: list[Place] = []
    named = [place for place in found if place.key in known]
    for place in sorted(named, key=lambda place: (place.first - place.end, place.first)):
        if not any(place.first < other.end and other.first < place.end for other in taken):
            taken.append(place)
    return list(dict.fromkeys(place.key for place in sorted(taken)))


def _words(text: str) -> list[str]:
    return _BREAK.split(text.strip(), maxsplit=MOST_WORDS)[:MOST_WORDS]


def _from(words: Sequence[str], first: int) -> list[Place]:
    """Runs that begin at a word, with and without surrounding punctuation."""
    found: list[Place] = []
    for end in range(first + 1, min(first + _WORDS_OF_A_NAME, len(words)) + 1):
        run = " ".join(words[first:end])
        bare = run.strip(_AROUND_OR_STOP)
        tried = (run,) if bare == run else dict.fromkeys((run, run.strip(_AROUND), bare))
        keys = dict.fromkeys(key for form in tried if form for key in spellings(form))
        found += [Place(first, end, key) for key in keys if not _is_plain(key, bare)]
        if _ENDS.search(words[end - 1]):
            break
    return found


def _is_plain(key: str, written: str) -> bool:
    return key in STOP_WORDS and not written[:1].isupper()
