"""Dates in a question: days, months and years, in English and ISO 8601. Pure."""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import NamedTuple

_MONTHS = "january february march april may june july august september october november december"
_NAMES = _MONTHS.split()
_MONTH = "|".join([*_NAMES, *(name[:3] for name in _NAMES), "sept"])
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_ISO = re.compile(r"\b(\d{4})-(\d\d)(?:-(\d\d))?\b")
_WRITTEN = re.compile(
    rf"(?:\b{_DAY}(?: of)? )?\b({_MONTH})\b\.?(?:,? {_DAY}\b(?!\d))?(?:,? (\d{{4}}))?\b",
    re.IGNORECASE,
)
_BEFORE_MAY = re.compile(r"\b(?:in|of|during|since|until|till|by|before|after|last|this|next) $")
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")

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
        """Closeness of `moment` (UTC), 0..1. A missing year counts as that of `moment`."""
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
    """The date, if it exists in the calendar."""
    try:
        date(year or 2024, month, day or 1)
    except ValueError:
        return
    yield Day(year, month, day)
