"""Words, stems and sentences of English text. Pure; needs no dictionary.

Word search, the offline model and the offline embedder cut text by these rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

LONGEST = 2_000
"""Characters of the longest text that is cached; a message may be fifty times as long."""

Result = TypeVar("Result")


def cached_by_text(
    maxsize: int,
) -> Callable[[Callable[[str], Result]], Callable[[str], Result]]:
    """Cache the results for the last `maxsize` texts. Long texts are computed each time."""

    def wrap(function: Callable[[str], Result]) -> Callable[[str], Result]:
        kept = lru_cache(maxsize=maxsize)(function)

        @wraps(function)
        def called(text: str) -> Result:
            return kept(text) if len(text) <= LONGEST else function(text)

        return called

    return wrap


_STOP_WORDS = """
    a about after again all also am an and any are as at be because been before being but by can
    could did do does doing done down for from had has have having he her here hers him his how i if
    in into is it its just let like me more most my no nor not now of off on once only or other our
    out over own please really same she should so some such tell than that the their them then there
    these they this those through to too under until up us very was we were what when where which
    while who whom whose why will with would you your yours
"""

STOP_WORDS = frozenset(_STOP_WORDS.split())

_PAST_FORMS = """
    buy bought; sell sold; go went gone; tell told; say said; see saw seen; eat ate eaten;
    make made; come came; take took taken; give gave given; find found; leave left;
    lose lost; meet met;
    keep kept; feel felt; think thought; know knew known; begin began begun; break broke broken;
    bring brought; build built; choose chose chosen; drink drank drunk; drive drove driven;
    fall fell fallen; fly flew flown; forget forgot forgotten; get got gotten;
    grow grew grown; hear heard;
    hold held; pay paid; run ran; send sent; sing sang sung; sit sat; sleep slept; speak spoke
    spoken; spend spent; stand stood; swim swam swum; teach taught; win won; wear wore worn; write
    wrote written; child children; person people; foot feet; tooth teeth; mouse mice
"""

_IRREGULAR = {
    form: base for base, *forms in map(str.split, _PAST_FORMS.split(";")) for form in forms
}

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[.!?][\"')\]])\s+|\n+")
_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|e\.g|i\.e|approx|No|a\.m|p\.m)\.$")

_ENDINGS = (
    *(("ies", "y"), ("ied", "y"), ("ss", "ss"), ("us", "us"), ("is", "is")),
    *(("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("ly", ""), ("e", "")),
)
"""(ending, replacement); the first that fits counts. An ending that stays protects the word."""

_DOUBLES = frozenset("bdgmnprt")


def words(text: str) -> list[str]:
    """The words of `text` in lower case without possessive endings: "Ana's cat" -> ana, cat."""
    return [bare(match.group().lower()) for match in _WORD.finditer(text)]


def bare(word: str) -> str:
    """A word without its genitive: ana's becomes ana, but don't becomes dont."""
    head, _, tail = word.replace("\u2019", "'").partition("'")
    return head if tail == "s" else head + tail


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A crude English stem: "paints", "painted" and "painting" become "paint".

    Common irregular forms are known: "bought" becomes "buy".
    """
    word = _IRREGULAR.get(word, word)
    for _ in range(3):
        shorter = _without_ending(word)
        if shorter == word:
            break
        word = shorter
    return word


def _without_ending(word: str) -> str:
    for ending, instead in _ENDINGS:
        root = word.removesuffix(ending)
        if root != word and len(root + instead) >= 3:
            return _single(root) if ending in ("ing", "ed") else root + instead
    return word


def _single(root: str) -> str:
    """Undo a doubled letter: "plann" becomes "plan", but "fall" and "miss" stay."""
    doubled = len(root) > 3 and root[-1] == root[-2] and root[-1] in _DOUBLES
    return root[:-1] if doubled else root


def beginnings(stemmed: str) -> set[str]:
    """With what the words of this stem begin, in lower case: each begins with one of them."""
    forms = {form for form in _IRREGULAR if stem(form) == stemmed}
    return {stemmed.removesuffix("y"), *forms}


def content_stems(text: str) -> list[str]:
    """The stems of `text` in order, without stop words."""
    return [stem(word) for word in words(text) if word not in STOP_WORDS]


def sentences(text: str) -> list[str]:
    """The sentences of `text`, trimmed; a line break ends a sentence."""
    found: list[str] = []  # of the last, only the end is searched: a text may be long
    for piece in _SENTENCE_END.split(text):
        part = piece.strip()
        if found and _ABBREVIATION.search(found[-1][-8:]):
            found[-1] = f"{found[-1]} {part}".strip()
        elif part:
            found.append(part)
    return found


def shortened(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters, cut after a word, with three dots."""
    line = " ".join(text.split())
    if len(line) <= limit or limit < 10:
        return line[:limit]
    return line[: max(0, limit - 3)].rsplit(" ", 1)[0].rstrip(",;: ") + "..."
