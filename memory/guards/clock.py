"""Times of day in a text: 05:30, half past five, halb sechs, dix heures et quart, 九点半. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from memory.text import regex


class ClockTime(NamedTuple):
    """A time of day that a text names."""

    minutes: int
    """Since midnight, or since midnight or noon if it is not `exact`."""
    exact: bool
    """It says which half of the day."""
    start: int
    end: int
    written: str


_HALF_OF_DAY = r"(?: ?(a\.? ?m\b\.?|p\.? ?m\b\.?))?"
_DIGITS = regex(
    r"(?<![\d:/-])(?<!\d[.,])([01]?\d|2[0-4])(?::| ?h ?| ?uhr ?|[点时])([0-5]\d)(?!\d)(?![.,]\d)分?"
    + _HALF_OF_DAY
)
_POINT = regex(
    r"(?<![\d.,:/-])([01]?\d|2[0-4])\.([0-5]\d)(?![\d%]|[.,]\d)(?: ?(a\.? ?m\b\.?"
    r"|p\.? ?m\b\.?)| uhr)"
)
_POINT_BEHIND = regex(
    r"(?:(?<=\bat )|(?<=\bum )|(?<=\bab )|(?<=las )|(?<=saat )|(?<=gegen )|(?<=until )|(?<=bis )"
    r"|(?<=vers )|(?<![\d.,:/])(?=0\d\.|\d+\.\d\d'd[ae]))([01]?\d|2[0-4])\.([0-5]\d)"
    r"(?![\d%]|[.,]\d| ?(?:[€$£]|eur|tl|kg))()"
)
_HOUR = regex(
    r"(?<![\d:/])(?<!\d[.,])([01]?\d|2[0-4]) ?(?:(a\.? ?m\b\.?|p\.? ?m\b\.?)|uhr(?!\w)|h(?!\w)"
    r"|heures?(?!\w)|o'? ?clock|[点时](?!间))"
)
_LOOSE = regex(r"(?<![\d.,:/])([01]?\d|2[0-4])\.([0-5]\d)(?![\d%]|[.,]\d)")
_BARE = regex(r"(?<![\d.,:/])(2[0-4]|[01]?\d)(?![\d/]|[.,:]\d)")
_ONE = regex(
    r"(?<!\w)(?:one|eins|ein uhr|la una|une heure|bir(?:de|e|den)?|l'una|uma|een)(?!\w)|[一1][点时]"
)
_DUTCH = regex(r"(?<!\w)half ([1-9]\d?)(?!\d)")
_BARE_CLOCK = regex(r"(?<![\d.,:/-])([01]\d|2[0-3])([0-5]\d)(?![\d.,:/-])")
"""In a source: "the 0610 to Halifax"."""
_AFTER_AN_HOUR = "until|till|and|or|on|in|for|because|tomorrow|today|at"
_HALVED = r"yil|ay|gun|hafta|saat|dakika|kilo|kg|litre|metre|km|lira|tl|bin|milyon"
"""What Turkish counts by halves, beside the hours of a clock: "bir buçuk yıl"."""
_FULL = r"(?P<h>\d+|one(?= |$|\W)|eins|una|une|bir[ei]?|uno|uma)"
_PHRASES = tuple(
    (regex(r"(?<![a-z\d:])(?<!\d[.,])(?:" + pattern.replace(r"(?P<h>\d+)", _FULL) + ")"), sign)
    for pattern, sign in (
        (r"half past (?P<h>\d+)|half (?P<h2>\d+)(?! ?[%a-z])", 30),
        (r"(?:a )?quarter (?:past|after) (?P<h>\d+)", 15),
        (r"(?:a )?quarter (?:to|of|before|til) (?P<h>\d+)", -15),
        (r"(?P<m>5|10|20|25) (?:minutes? )?past (?P<h>\d+)", 0),
        (
            r"(?P<m>5|10|20|25) (?:minutes? )?to (?P<h>\d+)"
            rf"(?!\d| ?(?!(?:{_AFTER_AN_HOUR})(?!\w))[-a-z%])",
            -1,
        ),
        (r"(?:dreiviertel|3 ?viertel|drei viertel) (?P<h>\d+)", -15),
        (r"halb (?P<h>\d+)", -30),
        (
            r"(?<!past )(?<!to )(?<!half )(?P<h>\d+) "
            r"(?:in the (?:morning|afternoon|evening)|at night)",
            0,
        ),
        (r"(?<!y )(?<!menos )(?P<h>\d+) (?:de la (?:manana|tarde|noche)|du (?:matin|soir))", 0),
        (r"viertel nach (?P<h>\d+)", 15),
        (r"viertel vor (?P<h>\d+)", -15),
        (r"viertel (?P<h>\d+)", -45),
        (r"(?P<m>5|10|20|25) (?:minuten )?nach (?P<h>\d+)", 0),
        (r"(?P<m>5|10|20|25) (?:minuten )?vor (?P<h>\d+)", -1),
        (r"(?P<h>\d+) (?:y media|e mezz[oa]|e meia)", 30),
        (r"(?P<h>\d+) (?:y cuarto|e un quarto|e quarto)", 15),
        (r"(?P<h>\d+) (?:menos cuarto|meno un quarto)", -15),
        (r"(?:las?|alle|as) (?P<h>\d+) (?:y|e) (?P<m>5|10|20|25)(?!\d)", 0),
        (r"(?:las?|alle) (?P<h>\d+) meno?s? (?P<m>5|10|20|25)(?!\d)", -1),
        (r"(?P<h>\d+) ?(?:heures?|h) ?et demie?", 30),
        (r"(?P<h>\d+) ?(?:heures?|h) ?et quart", 15),
        (r"(?P<h>\d+) ?(?:heures?|h) ?moins (?:le |un )?quart", -15),
        (r"(?P<h>\d+) ?(?:heures?|h) ?moins (?P<m>\d+)", -1),
        (r"(?P<h>\d+) heures? (?P<m>[0-5]?\d)(?!\d)", 0),
        (rf"(?P<h>\d+) bucu[kg]\w*(?! (?:{_HALVED}))", 30),
        (r"(?P<h>\d+)\S{0,9} ceyrek (?:var|kala)\w*", -15),
        (r"(?P<h>\d+)\S{0,9} ceyrek gec\w*", 15),
        (r"(?P<h>\d+)\S{0,9} (?P<m>5|10|20|25) (?:var|kala)\w*", -1),
        (r"(?P<h>\d+)\S{0,9} (?P<m>5|10|20|25) gec\w*", 0),
        (r"(?P<h>\d+)[点时]半", 30),
        (r"(?P<h>\d+)[点时](?:一刻|1刻)", 15),
        (r"差(?:一刻|1刻)钟?(?P<h>\d+)[点时]", -15),
        (r"(?P<h>\d+)[点时](?:三刻|3刻)", 45),
        (r"(?P<h>\d+)[点时](?P<m>[0-5]?\d)分?", 0),
        (r"差(?P<m>\d+)分(?P<h>\d+)[点时]", -1),
    )
)
_NAMED = (
    (regex(r"\b(?:midi|minuit) et demie?\b|\bmediodia y media\b"), 750),
    (regex(r"\b(?:midi|minuit) et quart\b"), 735),
    (regex(r"\bmidi moins (?:le )?quart\b"), 705),
    (regex(
        r"\b(?:noon|midday|mittags?|mediodia|midi|oglen|ogle|mezzogiorno|meio-dia)\b"
        r"|中午|正午"), 720),
    (regex(
        r"\b(?:midnight|mitternachts?|medianoche|minuit|gece yarisi|mezzanotte)\b"
        r"|半夜|午夜|零点"), 0),
)  # fmt: skip


def times_in(digits: str) -> list[ClockTime]:
    """The times that a text names plainly, in order; its number words are digits already."""
    found: list[ClockTime] = []
    for pattern, shift in _PHRASES:
        found += [made for match in pattern.finditer(digits) if (made := _phrase(match, shift))]
    for pattern in (_DIGITS, _POINT, _POINT_BEHIND):
        for match in pattern.finditer(digits):
            half = match[3] if pattern.groups >= 3 else None
            found.append(_clock(match, int(match[1]), int(match[2]), half))
    for match in _HOUR.finditer(digits):
        found.append(_clock(match, int(match[1]), 0, match[2]))
    kept: list[ClockTime] = []
    for one in sorted(found, key=lambda one: (one.start - one.end, one.start)):
        if all(one.end <= other.start or other.end <= one.start for other in kept):
            kept.append(one)
    return sorted(kept, key=lambda one: one.start)


def possible_times(digits: str, *, english: bool = False) -> list[ClockTime]:
    """All times that a source may name: bare numbers and noon, too.

    `english`: it is in English, where "half three" is 3:30; in Dutch and German it is 2:30.
    """
    found = times_in(digits)
    for pattern, minutes in _NAMED:
        found += [
            ClockTime(minutes, minutes % 720 == 0, *m.span(), m.group())
            for m in pattern.finditer(digits)
        ]
    found += [ClockTime(60, False, *m.span(), m.group()) for m in _ONE.finditer(digits)]
    for match in _BARE_CLOCK.finditer(digits):
        found.append(_clock(match, int(match[1]), int(match[2]), None))
    for match in _DUTCH.finditer(digits):
        signs = (30,) if english else (30, -30)
        found += [ClockTime(int(match[1]) * 60 + sign, False, *match.span(), "") for sign in signs]
    found += [_clock(m, int(m[1]), int(m[2]), None) for m in _LOOSE.finditer(digits)]
    found += [_clock(m, int(m[1]), 0, None) for m in _BARE.finditer(digits)]
    return found


def _phrase(match: re.Match[str], shift: int) -> ClockTime | None:
    groups = match.groupdict()
    named = groups.get("h") or groups.get("h2") or "99"
    hour = int(named) if named.isdigit() else 1
    if hour > 24:  # "between 25 and 30" are numbers.
        return None
    minutes = int(groups.get("m") or 0) * (-1 if shift == -1 else 1)
    return ClockTime(
        (hour * 60 + (0 if shift == -1 else shift) + minutes) % 1440,
        hour > 12,
        *match.span(),
        match.group(),
    )


def _clock(match: re.Match[str], hour: int, minute: int, half: str | None) -> ClockTime:
    if half:
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    exact = bool(half) or hour > 12 or hour == 0 or match[1].startswith("0")
    return ClockTime((hour * 60 + minute) % 1440, exact, *match.span(), match.group())


def holds(times: Iterable[ClockTime], named: ClockTime) -> bool:
    """Whether a time that a fact names is among the times of its sources."""
    for one in times:
        apart = (one.minutes - named.minutes) % 1440
        if apart == 0 or (apart == 720 and not (one.exact and named.exact)):
            return True
    return False


BEFORE = "before|earlier|prior|ago|davor|vorher|zuvor|fruher|antes|avant|plus tot|once|erken"
AFTER = "after|later|from now|danach|spater|despues|mas tarde|apres|plus tard|sonra"
"""Beside a length of time: the direction in which it counts."""
NOW = "now|currently|jetzt|nun|inzwischen|ahora|actualmente|desormais|maintenant|artik|simdi"
"""Words that say of a value that it holds."""
_BEFORE = regex(rf" ?(?:{BEFORE}|之?前)(?!\w)")
_AFTER = regex(rf" ?(?:{AFTER}|之?后)(?!\w)")


def directions(digits: str, end: int) -> tuple[int, ...]:
    """The directions in which a length of time may count, by the word behind it."""
    if _BEFORE.match(digits, end):
        return (-1,)
    return (1,) if _AFTER.match(digits, end) else (1, -1)
