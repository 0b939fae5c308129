"""Words, stems, sentences and names in English text. Pure; needs no dictionary.

Word search, the offline model and the offline embedder cut text by these rules. A forget looks for
what is said in any language, and however it is spelled. Names, last in this file, are compared
without case, spaces and a leading `@`, and as a last resort without the ending of a genitive.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, NamedTuple, TypeVar, cast

LONGEST_CACHED = 2_000
"""Characters of the longest text that is cached; a message may be fifty times as long."""

Result = TypeVar("Result")


def cached_by_text(maxsize: int) -> Callable[[Callable[[str], Result]], Callable[[str], Result]]:
    """Cache the results for the last `maxsize` texts. Long texts are computed each time."""

    def wrap(function: Callable[[str], Result]) -> Callable[[str], Result]:
        kept = lru_cache(maxsize=maxsize)(function)

        @wraps(function)
        def called(text: str) -> Result:
            return kept(text) if len(text) <= LONGEST_CACHED else function(text)

        return called

    return wrap


class _Pattern:
    """The methods of a compiled pattern as its own, so that a call costs the same."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern, self.given = pattern, flags


class _LatePattern(_Pattern):
    """A pattern that its first use compiles."""

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self.pattern, self.given)
        self.__dict__.update({one: getattr(compiled, one) for one in _MEMBERS})
        self.__class__ = _Pattern  # type: ignore[assignment] # without __getattr__, which is slow
        return getattr(compiled, name)


_MEMBERS = [one for one in dir(re.Pattern) if one[0] != "_" and one != "pattern"]


def regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern of a module. Compiling all 500 takes as long as a command that only reads."""
    return cast("re.Pattern[str]", _LatePattern(pattern, flags))


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

_WORD = regex(r"[^\W_]+(?:['\u2019][^\W_]+)?")
SENTENCE_END = r"(?<=[.!?…])[\"'\u2019”»)\]]*\s+|\n+"
_SENTENCE_END = regex(SENTENCE_END)
_ABBREVIATION = regex(
    r"(?<![\w.'\u2019])(?:(?:M|Hr|Fr|(?i:mr|mrs|ms|mme|dr|prof|assoc|sra?|uds?|st|av|vs|e\.g|i\.e"
    r"|approx|bzw|z\.b|ca|nr|inkl|ggf))\..?|(?i:no|fig)\.\d|(?i:etc|a\.m|p\.m)\.[^\WA-Z\d])$"
)
"""Of five languages, with the first letter behind: "no. 5" goes on, "No. Friday" does not."""
_NEAR = 200
"""Characters before and behind a point that tell whether a sentence ends there."""

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
    """A crude English stem: "painted" and "painting" become "paint", "bought" becomes "buy"."""
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


def sentences(
    text: str,
    ends: re.Pattern[str] = _SENTENCE_END,
    goes_on: Callable[[str, str], bool] = lambda before, behind: False,
) -> list[str]:
    """The sentences of `text`, trimmed; a line break ends a sentence.

    `ends`: where one may end, if not only there. `goes_on`: whether one goes on between what is
    before and behind such a place, besides behind an abbreviation.
    """
    found, start = [], 0
    for end in [*(match.end() for match in ends.finditer(text)), len(text)]:
        before, behind = text[max(start, end - _NEAR) : end], text[end : end + _NEAR]
        abbreviated = _ABBREVIATION.search(before.rstrip()[-10:] + behind[:1])
        if behind and (abbreviated or goes_on(before, behind)):
            continue
        if sentence := text[start:end].strip():
            found.append(sentence)
        start = end
    return found


def one_line(text: str) -> str:
    """`text` without line breaks, so that it cannot look like a second list item."""
    return " ".join(text.split())


def shortened(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters, cut after a word, with three dots."""
    line = " ".join(text.split())
    if len(line) <= limit or limit < 10:
        return line[:limit]
    return line[: max(0, limit - 3)].rsplit(" ", 1)[0].rstrip(",;: ") + "..."


# What a forget looks for

SPELLED = str.maketrans(
    dict.fromkeys("\u2018\u2019\u02bc\u02b9\u2032\uff07\u0060\u00b4", "'")
    | dict.fromkeys("\u2010\u2011\u2012\u2013", "-")
)
"""Variants of apostrophe and hyphen become one."""
INVISIBLE = regex(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
"""Characters that no text shows (Unicode: default ignorable)."""


_ACCENTS = regex("[\u0300-\u036f]")
_RUN = regex(r"[^\W_]+")

Saying = tuple[tuple[str, ...], ...]
"""Words that all stand in a sentence: of each, with what it may begin, as skeletons."""


@dataclass(frozen=True)
class TextPrefilter:
    """Passes the texts that have to be read, because they may have a saying."""

    sayings: frozenset[Saying]

    def within(self, text: str) -> bool:
        """Whether `text`, which may be a record as JSON, has to be read."""
        plain = skeleton(text)
        said = (all(any(one in plain for one in word) for word in words) for words in self.sayings)
        return any(said)


def skeleton(text: str) -> str:
    """`text` without what differs between spellings: case, accents, apostrophes and the like."""
    if not text.isascii():
        shown = INVISIBLE.sub("'", text).translate(SPELLED)
        folded = unicodedata.normalize("NFKC", shown).casefold()
        text = _ACCENTS.sub("", unicodedata.normalize("NFKD", folded))
    return text.lower().replace("`", "").replace("'", "")


def saying(words: Iterable[Iterable[str]]) -> Saying:
    """What a text has that says all `words`, each in one of its forms, the longest first."""
    each = (tuple(sorted(map(skeleton, forms))) for forms in words)
    return tuple(sorted(each, key=lambda forms: (-max(map(len, forms)), forms)))


def written_out(text: str) -> Saying:
    """What a text has that has this one, however it is spelled."""
    return saying((word,) for word in {*_RUN.findall(skeleton(text))})


LONGEST = 200
"""Most characters of a name."""

MAX_WORDS = 300
"""Most words of a text that are searched for names."""

_WORDS_OF_A_NAME = 4
_GENITIVE = regex(r"(?:['\N{RIGHT SINGLE QUOTATION MARK}]s?)+$")
_BREAK = regex(r"[\s\N{EM DASH}\N{EN DASH}]+")

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

_ENDS = regex(r"[,;:!?)\]}\"\N{RIGHT DOUBLE QUOTATION MARK}\N{HORIZONTAL ELLIPSIS}]$")
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
    """Possible keys of `name`: its own first, then without a genitive's ending, or accents.

    "Ana's" may be Ana, but if there is a McDonald's, "McDonald's" is not McDonald. "Inés" may be
    Ines.
    """
    key = name_key(name)
    bare = _GENITIVE.sub("", key).strip() or key
    if bare.isascii():
        return [key, bare] if bare != key else [key]
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", bare))
    return list(dict.fromkeys((key, bare, plain if len(plain) > 3 else bare)))


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
    return _BREAK.split(text.strip(), maxsplit=MAX_WORDS)[:MAX_WORDS]


def _from(words: Sequence[str], first: int) -> list[Place]:
    """Runs that begin at a word, with and without surrounding punctuation."""
    found: list[Place] = []
    for end in range(first + 1, min(first + _WORDS_OF_A_NAME, len(words)) + 1):
        run = " ".join(words[first:end])
        bare = run.strip(_AROUND_OR_STOP)
        tried = (run,) if bare == run else dict.fromkeys((run, run.strip(_AROUND), bare))
        keys = dict.fromkeys(key for form in tried if form for key in spellings(form))
        named = bare[:1].isupper()
        found += [Place(first, end, key) for key in keys if named or key not in STOP_WORDS]
        if _ENDS.search(words[end - 1]):
            break
    return found
