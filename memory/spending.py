"""What the assistant may spend awake without being asked: ticks an hour, tokens a day. Pure.

Events are answered whatever was spent; only ticks of its own, reflections included, are bounded.
"""

from __future__ import annotations

from datetime import UTC, datetime

from memory.settings import Settings
from memory.state import Spending

_DAY, _HOUR = len("2026-03-02"), len("2026-03-02T14")


def spent(spending: Spending, now: datetime, *, tokens: int, autonomous: bool) -> Spending:
    """`spending` with a tick more. Every tick's tokens count; `autonomous`: no event set it off."""
    held = held_at(spending, now)
    return {
        **held,
        "autonomous_ticks": held["autonomous_ticks"] + autonomous,
        "tokens": held["tokens"] + tokens,
    }


def over(spending: Spending, settings: Settings, now: datetime) -> str | None:
    """Why only events are answered now, in a sentence; None: there is something left to spend.

    A limit of 0 leaves nothing at any time.
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
    """What still counts at `now`."""
    stamp = now.astimezone(UTC).isoformat()
    hour, ticks = _rolled(spending["hour"], stamp[:_HOUR], spending["autonomous_ticks"])
    day, tokens = _rolled(spending["day"], stamp[:_DAY], spending["tokens"])
    return {"hour": hour, "autonomous_ticks": ticks, "day": day, "tokens": tokens}


def _rolled(held: str, current: str, count: int) -> tuple[str, int]:
    """The hour or day to count in, and what is spent of it.

    A clock that was put back takes nothing off. Within a day the later hour stands; put back by
    days, as a replay of old events does, the count goes on from there: else one time far ahead
    would hold the assistant until then.
    """
    if current > held:
        return current, 0
    return (held if held[:_DAY] == current[:_DAY] else current), count
