"""Analysis of texts and queries: index terms, the text to embed, names, dates and questions. Pure.

English words are stemmed. Scripts without spaces are cut into pairs of characters. All other words
are indexed as they are, without case and accents.
"""

from __future__ import annotations

import math
import re
import unicodedata
from calendar import monthrange
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Literal, NamedTuple

from memory.text.clock import MONTHS
from memory.text.words import STOP_WORDS, bare, cached_by_text, regex, says, stem

_NAMES = [name.lower() for name in MONTHS]
_MONTH = "|".join([*_NAMES, *(name[:3] for name in _NAMES), "sept"])
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_ISO = regex(r"\b(\d{4})-(\d\d)(?:-(\d\d))?\b")

_WRITTEN = regex(
    rf"(?:\b{_DAY}(?: of)? )?\b({_MONTH})\b\.?(?:,? {_DAY}\b(?!\d))?(?:,? (\d{{4}}))?\b",
    re.IGNORECASE,
)

_BEFORE_MAY = regex(r"\b(?:in|of|during|since|until|till|by|before|after|last|this|next) $")
_YEAR = regex(r"\b((?:19|20)\d\d)\b")

NEAR = 5.0
"""Distance in days at which closeness falls to 1/e."""

_YEAR_ALONE = 0.3
"""Closeness of any moment within a year, if only the year is given."""


class Day(NamedTuple):
    """A date, possibly without its year, month or day."""

    year: int | None
    month: int | None = None
    day: int | None = None

    def closeness(self, moment: datetime) -> float:
        """Closeness of `moment` (UTC), 0..1. A missing year counts as the year of `moment`."""
        year = self.year or moment.year
        if self.month is None:
            return _YEAR_ALONE if moment.year == year else 0.0
        if self.day is None:
            return float((moment.year, moment.month) == (year, self.month))
        last = monthrange(year, self.month)[1]
        noon = datetime(year, self.month, min(self.day, last), 12, tzinfo=UTC)
        return math.exp(-abs((moment - noon).total_seconds()) / (86_400 * NEAR))


def days_in(text: str) -> list[Day]:
    """The dates in `text`; a separate year completes a month without one."""
    years = [int(found) for found in _YEAR.findall(text)]
    found = [*_written(text, years[0] if years else None), *_iso(text)]
    return found or [Day(year) for year in years[:1]]


def _written(text: str, year: int | None) -> Iterator[Day]:
    for match in _WRITTEN.finditer(text):
        before, name, after, own = match.groups()
        day = before or after
        if name.lower() == "may" and not (day or own or _BEFORE_MAY.search(text[: match.start()])):
            continue
        month = next(n for n, one in enumerate(_NAMES, 1) if one.startswith(name[:3].lower()))
        yield from _day(int(own) if own else year, month, int(day) if day else None)


def _iso(text: str) -> Iterator[Day]:
    for year, month, day in _ISO.findall(text):
        yield from _day(int(year), int(month), int(day) if day else None)


def _day(year: int | None, month: int, day: int | None) -> Iterator[Day]:
    try:
        date(year or 2024, month, day or 1)
    except ValueError:
        return
    yield Day(year, month, day)


ANALYSIS_VERSION = 2
"""Increase it when `terms` changes its results: everything stored is then analysed again."""

OWN_WEIGHT = 2
"""Weight of a text's own terms; terms from its surroundings have weight 1."""

BESIDE = 20
"""Terms taken from a text before an entry, its last ones: a long one would drown a short entry."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
)
"""Thai, Lao, Burmese, Hangul (whose particles stick to the word), Khmer, Kana and Han."""

_MARKS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
"""Vowel signs and the like: parts of words that Python does not count as letters."""

_SYMBOLS = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
"""Emoji and the like, each of which is a word."""

_PIECE = regex(
    rf"[{_UNSPACED}]+|[{_SYMBOLS}]|(?:(?![{_UNSPACED}])(?:[^\W_]|[{_MARKS}]))+(?:['\u2019][a-z]+)?"
)

_IS_UNSPACED = regex(rf"[{_UNSPACED}]")
_ACCENTS = regex("[\u0300-\u036f]")
_QUESTION = regex(r"[?\uff1f\u061f\u037e][\s\"'\u201d\u2019)\]]*$")

_ASIDE = regex(r"\s*\[[^\[\]]*\]\s*$")
"""A bracket at the end of a text, such as a picture's caption."""

_SELF = regex(
    r"\b(?:i|me|my|mine|myself|we|our|ours|ich|mich|mir|meine?[mnrs]?|wir|unsere?[mnrs]?"
    r"|yo|mis?|nosotr[oa]s|je|moi|mes|nous|eu|meu|minha)\b(?!-)",
    re.IGNORECASE,
)
"""Words by which speakers mean themselves; `us` is left out, as it may be a country."""

_OFTEN = 0.04
"""Share of these words in a text from which it is wholly about its speaker."""

_READ = 1_000
"""Characters at the beginning of a text that tell whether it is about its speaker."""

_PAST = regex(
    r"\bused to\b|\bno longer\b|\bnot any ?more\b|\bany ?more\b|\bpreviously\b|\bformer(?:ly)?\b"
    r"|\bback then\b|\bin the past\b|\bbefore[.?!]*$"
    r"|\b(?:was|were|did|had)\b.*\bbefore\b|\bdid(?:n['\u2019]?t)?\b.*\buse to\b"
    r"|\boriginally\b|\buntil recently\b",
    re.IGNORECASE,
)

_SEVERAL = regex(
    r"\bhow (?:many|often)\b|\bwhat (?:all|are|were|other|kinds?|types?|sorts?)\b"
    r"|^(?:what|which) (?:\w+ ){0,2}\w{3,}[^su]s\b|\b(?:both|share|common|different|various)\b"
    r"|\bha(?:s|ve)\b",
    re.IGNORECASE,
)
"""What a question has that may be about several things, told on several days."""

_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_ONE_TO_TEN = "one|two|three|four|five|six|seven|eight|nine|ten"
_WHEN = regex(r"\bwhen\b|\bhow long\b|\bwhat (?:date|day|month|year|time)\b", re.IGNORECASE)
_TIMES = regex(
    rf"\b(?:yesterday|today|tonight|tomorrow|ago|last|next|recently|just|{'|'.join(_NAMES)}"
    rf"|{_WEEKDAY}|(?:week(?:end)?|month|year)s?"
    r"|this (?:morning|spring|summer|fall|autumn|winter)|\d{4})\b",
    re.IGNORECASE,
)
_HOW_MANY = regex(r"\bhow (?:many|much|often|old)\b", re.IGNORECASE)
_NUMBERS = regex(rf"\b(?:\d+|{_ONE_TO_TEN}|once|twice|several|couple|dozen)\b", re.IGNORECASE)

_ANY_NUMBER = regex(
    rf"\d|\b(?:{_ONE_TO_TEN}|eleven|twelve|\w+teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
    r"(?:-\w+)?|hundreds?|thousands?|once|twice|both|several|couple|dozens?|half|none|nobody)\b",
    re.IGNORECASE,
)
_MONEY = regex(
    r"\d|[€$£¥]|\b(?:euros?|dollars?|pounds?|quid|bucks?|cents?|pence|lira|francs?|free)\b",
    re.IGNORECASE,
)
_ASKS_HOW_MUCH = regex(r"\bhow (?:many|much|old)\b", re.IGNORECASE)
_ASKS_FOR_MONEY = regex(
    r"\bhow much\b.*\b(?:costs?|pays?|paid|price|charges?|charged|earns?|earned|owe[sd]?|spen[dt]"
    r"|transfer|worth|bring in|bill(?:ed)?)\b",
    re.IGNORECASE,
)

_NOW = regex(
    r"\bhow (?:many|much|often|long|old)\b|\bwhen\b"
    r"|\bwh(?:at|ich)(?:'s| \w+)? (?:is|are|am|do|does|should|have|has|will|can)\b",
    re.IGNORECASE,
)
_NOT_NOW = regex(r"\b(?:did|was|were|had|between)\b", re.IGNORECASE)

_VALUE = rf"\b(?:\d|(?:{_ONE_TO_TEN}|twelve|twenty|thirty|forty|fifty|{_WEEKDAY})\b)"
_TELLS_VALUE = regex(_VALUE, re.IGNORECASE)
_NEW_VALUE = regex(
    r"\b(?:now|new(?:ly)?|recently|instead|actually|correction|reached|total|rescheduled|moved"
    r"|postponed|delayed|shifted|pushed|changed|updated|adjusted|revised|switched|extended|increased"
    r"|decreased|reduced|grown|grew|risen|rose|dropped|raised|lowered|improved|boosted|expanded"
    rf"|upgraded|moving|changing|updating|growth)\b(?:[^.!?\n]|\.(?=\d)){{0,80}}?{_VALUE}"
    rf"|{_VALUE}[^.!?\n]{{0,40}}\b(?:instead|now)\b",
    re.IGNORECASE,
)
"""A number or a weekday that is said to be new."""


@dataclass(frozen=True)
class Query:
    """A query, analysed."""

    terms: tuple[str, ...]
    """The distinct index terms to look up."""
    text: str
    """The text to embed, without speakers' names, which say who spoke and not what about."""
    people: frozenset[str]
    """The speakers named in the query."""
    days: tuple[Day, ...]
    """The dates in the query."""
    past: bool
    """The query asks about the past."""
    own: bool = False
    """Whoever asks speaks of themselves."""
    several: bool = False
    """The answer may have several parts, told on several days."""
    figure: Literal["time", "number"] | None = None
    """The query asks for a time, or for a number."""
    now: bool = False
    """The query asks for a value as it is today."""
    called: frozenset[str] = frozenset()
    """All names of those named in the query."""
    amount: Literal["number", "money"] | None = None
    """The query asks how many there are, or how much money."""


def terms(text: str) -> list[str]:
    """The index terms of a text or query, in order; stop words only if it has no others."""
    return list(_terms(text))


@cached_by_text(20_000)
def term_set(text: str) -> frozenset[str]:
    """The index terms of a text; kept, since a memory is compared with many others."""
    return frozenset(terms(text))


@cached_by_text(4_096)
def _terms(text: str) -> Sequence[str]:
    """`terms`, kept: one tick's memories are nearly all the next one's, too."""
    pieces = _PIECE.findall(_folded(text))
    telling = [piece for piece in pieces if bare(piece) not in STOP_WORDS]
    return tuple(term for piece in telling or pieces for term in _terms_of(piece))


def entry_terms(text: str, speaker: str | None, before: Sequence[str]) -> list[str]:
    """Index terms of an entry: its own (twice), and the last of `before`, such as its question."""
    own = [*terms(text), *terms(speaker or "")]
    return [*(own * OWN_WEIGHT), *(term for earlier in before for term in terms(earlier)[-BESIDE:])]


def fact_terms(text: str, beside: Sequence[str]) -> list[str]:
    """Index terms of a fact: its own (twice), and new ones from the context that a night wrote."""
    own = terms(text)
    new = [term for term in dict.fromkeys(terms(" ".join(beside))) if term not in own]
    return [*(own * OWN_WEIGHT), *new] if new else own


def embedded_text(text: str, names: Iterable[str]) -> str:
    """The text of a journal entry to embed, without the speakers' names.

    Otherwise "Thanks, Ana!" would be close to every question about Ana. "Ana's dog" stays.
    """
    return _without(text, names, "(?!['\u2019]s)")


def without_names(text: str, names: Iterable[str]) -> str:
    """`text` without these names as whole words; unchanged if no word would be left."""
    return _without(text, names, "(?:['\u2019]s\\b)?")


def _without(text: str, names: Iterable[str], behind: str) -> str:
    spelled = sorted({name for name in names if name.strip()}, key=len, reverse=True)
    if not spelled:
        return text
    listed = "|".join(map(re.escape, spelled))
    left = re.sub(rf",?[ \t]*(?<!\w)(?:{listed})(?!\w){behind}", "", text, flags=re.IGNORECASE)
    return left.strip(" \t\n,;:") if any(map(str.isalnum, left)) else text


def read_query(text: str, speakers: Collection[str]) -> Query:
    """Analyse a query. `speakers`: known names that it may contain, with all of these people."""
    said = frozenset(name for name in speakers if says(text, name))
    days, past = tuple(days_in(text)), bool(_PAST.search(text.strip()))
    return Query(
        terms=tuple(dict.fromkeys(terms(_HOW.sub(" ", text)) or terms(text))),
        text=without_names(text, said),
        people=said,
        days=days,
        past=past,
        own=bool(_SELF.search(text)),
        several=bool(_SEVERAL.search(text)),
        figure="number" if _HOW_MANY.search(text) else "time" if _WHEN.search(text) else None,
        now=bool(_NOW.search(text)) and not (days or past or _NOT_NOW.search(text)),
        called=frozenset(speakers) if said else said,
        amount=_amount_asked(text),
    )


def _amount_asked(text: str) -> Literal["number", "money"] | None:
    if not _ASKS_HOW_MUCH.search(text):
        return None
    return "money" if _ASKS_FOR_MONEY.search(text) else "number"


_HOW = regex(r"\bhow (?:much|many)\b", re.IGNORECASE)
"""Words that say what kind of answer is wanted, and not what the answer is about."""


@cached_by_text(4_096)
def asks(text: str) -> bool:
    """Whether `text` ends in a question, apart from a bracket behind it."""
    return bool(_QUESTION.search(_ASIDE.sub("", text)))


@cached_by_text(4_096)
def about_self(text: str) -> float:
    """How much the speaker of `text` speaks of themselves, 0..1."""
    read = text[:_READ]
    words = max(6.0, len(read) / 6)
    return min(1.0, len(_SELF.findall(read)) / words / _OFTEN)


def figures(text: str, wanted: Literal["time", "number"]) -> float:
    """How many times or numbers the beginning of `text` tells: 1 from two on."""
    told = _TIMES if wanted == "time" else _NUMBERS
    return min(1.0, len(told.findall(text[:_READ])) / 2)


def tells_amount(text: str, wanted: Literal["number", "money"]) -> bool:
    """Whether a text tells a number or an amount of money: a date is neither."""
    for pattern in (_WRITTEN, _ISO, _YEAR):
        text = pattern.sub(" ", text)
    return (_MONEY if wanted == "money" else _ANY_NUMBER).search(text) is not None


def tells_value(text: str, *, new: bool = False) -> bool:
    """Whether the beginning of `text` tells a number or a weekday; `new`: as one that changed."""
    return bool((_NEW_VALUE if new else _TELLS_VALUE).search(text[:_READ]))


def _folded(text: str) -> str:
    """Without case, accents and compatibility forms: Café becomes cafe."""
    if text.isascii():
        return text.lower()
    opened = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    return unicodedata.normalize("NFC", opened)


@lru_cache(maxsize=65_536)
def _terms_of(piece: str) -> Sequence[str]:
    word = bare(piece)
    if _IS_UNSPACED.match(word):
        return [word[at : at + 2] for at in range(len(word) - 1)] or [word]
    return [stem(word)] if word.isascii() else [word]


# Small talk: greetings, thanks and the like, which tell nothing and ask for nothing.

_SPOKEN = regex(r"[^\W_]+(?:'[^\W_]+)?")

_PHRASES = r"""
    (?:hi|hey|hello|hiya|howdy|greetings)(?: (?:there|again|all|everyone|everybody))?
    good (?:morning|afternoon|evening|night|day)(?: to you)?(?: too)?(?: (?:all|everyone))?
    welcome back|long time no see
    (?:many )?(?:thanks|thank you)(?: (?:a lot|a million|so much|very much|again))?(?: for that)?
    (?:thanks|thank you) for (?:everything|(?:all )?(?:the|your) help)
    you(?:'re| are) welcome|no problem|no worries|cheers
    (?:bye|goodbye|farewell|see you|talk to you)(?: (?:then|later|soon|again|tomorrow|tonight))*
    take care|sleep well|good luck|congratulations|congrats
    have a (?:nice|good|great|lovely|pleasant) (?:day|evening|night|weekend|week|time|trip)
    happy (?:birthday|easter|new year)|merry christmas
    (?:i'm|i am) (?:fine|well)(?: too)?
    (?:nice|good|pleased|lovely) to (?:meet|see|hear from) you(?: (?:too|again))?
"""

_PHRASE = f"(?:{'|'.join(line.strip() for line in _PHRASES.strip().splitlines())})"
_ONLY_PHRASES = regex(f"{_PHRASE}(?: {_PHRASE})*")

_PRAISING = "oh ah lovely wonderful great nice cool super perfect ok okay alright well"
_PRAISE = frozenset(_PRAISING.split())

_FILLING = """
    thanks thank thx ty ok okay yes yeah yep nope sure cool perfect wow lol haha hm hmm oh hi hey
    hello hiya bye goodbye cheers danke bitte hallo tschuss gracias hola merci salut bonjour grazie
    ciao prego obrigado ola tak hvala bok tesekkurler merhaba selam dziekuje spasibo super moin
    servus buongiorno bonsoir
"""
_FILLERS = frozenset(map(stem, _FILLING.split()))
"""Terms that keep a talk going, in several languages. As an answer, "yes" may tell something."""
_GREETINGS = regex(
    r"(?:gut(?:en|e) (?:morgen|tag|abend|nacht)|buen[oa]s (?:d[i\u00ed]as|tardes|noches)|bom dia)"
    r"(?: zusammen| \w+)?"
)


@cached_by_text(256)
def spoken_words(text: str) -> Sequence[str]:
    """The words of `text` in lower case, with their apostrophes."""
    return tuple(_SPOKEN.findall(text.casefold().replace("\u2019", "'")))


def is_small_talk(text: str, names: Collection[str], *, praise: bool = False) -> bool:
    """Whether a text is greetings, thanks and the like; with `praise`, "great" and so on, too."""
    aside = {*spoken_words(" ".join(names)), *(_PRAISE if praise else ())}
    spoken = [word for word in spoken_words(text) if word not in aside]
    return _ONLY_PHRASES.fullmatch(" ".join(spoken)) is not None


def asks_nothing(query: str, names: Collection[str]) -> bool:
    """Whether a query is small talk, or has only fillers and names."""
    asked = {*terms(query)}.difference(*map(terms, names))
    greets = _GREETINGS.fullmatch(" ".join(spoken_words(query))) is not None
    fills = bool(asked) and asked <= _FILLERS
    return greets or fills or is_small_talk(query, names, praise=True)
