"""Times as people and models read them: in a time zone, with the weekday. Pure but for the machine.

Storage and plain functions keep UTC. Whoever shows a time gives the zone, `Settings.zone`.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memory.errors import InputError
from memory.text.words import regex, stem

_MONTHS = """
January|Jan February|Feb March|Mar April|Apr May June|Jun July|Jul August|Aug
September|Sept|Sep October|Oct November|Nov December|Dec

Januar|Jänner|Jan Februar|Feber|Feb März April|Apr Mai Juni|Jun Juli|Jul August|Aug September|Sept
Oktober|Okt November|Nov Dezember|Dez

enero|ene febrero marzo abril|abr mayo junio julio agosto|ago septiembre|setiembre octubre
noviembre diciembre|dic

janvier|janv février|févr mars avril|avr mai juin juillet|juil août septembre octobre novembre
décembre|déc

gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre

januari|jan februari|feb maart|mrt april|apr mei juni|jun juli|jul augustus|aug september|sep
oktober|okt november|nov december|dec

ocak şubat mart nisan may\u0131s haziran temmuz ağustos eylül ekim kas\u0131m aral\u0131k
"""

_WEEKDAYS = """
Monday|Mon Tuesday|Tues|Tue Wednesday|Weds|Wed Thursday|Thurs|Thur|Thu Friday|Fri Saturday|Sat
Sunday|Sun
Montag Dienstag Mittwoch Donnerstag Freitag Samstag|Sonnabend Sonntag
lunes martes miércoles jueves viernes sábado domingo
lundi mardi mercredi jeudi vendredi samedi dimanche
lunedì martedì mercoledì giovedì venerdì sabato domenica
maandag dinsdag woensdag donderdag vrijdag zaterdag zondag
pazartesi sal\u0131 çarşamba perşembe cuma cumartesi pazar
"""
_LISTED_MONTHS, _LISTED_WEEKDAYS = (
    [names.split("|") for names in table.split()] for table in (_MONTHS, _WEEKDAYS)
)

MONTHS = tuple(names[0] for names in _LISTED_MONTHS[:12])
WEEKDAYS = tuple(names[0] for names in _LISTED_WEEKDAYS[:7])

MONTH_NUMBERS = {
    name: place % 12 + 1 for place, names in enumerate(_LISTED_MONTHS) for name in names
}
"""The months' numbers by their names and abbreviations in several languages."""

WEEKDAY_NUMBERS = {
    name: place % 7 for place, names in enumerate(_LISTED_WEEKDAYS) for name in names
}
"""The same of the weekdays; Monday is 0."""

DATE_WORDS = frozenset(
    word
    for name in (*MONTH_NUMBERS, *(day for day in WEEKDAY_NUMBERS if len(day) > 3))
    for word in (name.lower(), stem(name.lower()))
)
"""The names of weekdays and months, in lower case and as stems; "sun" is another word, too."""

SOON = timedelta(days=3)
"""A date this near stands out."""


def machine_zone() -> tzinfo:
    """The time zone of the machine; its `TZ` variable goes before its files. Raises InputError."""
    import tzlocal

    try:
        return tzlocal.get_localzone()
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InputError(
            f"the machine's time zone cannot be told ({error}); "
            "set TZ or the setting time_zone, such as Europe/Vienna"
        ) from error


@cache
def known_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name. Raises ValueError if there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"no time zone is called {name!r}; one is Europe/Vienna") from error


def zone_name(zone: tzinfo) -> str:
    """What the zone is called: `Europe/Vienna`."""
    name = str(getattr(zone, "key", None) or zone)
    return "UTC" if name == "Etc/UTC" else name


def local(at: str, zone: tzinfo) -> datetime:
    """An ISO 8601 time in the zone; without a zone of its own it is UTC."""
    moment = datetime.fromisoformat(at)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(zone)


def shown_time(at: str, zone: tzinfo) -> str:
    """`Sun 2026-11-22 15:09`; a date without a time stays that date: `Sun 2026-11-22`."""
    if _is_date(at):
        return shown_day(at, zone)
    moment = local(at, zone)
    return f"{_short(moment)} {moment:%H:%M}"


def shown_day(at: str, zone: tzinfo) -> str:
    """`Sun 2026-11-22`."""
    return _short(_date_of(at, zone))


def clock_line(at: str, zone: tzinfo) -> str:
    """`Now: Sunday 2026-11-22 15:09 (Europe/Vienna)`."""
    moment = local(at, zone)
    return f"Now: {WEEKDAYS[moment.weekday()]} {_iso(moment)} {moment:%H:%M} ({zone_name(zone)})"


_MONTH = MONTH_NUMBERS | {one.capitalize(): number for one, number in MONTH_NUMBERS.items()}
_ENGLISH = "|".join(name for names in _LISTED_MONTHS[:12] for name in names)

_DATE = regex(
    r"(?<![\d.-])(?:"
    r"(?P<y1>\d{4})-(?P<m1>\d\d)-(?P<d1>\d\d)(?![\d-])"
    r"(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?)?"
    r"|(?P<d2>\d{1,2})\. ?(?P<m2>\d{1,2})\. ?(?P<y2>\d{4})\b"
    rf"|(?P<d3>\d{{1,2}})(?:st|nd|rd|th|er|[eº°])?\.? (?:of |de )?(?P<m3>{'|'.join(_MONTH)})\b"
    r"(?:(?:,|\.| del?)? (?P<y3>\d{4})\b)?(?:['\u2019]\w{1,4}\b)?"
    rf"|(?P<m4>{_ENGLISH})\.? (?P<d4>\d{{1,2}})(?!\d)(?:st|nd|rd|th)?"
    r"(?:,? (?P<y4>\d{4})\b)?)"
)
"""2026-11-24, also with a time; 24.11.2026; 24 November, November 24th, with a year or without.

In Turkish an ending may follow: 24 Ocak'ta.
"""


def with_nearness(text: str, at: str, zone: tzinfo, *, said: str | None = None) -> str:
    """`text` with ` (today)`, ` (tomorrow)` or ` (in N days)` after each date soon after `at`.

    `said`: when it was written: a date without a year is the first such day since. None: unknown,
    and only dates with a year count.
    """
    today = local(at, zone).date()
    since = _date_of(said, zone) if said else None

    def replaced(found: re.Match[str]) -> str:
        day = _meant(found, since)
        return found[0] + (_nearness(day, today) if day else "")

    return _DATE.sub(replaced, text)


def days_named(text: str, zone: tzinfo, *, said: str) -> list[date]:
    """The days that `text` names by a date; `said` as in `with_nearness`."""
    days = (_meant(one, _date_of(said, zone)) for one in _DATE.finditer(text))
    return [day for day in days if day is not None]


def _meant(found: re.Match[str], since: date | None) -> date | None:
    part = {key[0]: value for key, value in found.groupdict().items() if value is not None}
    month = _MONTH.get(part["m"]) or int(part["m"])
    first = since or date.max
    for year in [int(part["y"])] if "y" in part else [first.year, first.year + 1]:
        with suppress(ValueError):
            day = date(year, month, int(part["d"]))
            if "y" in part or day >= first:
                return day
    return None


def _nearness(day: date, today: date) -> str:
    ahead = day - today
    if not timedelta(0) <= ahead <= SOON:
        return ""
    return {0: " (today)", 1: " (tomorrow)"}.get(ahead.days, f" (in {ahead.days} days)")


def _date_of(at: str, zone: tzinfo) -> date:
    return date.fromisoformat(at) if _is_date(at) else local(at, zone).date()


def _is_date(at: str) -> bool:
    return len(at) == len("2026-11-22")


def _short(day: date) -> str:
    return f"{WEEKDAYS[day.weekday()][:3]} {_iso(day)}"


def _iso(day: date) -> str:
    """The date; `isoformat` of a datetime would add the time."""
    return f"{day.year:04}-{day.month:02}-{day.day:02}"
