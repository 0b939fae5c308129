"""When the agent sleeps of its own accord: by schedule, fatigue or its own wish. Pure.

Times are aware; hours are local. If the clocks skip the start hour, the night begins right after
the skip; if the hour comes twice, the night begins the first time.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from memory.settings import Settings
from memory.state import SleepCause, Slumber, State, filled
from memory.text import zone_name

RECOVERY = 0.05
"""Share of the context by which the history must grow before fatigue returns: otherwise a night
that could not shorten it would repeat after every message."""


class Window(NamedTuple):
    """The hours of one night, UTC; `end` is exclusive."""

    start: datetime
    end: datetime


def window_of(day: date, settings: Settings) -> Window:
    """The hours of sleep that begin on the local `day`."""
    zone = settings.zone
    # fold=0 takes the first of two equal hours, and reads a skipped hour with the earlier offset,
    # which gives the first moment after the skip.
    start = datetime.combine(day, time(settings.sleep_start_hour), zone).astimezone(UTC)
    return Window(start, start + timedelta(hours=settings.sleep_duration_hours))


def window_at(now: datetime, settings: Settings) -> Window | None:
    """The hours of sleep that contain `now`; None outside of them, or without a schedule."""
    if not settings.sleep_schedule_enabled:
        return None
    today = now.astimezone(settings.zone).date()
    for day in (today, today - timedelta(days=1)):
        window = window_of(day, settings)
        if window.start <= now < window.end:
            return window
    return None


def next_start(now: datetime, settings: Settings) -> datetime:
    """The next beginning of the hours of sleep after `now`."""
    today = now.astimezone(settings.zone).date()
    starts = (window_of(today + timedelta(days=days), settings).start for days in range(3))
    return next(start for start in starts if start > now)


def sleep_due(now: datetime, settings: Settings, *, last: datetime | None) -> bool:
    """Whether the schedule sends the agent to sleep: once a window. `last`: when it last did."""
    window = window_at(now, settings)
    return window is not None and (last is None or last < window.start)


def wake_due(now: datetime, settings: Settings, *, asleep_since: datetime | None) -> bool:
    """Whether the window in which the agent fell asleep is over."""
    if asleep_since is None or not settings.sleep_schedule_enabled:
        return False
    window = window_at(asleep_since, settings)
    return window is not None and now >= window.end


def tired(share: float, settings: Settings, *, pending: bool, rested: float = 0.0) -> bool:
    """Whether fatigue sends the agent to sleep: the history is long and nothing is pending.

    Args:
        share: share (0..1) of the context that the history fills.
        settings: with the fatigue threshold; None turns fatigue off.
        pending: anything waits to be done.
        rested: the share when the agent last woke.
    """
    at = settings.fatigue_threshold
    if at is None or pending or share < at:
        return False
    return rested < at or share >= rested + RECOVERY


def own_sleep(
    state: State, settings: Settings, now: datetime, *, direct: bool, busy: bool
) -> SleepCause | None:
    """Why the agent falls asleep of its own accord now, or sleeps on at its hour; None if not.

    It stays awake while `direct` events wait or the emergency stop is on. Schedule and fatigue
    apply only to runs that nobody waits for. `busy`: any event is pending; one whose tick waits
    for a person's answer is not.
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


def hours_over(state: State, settings: Settings, now: datetime) -> bool:
    """Whether the schedule wakes the agent. A night that a person asked for has no hours."""
    if state["mode"] != "sleep":
        return False
    return wake_due(now, settings, asleep_since=_moment(_own_since(state["slumber"])))


def called_away(state: State, settings: Settings, now: datetime) -> str | None:
    """Why dreaming ends early, apart from new messages; None if it does not.

    Reasons are that a person woke the agent, and that its hours are over, which may have woken it
    earlier in this run, before an unfinished night was resumed. Compacting is always finished.
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
    return f"{settings.sleep_start_hour:02d}:00 {zone_name(settings.zone)}, {hours}"


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
