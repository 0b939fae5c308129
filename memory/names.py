"""Names of people, places and things: when two spellings are one name, and where one is said. Pure.

Nothing is folded but case, blanks, a leading `@` and, where nothing else fits, a genitive's ending.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Sequence
from typing import NamedTuple

from memory.caching import cached_by_text
from memory.models.words import STOP_WORDS

LONGEST = 200
"""Characters of a name, as of a sender."""
MOST_WORDS = 300
"""Words of a text in which names are looked for."""
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
"""What may stand round a name in a text; a full stop may be a part of it ("Ana L.") or not."""
_ENDS = re.compile(r"[,;:!?)\]}\"\N{RIGHT DOUBLE QUOTATION MARK}\N{HORIZONTAL ELLIPSIS}]$")
"""Behind a word that ends so, no name goes on."""

PRONOUNS = frozenset(
    (
        *("i", "me", "we", "us", "you", "he", "she", "it", "they", "him", "her", "them"),
        *("someone", "somebody", "everyone", "everybody", "anyone", "anybody", "nobody", "no-one"),
        *("this", "that", "these", "those", "who"),
    )
)
"""They name nobody: who is meant changes with every sentence."""
_KIN = frozenset(
    (
        *("mom", "mum", "mommy", "mummy", "mother", "dad", "daddy", "father", "parents", "grandma"),
        *("grandpa", "granny", "grandmother", "grandfather", "aunt", "auntie", "uncle", "sister"),
        *(
            "brother",
            "son",
            "daughter",
            "wife",
            "husband",
            "partner",
            "boss",
            "friend",
            "neighbour",
        ),
    )
)
_WHOSE = ("my ", "our ", "your ", "his ", "her ", "their ")
SPEAKER = frozenset(
    ("user", "the user", "human", "the human", "speaker", "the speaker", "sender", "the sender")
)
"""By these a model means whoever spoke; under such a name all people would be one."""


class Place(NamedTuple):
    """Words of a text that may be a name."""

    first: int
    """Number of the first word."""
    end: int
    """Number of the word behind them."""
    key: str


def name_key(name: str) -> str:
    """A name, or a sender's id, as it is looked up: without case, blanks and leading `@`."""
    folded = unicodedata.normalize("NFC", " ".join(name.casefold().split()))
    return folded.lstrip("@ ") or folded


def spellings(name: str) -> list[str]:
    """The keys that `name` may stand for: its own first, then without a genitive's ending.

    "Ana's" may be Ana; "McDonald's" is not McDonald where there is a McDonald's.
    """
    key = name_key(name)
    return list(dict.fromkeys((key, _GENITIVE.sub("", key).strip() or key)))


def shown_name(name: str) -> str:
    """A name as it is kept: on one line, without a leading `@`."""
    line = " ".join(name.split())
    return line.lstrip("@ ") or line


def depends_on_speaker(name: str) -> bool:
    """Whether whom it means follows from who says it: "Mom" and "my sister" are many people."""
    key = name_key(name)
    return key in _KIN or key.startswith(_WHOSE)


@cached_by_text(256)
def places(text: str) -> Sequence[Place]:
    """Every run of one to four words in `text` that may be a name, in order.

    A word such as "will" only where it begins with a capital letter. Of a long text the first
    300 words are read.
    """
    words = _BREAK.split(text.strip(), maxsplit=MOST_WORDS)[:MOST_WORDS]
    return tuple(one for first in range(len(words)) for one in _from(words, first))


def says(text: str, name: str) -> bool:
    """Whether `name` stands in `text` as whole words."""
    return not {one.key for one in places(text)}.isdisjoint(spellings(name))


def longest(found: Sequence[Place], known: Container[str]) -> list[str]:
    """The keys of `found` that are known, in order of their first place, each once.

    Where one lies within another the longer counts: who speaks of Ana Lopez does not name Ana.
    """
    taken: list[Place] = []
    for one in sorted(found, key=lambda place: (place.first - place.end, place.first)):
        if one.key in known and not any(one.first < o.end and o.first < one.end for o in taken):
            taken.append(one)
    return list(dict.fromkeys(one.key for one in sorted(taken)))


def _from(words: Sequence[str], first: int) -> list[Place]:
    """The runs that begin at a word; each is tried with and without what stands round it."""
    found: list[Place] = []
    for end in range(first + 1, min(first + _WORDS_OF_A_NAME, len(words)) + 1):
        run = " ".join(words[first:end])
        inner = run.strip(_AROUND)
        bare = run.strip(f"{_AROUND}.")
        tried = dict.fromkeys(one for one in (run, inner, bare) if one)
        keys = dict.fromkeys(key for one in tried for key in spellings(one))
        found += [Place(first, end, key) for key in keys if not _is_plain(key, bare)]
        if _ENDS.search(words[end - 1]):
            break
    return found


def _is_plain(key: str, written: str) -> bool:
    """Whether it is an ordinary word, and written as one."""
    return key in STOP_WORDS and not written[:1].isupper()
