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

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

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
_LISTED = [[one.split("|") for one in names.split()] for names in _MONTHS.strip().split("\n\n")]

MONTHS = tuple(names[0] for names in _LISTED[0])

MONTH_NUMBERS = {
    name: number
    for language in _LISTED
    for number, names in enumerate(language, 1)
    for name in names
}
"""The months' numbers by their names and abbreviations in several languages."""

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
_ENGLISH = "|".join(name for names in _LISTED[0] for name in names)

_DATE = re.compile(
    r"(?<![\d.-])(?:"
    r"(?P<y1>\d{4})-(?P<m1>\d\d)-(?P<d1>\d\d)(?![\d-])"
    r"(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?)?"
    r"|(?P<d2>\d{1,2})\. ?(?P<m2>\d{1,2})\. ?(?P<y2>\d{4})\b"
    rf"|(?P<d3>\d{{1,2}})(?:st|nd|rd|th|er|[eº°])?\.? (?:of |de )?(?P<m3>{'|'.join(_MONTH)})\b"
    r"(?:(?:,|\.| del?)? (?P<y3>\d{4})\b)?(?:['\u2019]\w{1,4}\b)?"  # "24 Ocak'ta"
    rf"|(?P<m4>{_ENGLISH})\.? (?P<d4>\d{{1,2}})(?!\d)(?:st|nd|rd|th)?"
    r"(?:,? (?P<y4>\d{4})\b)?)"
)
"""2026-11-24, also with a time; 24.11.2026; 24 November, November 24th, with a year or without."""


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


_BY = r"due|deadline|by|until|till|before|bis|spätestens|fällig|avant|jusqu['\u2019]au|hasta|entro"
_DUE = re.compile(
    rf"(?i)(?<!\w)(?:{_BY}|later than|on|abgabe|vor|am|antes)"
    r"(?:,? (?:on|by|the|is|date|end of|am|zum|dem|den|le|del|el|al|il|\w+day))*[:,]? ?$"
)
"""Words behind which a date is that of a deadline, or of an appointment."""


_SINCE = re.compile(
    r"(?i)(?<!\w)(?:since|from|seit|ab|desde|depuis|dal|of)(?: (?:the|dem|den|el|le))? $"
)


_DEADLINE = re.compile(
    rf"(?i)(?<!\w)(?:{_BY}|no later than|antes del?)"
    r"(?:,? (?:on|by|the|is|am|zum|dem|den|le|el|il|\w+day))*:? ?$"
)
"""Words behind which a date is the last day to do it."""


def deadline_passed(text: str, now: str, zone: tzinfo, *, said: str) -> bool:
    """Whether all days that `text` calls deadlines are over; `said` as in `with_nearness`."""
    since, today = _date_of(said, zone), local(now, zone).date()
    due = [_meant(one, since) for one in _DATE.finditer(text) if _is_behind(_DEADLINE, one)]
    return bool(due) and all(day is not None and day < today for day in due)


def days_named(text: str, zone: tzinfo, *, said: str, due: bool = False) -> list[date]:
    """The days that `text` names by a date (`due`: as deadlines); `said` as in `with_nearness`."""
    since, dates = _date_of(said, zone), [*_DATE.finditer(text)]
    if due:
        told = [one for one in dates if _is_behind(_DUE, one)]
        # A date too many is better than a deadline too few.
        dates = told or [one for one in dates if not _is_behind(_SINCE, one)]
    days = (_meant(one, since) for one in dates)
    return [day for day in days if day is not None]


def _is_behind(word: re.Pattern[str], date: re.Match[str]) -> bool:
    at = date.start()
    return word.search(date.string, max(0, at - _BEFORE), at) is not None


_BEFORE = 60
"""Characters before a date in which a word tells that it is a deadline."""


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
