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
from memory.text.words import stem

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

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


MONTHS_ELSEWHERE = {
    name: number
    for table in (
        "januar|jänner februar märz april mai juni juli august september oktober november dezember",
        "enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre noviembre"
        " diciembre",
        "janvier février|fevrier mars avril mai juin juillet août|aout septembre octobre novembre"
        " décembre|decembre",
        "ocak şubat|subat mart nisan may\u0131s haziran temmuz ağustos eylül ekim kas\u0131m"
        " aral\u0131k",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre"
        " dicembre",
        "januari februari maart april mei juni juli augustus september oktober november december",
    )
    for number, names in enumerate(table.split(), 1)
    for name in names.split("|")
}
"""The months in German, Spanish, French, Turkish, Italian and Dutch, in lower case."""

_WEEKDAYS_ELSEWHERE = """
montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag lunes martes miércoles jueves
viernes sábado domingo lundi mardi mercredi jeudi vendredi samedi dimanche pazartesi sal\u0131
çarşamba perşembe cuma cumartesi pazar lunedì martedì mercoledì giovedì venerdì sabato domenica
maandag dinsdag woensdag donderdag vrijdag zaterdag zondag
"""

DATE_WORDS = frozenset(
    word
    for name in (*MONTHS, *WEEKDAYS, *MONTHS_ELSEWHERE, *_WEEKDAYS_ELSEWHERE.split())
    for word in (name.lower(), stem(name.lower()))
)
"""The names of months and weekdays in these languages and English, in lower case and as stems."""

_MONTH = {part: number for number, name in enumerate(MONTHS, 1) for part in (name, name[:3])}

_DATE = re.compile(
    r"(?<![\d.-])(?:"
    r"(?P<y1>\d{4})-(?P<m1>\d\d)-(?P<d1>\d\d)(?![\d-])"
    r"(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?)?"
    r"|(?P<d2>\d{1,2})\. ?(?P<m2>\d{1,2})\. ?(?P<y2>\d{4})\b"
    r"|(?P<y5>\d{4})年(?P<m5>\d\d?)月(?P<d5>\d\d?)[日号]"
    r"|(?P<d3>\d{1,2})(?:st|nd|rd|th|er|[\u00ba\u00b0])?\.? (?:of |de |di )?"
    rf"(?P<m3>{'|'.join(_MONTH)}|(?i:{'|'.join(MONTHS_ELSEWHERE)}))\b"
    r"(?:,? (?:del? )?(?P<y3>\d{4})\b)?"
    rf"|(?P<m4>{'|'.join(_MONTH)})\.? (?P<d4>\d{{1,2}})(?!\d)(?:st|nd|rd|th)?"
    r"(?:,? (?P<y4>\d{4})\b)?)"
)
"""2026-11-24, also with a time; 24.11.2026; 24 November, November 24th, with a year or without.

The day goes before the month in languages other than English, and 2026年11月24日 has a year.
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
    named = _MONTH.get(part["m"]) or MONTHS_ELSEWHERE.get(part["m"].lower())
    month = named or int(part["m"])
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
