"""When the agent sleeps of its own accord: its hours, and fatigue. Pure; all times are aware.

The hours are local ones: on the day on which the clocks go forward over the start hour, the night
begins at the first moment after it; where the hour comes twice, at its first occurrence.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from memory.settings import Settings


class Window(NamedTuple):
    """One night's hours, UTC. `end` is not part of it."""

    start: datetime
    end: datetime


def window_of(day: date, settings: Settings) -> Window:
    """The hours of sleep that begin on the local `day`; they last as many hours as are set."""
    zone = ZoneInfo(settings.time_zone)
    # fold=0: of an hour that comes twice the first; one that does not exist is read with the
    # offset from before the jump, which is the first moment after it.
    start = datetime.combine(day, time(settings.sleep_start_hour), zone).astimezone(UTC)
    return Window(start, start + timedelta(hours=settings.sleep_duration_hours))


def window_at(now: datetime, settings: Settings) -> Window | None:
    """The hours of sleep that `now` lies in; None outside, and where no schedule is set."""
    if not settings.sleep_schedule_enabled:
        return None
    today = now.astimezone(ZoneInfo(settings.time_zone)).date()
    for day in (today, today - timedelta(days=1)):
        window = window_of(day, settings)
        if window.start <= now < window.end:
            return window
    return None


def next_start(now: datetime, settings: Settings) -> datetime:
    """The next time that the hours of sleep begin, after `now`."""
    today = now.astimezone(ZoneInfo(settings.time_zone)).date()
    starts = (window_of(today + timedelta(days=days), settings).start for days in range(3))
    return next(start for start in starts if start > now)


def sleep_due(now: datetime, settings: Settings, *, last: datetime | None) -> bool:
    """Whether it is the hour to fall asleep: once in each window. `last`: when it last did."""
    window = window_at(now, settings)
    return window is not None and (last is None or last < window.start)


def wake_due(now: datetime, settings: Settings, *, asleep_since: datetime | None) -> bool:
    """Whether the hours of sleep are over in which the agent fell asleep."""
    if asleep_since is None or not settings.sleep_schedule_enabled:
        return False
    window = window_at(asleep_since, settings)
    return window is not None and now >= window.end


def tired(share: float, settings: Settings, *, pending: bool) -> bool:
    """Whether fatigue sends it to sleep: the history fills a set share and nothing waits."""
    at = settings.fatigue_threshold
    return at is not None and not pending and share >= at
