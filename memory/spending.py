"""The budget of autonomous ticks: ticks per hour and tokens per day. Pure.

It bounds the ticks that no event set off, reflections included. Events are always answered.
"""

from __future__ import annotations

from datetime import UTC, datetime

from memory.settings import Settings
from memory.state import Spending

_DAY, _HOUR = len("2026-03-02"), len("2026-03-02T14")


def spent(spending: Spending, now: datetime, *, tokens: int, autonomous: bool) -> Spending:
    """`spending` with one more tick. `autonomous`: no event set it off; tokens always count."""
    held = held_at(spending, now)
    return {
        **held,
        "autonomous_ticks": held["autonomous_ticks"] + autonomous,
        "tokens": held["tokens"] + tokens,
    }


def over(spending: Spending, settings: Settings, now: datetime) -> str | None:
    """Why only events are answered now, as a sentence; None if the budget is not used up.

    A limit of 0 allows no autonomous tick at all.
    """
    held = held_at(spending, now)
    most = settings.autonomous_ticks_per_hour
    if not most or not settings.tokens_per_day:
        name = "tokens_per_day" if most else "autonomous_ticks_per_hour"
        return f"{name} is 0: only events are answered."
    if held["tokens"] >= settings.tokens_per_day:
        return (
            f"{held['tokens']:,} model tokens were spent on {held['day']} UTC (tokens_per_day "
            f"{settings.tokens_per_day:,}): until that day is over only events are answered."
        )
    if held["autonomous_ticks"] >= most:
        return (
            f"{held['autonomous_ticks']:,} ticks of its own in the hour from {held['hour'][-2:]}:00"
            f" UTC (autonomous_ticks_per_hour {most:,}): until it is over only events are answered."
        )
    return None


def held_at(spending: Spending, now: datetime) -> Spending:
    """The part of `spending` that counts at `now`: its hour and its day."""
    stamp = now.astimezone(UTC).isoformat()
    hour, ticks = _rolled(spending["hour"], stamp[:_HOUR], spending["autonomous_ticks"])
    day, tokens = _rolled(spending["day"], stamp[:_DAY], spending["tokens"])
    return {"hour": hour, "autonomous_ticks": ticks, "day": day, "tokens": tokens}


def _rolled(held: str, current: str, count: int) -> tuple[str, int]:
    """(the hour or day to count in, what is spent of it).

    Setting the clock back gives nothing back: within a day the later hour stays. Set back by days,
    as a replay of old events does, the count goes on from the new day; otherwise a single time far
    in the future would block the assistant until then.
    """
    if current > held:
        return current, 0
    return (held if held[:_DAY] == current[:_DAY] else current), count
