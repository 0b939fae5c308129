"""Dates and times of day in a text, resolved from the day on which it was said. Pure.

A source is read generously: every sensible reading of "Friday" or "in two weeks" counts. A fact is
read strictly: only what it states plainly is compared.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import NamedTuple

from memory.guards import clock
from memory.guards.lexicon import (
    MONTH,
    MONTH_OF,
    RELATIVE_DAYS,
    WEEKDAY,
    WEEKDAY_OF,
    is_feast,
    word_set,
)
from memory.text import regex

_AMBIGUOUS = word_set(
    "may mar jan dec sept jun jul ago march mars mart marco marcu ekim ocak mei dic ene mai"
)
"""Months that are also words or names: alone they count only where their place says so."""

_LOOSE = word_set("mon tues tue weds wed thurs thur thu fri sat sun pazar sali")
"""Abbreviations and words that may mean a weekday: they count in sources alone."""
_WEEKDAYS_IN = regex(
    rf"(?<![^\W\d_])({WEEKDAY})(?:'?(?:s|n|e|de|da|te|ta|ye|ya|yi|den|dan|tesi|leri|lari|nden|nda)"
    r"|abends?|morgens?|mittags?|fruh|nachts?|vormittags?|nachmittags?|abend|morgen|nachmittag|vormittag"
    r"|-feira|s(?:kurs|markt|training|probe|dienst|schicht|treffen|termin|gruppe|spiel|tour)\w*)?(?![^\W\d_])"
)
_CHINESE_WEEKDAY = regex(r"(上|下|这|本)?个?(?:周|星期|礼拜)([一二三四五六日天1-6])")
_CHINESE_WEEKDAYS = {one: at % 7 for at, one in enumerate("一二三四五六日")} | {
    "天": 6,
    **{str(one): one - 1 for one in range(1, 7)},
}

_NOT_BEHIND = {"manana": "(?<!la )"}
"""Por la mañana is no tomorrow."""
_RELATIVES = regex(
    "|".join(
        word
        if not word.isascii()
        else rf"(?<![\w-]){_NOT_BEHIND.get(word, '')}({re.escape(word)})(?:ki|n|s|[dt][ae]n|a|e)?"
        r"(?!\w)"
        for word in sorted(RELATIVE_DAYS, key=len, reverse=True)
    )
)
_PERIODS = (
    (1, "days? tag(?:e|en)? dias? jours? gun(?:e|de|den)? 天 日"),
    (7, "weeks? wks? wochen? semanas? semaines? hafta\\w* (?:个)?(?:周|星期|礼拜)"),
    (14, "fortnights?"),
    (30, "months? monat(?:e|en)? mes(?:es)? mois ay(?:da|dan|i|a)? 个月"),
    (365, "years? jahr(?:e|en)? anos? ans? annees? yil\\w* sene\\w* 年"),
)
_ONE = r"(?:a|an|one|ein|eine|einem|einen|einer|un|una|une|bir|uno|um|uma|een|一|1)"
_SPANS = tuple(
    (
        days,
        regex(rf"(?<![a-z\d.,])(\d{{1,3}}|{_ONE})\s?(?:{'|'.join(names.split())})(?![a-z])"),
    )
    for days, names in _PERIODS
)
_NEAR_PERIODS = (
    (
        "week",
        regex(
            r"\b(?:week|woche\w*|semana|semaine|hafta\w*|weekend\w*|wochenende|sonu"
            r"|week-end|finde|fin de semana)\b|周末"
            r"|[下这本上]个?(?:周|星期)(?![一二三四五六日天末1-6])"
        ),
    ),
    (
        "month",
        regex(r"\b(?:month|monat\w*|mes|mois|ay\w{0,3})\b|月底|下个?月|这个?月|上个?月|本月"),
    ),
    ("year", regex(r"\b(?:years?|jahr\w*|ano|ans?|annee|yil\w*|sene\w*)\b|年")),
)
_NEXT = regex(
    r"next|nachst|kommend|folgend|proxim|que viene|entrant|prochain|gelecek|onumuzdeki|haftaya"
    r"|seneye|下(?!午)|following|prossim|volgend|przyszl|nastepn"
    r"|after next|ubernachst|sonraki|suivant|siguiente"
)
_LAST = regex(r"last|letzt|vorig|vergangen|pasad|dernier|passe|gecen|上(?!午)|scors|passad|vorige")


@dataclass
class Days:
    """What days a text may speak of."""

    days: set[date] = field(default_factory=set)
    months: set[int] = field(default_factory=set)
    """Months that are named without a day."""
    years: set[int] = field(default_factory=set)
    dated: set[int] = field(default_factory=set)
    """Months of the days that are named with their month."""
    weekdays: set[int] = field(default_factory=set)
    vague: bool = False
    """It names a day that the rules cannot resolve."""
    today: set[date] = field(default_factory=set)
    """The days on which it was said."""
    spoken: bool = False
    """It names any day."""

    def join(self, other: Days) -> None:
        """Add what `other` holds."""
        for name in ("days", "months", "dated", "years", "weekdays", "today"):
            getattr(self, name).update(getattr(other, name))
        self.vague = self.vague or other.vague
        self.spoken = self.spoken or other.spoken


@dataclass(frozen=True)
class Named:
    """A day, as far as a text names it."""

    written: str
    start: int
    end: int
    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    swapped: bool = False
    """Day and month may stand the other way round."""


_CASE = r"(?:(?:'|(?<=[a-z]{4}))(?:s|[td][ae]n?|[ui]n|[ae]|[iu]|y[ae]))?(?![a-z])"
_LINK = r"(?: ?(?:of|de|del|di|do|,) ?| |-|\.)?"
_YEAR = r"(?:,? ?(?:de |del |di )?(?P<year>(?:19|20)\d\d)(?!\d))?"


class _DatePattern(NamedTuple):
    """How a date is written."""

    regex: re.Pattern[str]
    """Groups: `year`, `month` in digits or its `name`, and `day`; those that it has."""
    alone: bool = False
    """A month's name without a day, which may be another word."""
    swaps: bool = False
    """Day and month may stand the other way round."""


_DATES = (
    # 2026-05-02
    _DatePattern(
        regex(r"(?<![\d.])(?P<year>(?:19|20)\d\d)[-/.](?P<month>\d\d?)[-/.](?P<day>\d\d?)(?!\d)")
    ),
    # 2026年5月2日
    _DatePattern(
        regex(r"(?:(?P<year>(?:19|20)?\d\d)年)?(?P<month>\d{1,2})月(?:(?P<day>\d{1,2})[日号]?)?")
    ),
    # 2nd of May 2026
    _DatePattern(
        regex(
            rf"(?<![\d.,:])(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|\.|o)?{_LINK}"
            rf"(?P<name>{MONTH}){_CASE}{_YEAR}"
        )
    ),
    # May 2, 2026
    _DatePattern(
        regex(
            rf"(?<![a-z])(?P<name>{MONTH})\.? (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
            rf"(?![\d:h%]|[.,]\d){_YEAR}"
        )
    ),
    # May 2026, May
    _DatePattern(regex(rf"(?<![a-z])(?P<name>{MONTH}){_CASE}\.?{_YEAR}"), alone=True),
    # 2.5.2026, 2/5/26
    _DatePattern(
        regex(
            r"(?<![\d.,/:])(?P<day>\d{1,2})[./](?P<month>\d{1,2})[./](?P<year>(?:19|20)?\d\d)"
            r"(?!\d|[/.]\d)"
        ),
        swaps=True,
    ),
    # 2.5., of which "1.20." at an end is an amount
    _DatePattern(
        regex(r"(?<![\d.,/:])(?P<day>\d{1,2})\.(?P<month>\d|0\d|1[0-2])\.(?!\d)"), swaps=True
    ),
    # 05/2026
    _DatePattern(
        regex(r"(?<![\d.,/:-])(?P<month>0?[1-9]|1[0-2])[/.](?P<year>(?:19|20)\d\d)(?![\d/-]|\.\d)")
    ),
    # 2/5
    _DatePattern(
        regex(r"(?<![\d.,/:])(?P<day>\d{1,2})/(?P<month>\d{1,2})(?!\d|[/.,]\d)"), swaps=True
    ),
)
_RANGE = regex(
    r"(?<![\d.,:])(\d{1,2})(?:st|nd|rd|th|\.)? ?(?:-|\u2013|to|bis|au|al|a|and|und|et|y|e|or"
    r"|oder|ou|o|ile|ve|veya|till?|until|til|[,/]|not the|no el|nicht am|statt am|'?[dt][ae]n)"
    r" ?(?:the |den |dem |le |el |zum |am |il )?$"
)
_SPACED_MONTH = rf" (?:{MONTH})"
_DAY_ALONE = regex(
    r"(?:(?<![a-z'])(?:the|am|zum|vom|bis|dem|den|le|du|au|el|al|del|dia|ayin|il|dal|op|on|by|um"
    rf"|desde el|since the|not the) )(\d{{1,2}})(?:st|nd|rd|th|\."
    rf"|'?[a-z]{{0,3}})?(?!{_SPACED_MONTH})(?![\d:%]|[.,]\d| uhr)(?<!the \d)(?<!the \d\d)"
    rf"|(?<!\w)the (\d{{1,2}})(?![\d:%\w]|[.,]\d)(?! (?!of|at|in|and|or|to|till|until|for)[a-z])"
    rf"|(?<![\d.])(?<!\d,)(\d{{1,2}})(?:st|nd|rd|th|号|日)(?! (?:of )?(?:{MONTH}))"
    r"|(?<![\w.,])(?<!to )(?<!at )(?<!past )(?<!um )(?<!nach )(?<!las )"
    rf"(\d{{1,2}})\.(?!{_SPACED_MONTH})(?= [a-z]|,)"
    r"|(?<![\d.,])(\d{1,2})'?(?:s?i|u|[ui]n|[iu]nde|[iu]nden|[iu]na|[dt]e|[dt]a|[dt]en"
    r"|[dt]an)(?![a-z])"
)

ALONE = regex(
    r"(?<![\w.,])(\d{1,2})(?:st|nd|rd|th)(?!\w)|(?<!\w)(?:am|vom|zum|dem|den|seit"
    r"|ab) (\d{1,2})\.(?!\d)|(?<!\w)(?:el|al|del|le|du|au) (\d{1,2})(?= ?[.,;)]|$)"
    r"|(?<!\d)(\d{1,2})[日号]|(?<!\w)ayin (\d{1,2})"
)
"""A day of the month without its month, in a fact: "the 16th"."""


def named_in(digits: str, *, strict: bool = True) -> list[Named]:
    """The days that a text names, in order; `strict` leaves out months that may be other words."""
    found: list[Named] = []
    taken: set[int] = set()
    for pattern in _DATES:
        for match in pattern.regex.finditer(digits):
            place = range(*match.span())
            if not taken.isdisjoint(place):
                continue
            if (made := _named(pattern, match, strict=strict)) is not None:
                taken.update(place)
                extras = [*_in_range(made, digits)]
                found += [made, *extras]
                taken.update(*(range(one.start, one.end) for one in extras))
    return sorted(found, key=lambda one: one.start)


def _named(pattern: _DatePattern, match: re.Match[str], *, strict: bool) -> Named | None:
    """The date that a pattern matched; None if it is another word, or no day of the calendar."""
    if pattern.alone and _is_a_word(match, strict=strict):
        return None
    groups = match.groupdict()
    name, year = groups.get("name"), groups.get("year")
    month = MONTH_OF[name] if name else int(groups["month"])
    day = int(groups["day"]) if groups.get("day") else None
    if pattern.swaps and day is not None and month > 12 >= day:
        day, month = month, day
    if not 1 <= month <= 12 or (day is not None and not 1 <= day <= 31):
        return None
    full = None if year is None else int(year) if len(year) == 4 else 2000 + int(year)
    swapped = pattern.swaps and day is not None and day <= 12
    return Named(match.group().strip(), *match.span(), full, month, day, swapped=swapped)


def _is_a_word(match: re.Match[str], *, strict: bool) -> bool:
    """Whether what looks like a month is another word: "Marin" is no March."""
    text = match.group()
    name = match["name"]
    if re.fullmatch(r"[a-z]+", text) and text != name:
        if name not in _AMBIGUOUS:
            return strict
        in_turkish = name in ("ocak", "ekim") and re.search("[td][ae]n?$", text)
        return strict or not in_turkish
    if not strict or match["year"] or name not in _AMBIGUOUS:
        return False
    before = match.string[max(0, match.start() - 12) : match.start()]
    placed = _MONTH_PLACE.search(before) or match.string.startswith("'", match.end())
    return not placed or "'s" in text


_MONTH_PLACE = regex(
    r"(?:(?<![\w'])(?:in|im|en|since|until|by|seit|bis|ab|from|of|de|del|fin|debut|courant|till|depuis|em|gecen"
    r"|every|each|early|late|mid|anfang|ende|mitte|last|next|before|after|during|desde|hasta"
    r"|a partir de)[ -])$"
)


def _in_range(made: Named, digits: str) -> Iterator[Named]:
    """The other day of "13 to 20 February"."""
    if made.day is None:
        return
    before = _RANGE.search(digits, max(0, made.start - 24), made.start)
    if before and 1 <= int(before[1]) <= 31:
        yield Named(
            before[1], before.start(1), before.end(1), made.year, made.month, int(before[1])
        )


def weekdays_in(digits: str, *, strict: bool) -> list[Named]:
    """The weekdays of a text; `strict` leaves out words that may mean something else."""
    found = []
    for match in _WEEKDAYS_IN.finditer(digits):
        if not (strict and match[1] in _LOOSE):
            found.append(Named(match.group(), *match.span(), weekday=WEEKDAY_OF[match[1]]))
    for match in _CHINESE_WEEKDAY.finditer(digits):
        found.append(Named(match.group(), *match.span(), weekday=_CHINESE_WEEKDAYS[match[2]]))
    return found


def days_of(digits: str, said: Iterable[date]) -> Days:
    """All days that a text may mean that was said on one of the days `said`."""
    made = Days()
    for today in said:
        made.join(_days_of(digits, today))
    return made


def _days_of(digits: str, today: date) -> Days:
    made = Days(today={today})
    _add_named(made, digits, today)
    named = frozenset(made.days)
    _add_alone(made, digits, today)
    _add_relative(made, digits, today)
    for weekday in weekdays_in(_OF_MONTH.sub(" ", digits), strict=False):
        assert weekday.weekday is not None
        made.weekdays.add(weekday.weekday)
        made.days |= _weekday_days(weekday, digits, today)
        # "Friday 1 May at ten, there on Saturday": the next one after a day of the text.
        made.days |= {one + timedelta((weekday.weekday - one.weekday()) % 7) for one in named}
    around = {_shifted(today.replace(day=1), shift, 30) for shift in (-1, 0, 1)}
    named_months = {one.replace(day=1) for one in named if made.months}
    made.days |= set(_nth_weekdays(digits, named_months or around))
    made.vague = is_feast(digits)
    made.spoken = bool(made.days or made.months or made.years or made.vague)
    _add_periods(made, digits, today)
    _add_bare_ranges(made, digits, today)
    _add_spans(made, digits, today, named)
    made.weekdays |= {one.weekday() for one in made.days}
    return made


def _add_named(made: Days, digits: str, today: date) -> None:
    for named in named_in(digits, strict=False):
        assert named.month is not None
        if named.day is None:
            made.months.add(named.month)
            for year in [named.year] if named.year else _years(today):
                last = monthrange(year, named.month)[1]
                made.days |= {date(year, named.month, 1), date(year, named.month, last)}
        else:
            made.dated |= {named.month, named.day} if named.swapped else {named.month}
            forms = [(named.month, named.day)]
            forms += [(named.day, named.month)] if named.swapped else []
            for month, day in forms:
                made.days |= set(_in_years(month, day, named.year, today))
        if named.year:
            made.years.add(named.year)


def _years(today: date) -> tuple[int, ...]:
    return today.year - 1, today.year, today.year + 1


def _in_years(month: int, day: int, year: int | None, today: date) -> Iterator[date]:
    """The day in its year, or the next and the last time that it comes."""
    days = [one for each in ([year] if year else _years(today)) for one in _day(each, month, day)]
    if year:
        yield from days
        return
    yield from [one for one in days if one >= today][:1]
    yield from [one for one in days if one <= today][-1:]


def _day(year: int, month: int, day: int) -> list[date]:
    return [date(year, month, day)] if day <= monthrange(year, month)[1] else []


def _add_alone(made: Days, digits: str, today: date) -> None:
    """A day of the month alone: of this month, the next or the last."""
    taken = {at for one in named_in(digits, strict=False) for at in range(one.start, one.end)}
    alone = [
        int(next(filter(None, match.groups())))
        for match in _DAY_ALONE.finditer(digits)
        if match.start(match.lastindex or 0) not in taken
    ]
    behind = (_BARE_DAY.match(digits, one.end) for one in weekdays_in(digits, strict=False))
    for day in [*alone, *(int(one[1]) for one in behind if one)]:
        for start in {today, *made.days}:
            made.days |= _nearest(day, start)


def _nearest(day: int, start: date) -> set[date]:
    """The next and the last time that a day of the month comes, from `start`."""
    if not 1 <= day <= 31:
        return set()
    months = (_shifted(start.replace(day=1), shift, 30) for shift in (-2, -1, 0, 1, 2))
    days = [one for first in months for one in _day(first.year, first.month, day)]
    return {*[one for one in days if one >= start][:1], *[one for one in days if one <= start][-1:]}


def _add_bare_ranges(made: Days, digits: str, today: date) -> None:
    """The days of "you 18 to 24, me 25 to 31", which may also be hours or amounts."""
    for match in _BARE_RANGE.finditer(digits):
        if int(match[1]) < int(match[2]):
            made.days |= _nearest(int(match[1]), today) | _nearest(int(match[2]), today)


_BARE_RANGE = regex(
    r"(?<![\d.,:/\w-])(\d{1,2}) ?(?:to|till?|until|bis|tot|al?|au|do|-|\u2013) ?(\d{1,2})"
    r"(?=[,;.!?)]*(?:\s[^\W\d]|$))(?![.,]\d| ?(?:h|uhr|heures?|o'?clock|[ap]\.?m)(?!\w))"
)


def _add_relative(made: Days, digits: str, today: date) -> None:
    for match in _RELATIVES.finditer(digits):
        word = match[match.lastindex or 0]
        ahead = RELATIVE_DAYS[word]
        in_a_week = _WEEK_ON.search(digits[: match.start()]) or _WEEK.match(digits, match.end())
        made.days.add(today + timedelta(ahead + 7 if in_a_week else ahead))
        if word in _LAST_NIGHT:
            made.days.add(today)


_LAST_NIGHT = ("last night", "anoche", "昨晚")
"""A night of two days."""


def _add_spans(made: Days, digits: str, today: date, named: Set[date]) -> None:
    """The days that are a length of time from the day of speaking or from a day of the text.

    `named` are the days that the text names with their month.
    """
    spans = [
        (int(found[1]) if found[1].isdigit() else 1, length, clock.directions(digits, found.end()))
        for length, pattern in _SPANS
        for found in pattern.finditer(digits)
        if not digits.startswith(" on ", found.end())
    ]
    spans += [(count - 1, 1, signs) for count, length, signs in spans if (count, length) in _WEEKS]
    starts = {today, *(made.days if len(made.days) <= 6 else ())}
    starts -= {today - timedelta(7)} - named  # "In 3 weeks, Thursday again", on a Thursday.
    for count, length, signs in spans:
        made.days |= {_shifted(start, sign * count, length) for start in starts for sign in signs}
        made.years |= {today.year + sign * count for sign in signs if length == 365}


_WEEKS = ((8, 1), (15, 1))
"""Quinze jours are two weeks, and acht Tage one."""


def _shifted(today: date, count: int, length: int) -> date:
    if length < 30:
        return today + timedelta(count * length)
    months = today.year * 12 + today.month - 1 + count * (1 if length == 30 else 12)
    year, month = months // 12, months % 12 + 1
    return date(year, month, min(today.day, monthrange(year, month)[1]))


_END = regex(r"(?<!\w)(?:end|ende|fin|final\w*|fine|fim|sonu\w*|eind\w*)(?!\w)|[底末]")


def _add_periods(made: Days, digits: str, today: date) -> None:
    """Any day of this, the next or the last week, or the month's ends."""
    monday = today - timedelta(today.weekday())
    for name, pattern in _NEAR_PERIODS:
        for match in pattern.finditer(digits):
            around = digits[max(0, match.start() - 14) : match.end() + 14]
            shifts = {
                0,
                *([1] if _NEXT.search(around) else []),
                *([-1] if _LAST.search(around) else []),
            }
            plain = len(shifts) == 1
            if name == "year":
                made.years |= {today.year + shift for shift in shifts if shift}
                if _END.search(around):
                    made.days |= {date(today.year + shift, 12, 31) for shift in shifts}
            elif name == "month":
                for shift in shifts:
                    first = _shifted(today.replace(day=1), shift, 30)
                    made.months.add(first.month)
                    made.days.add(
                        date(first.year, first.month, monthrange(first.year, first.month)[1])
                    )
                    made.days |= {first}
            elif not plain or "end" in match.group() or "末" in match.group() or "sonu" in around:
                for shift in shifts - ({0} if not plain else set()):
                    made.days |= {monday + timedelta(7 * shift + one) for one in range(7)}
            else:  # "The week of 14 September" is the one in which it was said.
                made.days |= {monday}


_NTH_WEEKDAY = regex(
    r"(?<!\w)(?:(last|letzte\w*|ultimo|dernier|son)|(first|1st|erste\w*|primer|premier|ilk)"
    r"|(2nd|second|2|zweite\w*|segundo|deuxieme|ikinci)|(3rd|third|3|dritte\w*|tercer|troisieme)"
    rf"|(4th|fourth|4|vierte\w*|cuarto|quatrieme))\.? ({WEEKDAY})(?!\w)"
)
"""The second Saturday of a month."""
_OF_MONTH = regex(rf"{_NTH_WEEKDAY.pattern} (?:of|im|del|du|des)(?!\w)")


def _nth_weekdays(digits: str, months: Iterable[date]) -> Iterator[date]:
    for match in _NTH_WEEKDAY.finditer(digits):
        count = (match.lastindex and next(n for n in range(1, 6) if match[n])) or 1
        for first in months:
            last = monthrange(first.year, first.month)[1]
            ahead = (WEEKDAY_OF[match[6]] - first.weekday()) % 7 + 1
            found = [*range(ahead, last + 1, 7)]
            yield first.replace(day=found[-1 if count == 1 else count - 2])


_NEXT_WEEK = (
    r"(?:(?:next|following|nachste\w*|kommende\w*|gelecek|onumuzdeki) (?:week|woche|hafta)|haftaya"
    r"|semana que viene|proxima semana|semaine prochaine)"
)
_NEXT_WEEK_AHEAD = regex(rf"(?<!\w){_NEXT_WEEK},? (?:on |am |el |le )?$")
_NEXT_WEEK_BEHIND = regex(
    rf"(?:s|n)?,? (?:(?:starting|beginning|from|of|in|de|der|ab|en|the|la) )*{_NEXT_WEEK}(?!\w)"
)
_WEEK_ON = regex(r"(?<!\w)(?:a|1) week (?:(?:on|from|this) )?$")
_WEEK = regex(
    r" (?:week(?![\w-]| ?\d)|(?:in|uber|over) (?:a|1|eine[rm]?|een) (?:week|woche)"
    r"|(?:dans|dentro de) (?:une|una|1) (?:semaine|semana)|en (?:8|huit))(?!\w)"
)
"""Wednesday week is the Wednesday after the next one."""
_ITS_DAY = regex(r",? (?:the |den |le |el )?(\d{1,2})(?:st|nd|rd|th|\.)(?![\d:])")
"""Friday the 31st is no other Friday."""
_BARE_DAY = regex(
    r",? (\d{1,2})(?= ?(?:[,;.!?)]|$)"
    rf"| (?!(?:{MONTH}|[ap]\.?m|h|uhr|o'?clock)(?!\w))[a-z])(?![.:]\d)"
)
"""El sábado 24, samedi 24: a day of the month behind its weekday."""


def _weekday_days(named: Named, digits: str, today: date) -> set[date]:
    assert named.weekday is not None
    ahead = (named.weekday - today.weekday()) % 7
    around = digits[max(0, named.start - 16) : named.start] + digits[named.end : named.end + 12]
    week = today - timedelta(today.weekday()) + timedelta(named.weekday)
    if shift := {"下": 7, "上": -7}.get(named.written[:1]):
        return {week + timedelta(shift)}
    if _WEEK_ON.search(digits[: named.start]) or _WEEK.match(digits, named.end):
        return {today + timedelta(ahead + 7)}
    coming, past = today + timedelta(ahead), today - timedelta((7 - ahead) % 7)
    if _NEXT_WEEK_AHEAD.search(digits[: named.start]) or _NEXT_WEEK_BEHIND.match(digits, named.end):
        # At the weekend the week that begins is the next one, too.
        return {week + timedelta(7), *([coming] if today.weekday() > 4 and ahead else [])}
    if (of_month := _ITS_DAY.match(digits, named.end)) is not None:
        return {one for one in (coming, past) if one.day == int(of_month[1])}
    made = {coming, past, *((today + timedelta(7), today - timedelta(7)) if ahead == 0 else ())}
    if _NEXT.search(around):
        made |= {week + timedelta(7), *([coming + timedelta(7)] if ahead == 0 else [])}
    made |= {week - timedelta(7)} if _LAST.search(around) else set()
    made |= {coming + timedelta(7)} if _AFTER_THAT.match(digits, named.end) else set()
    return made


_AFTER_THAT = regex(r" (?:after|darauf|danach|siguiente|suivant)(?=\W*$|[.,;!?])")
"""Behind a weekday of which an earlier one was named: "this Wednesday, and the Wednesday after"."""


def holds(days: Days, named: Named) -> bool:
    """Whether a day that a fact names is among the days of its sources."""
    if named.weekday is not None:
        return named.weekday in days.weekdays
    if named.day is None:
        months = {one.month for one in days.days}
        if days.months:  # "Thursdays from July": the Thursday of this week says no month.
            months = days.months | days.dated
        years = days.years | {one.year for one in days.days} | {0}
        return named.month in months and (named.year or 0) in years | {
            one.year for one in days.today
        }
    forms = {(named.month, named.day)} | ({(named.day, named.month)} if named.swapped else set())
    return any(
        (one.month, one.day) in forms and (named.year is None or named.year == one.year)
        for one in days.days
    )
