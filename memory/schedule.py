"""When the agent sleeps of its own accord: its hours, fatigue, its wish. Pure; times are aware.

The hours are local ones: on the day on which the clocks go forward over the start hour, the night
begins at the first moment after it; where the hour comes twice, at its first occurrence.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from memory.compaction import history_share
from memory.settings import Settings
from memory.state import SleepCause, Slumber, State

RECOVERY = 0.05
"""Share of the context by which the history grows before fatigue can come again: a night that
could not cut it is not gone through after every message."""


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


def tired(share: float, settings: Settings, *, pending: bool, rested: float = 0.0) -> bool:
    """Whether fatigue sends it to sleep: the history fills a set share and nothing waits.

    `rested`: the share that it filled when the agent last woke.
    """
    at = settings.fatigue_threshold
    if at is None or pending or share < at:
        return False
    return rested < at or share >= rested + RECOVERY


def own_sleep(
    state: State, settings: Settings, now: datetime, *, direct: bool, busy: bool
) -> SleepCause | None:
    """Why it falls asleep of its own accord now; at its hour also why it sleeps on.

    Nothing sends it to sleep while direct events wait (`direct`) or the emergency stop stands. Its
    hour and fatigue leave a run alone that somebody waits for. `busy`: anything at all is left.
    """
    if direct or state["emergency_stop"] or not settings.enabled:
        return None
    if state["mode"] == "awake" and state["sleep_wish"] is not None:
        return "go_to_sleep"
    if not state["unattended"]:
        return None
    last = state["slumber"]["last_hour"]
    if sleep_due(now, settings, last=_moment(last)):
        return "schedule"
    if state["mode"] == "sleep":
        return None
    share, rested = filled(state, settings), state["slumber"]["rested"]
    return "fatigue" if tired(share, settings, pending=busy, rested=rested) else None


def filled(state: State, settings: Settings) -> float:
    """The share (0..) of the context that the history alone fills."""
    return history_share(state["messages"], state["calibration"], settings.max_context_tokens)


def hours_over(state: State, settings: Settings, now: datetime) -> bool:
    """Whether its hours wake it: those in which it fell asleep, unless a person had asked."""
    if state["mode"] != "sleep":
        return False
    return wake_due(now, settings, asleep_since=_moment(_own_since(state["slumber"])))


def called_away(state: State, settings: Settings, now: datetime) -> str | None:
    """Why a night that goes on ends here, as far as no message has to be read for it; else None.

    A person woke it, or its hours are over, which may have woken it in this run before the night
    was gone on with. Compacting is finished all the same.
    """
    changes = state["report"]["mode_changes"]
    awake = state["mode"] == "awake"
    by_hours = changes[-1:] and changes[-1]["why"] == "hours"
    if awake and not by_hours:
        return "it was woken"
    over = awake or hours_over(state, settings, now)
    return f"its hours are over ({hours_named(settings)})" if over else None


def _own_since(slumber: Slumber) -> str | None:
    return None if slumber["why"] in ("request", None) else slumber["since"]


def hours_named(settings: Settings) -> str:
    """`02:00 Europe/Berlin, 4 h`."""
    hours = f"{settings.sleep_duration_hours:g} h"
    return f"{settings.sleep_start_hour:02d}:00 {settings.time_zone}, {hours}"


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
