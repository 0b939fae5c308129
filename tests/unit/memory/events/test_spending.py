"""What the assistant may spend awake without being asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.events.next_action import over, spent
from memory.settings import Settings
from memory.state.schema import Spending, fresh_state

NOW = datetime(2026, 3, 2, 14, 30, tzinfo=UTC)
FRESH = fresh_state()["spending"]
SETTINGS = Settings(autonomous_ticks_per_hour=2, tokens_per_day=1_000)


def after(*ticks: tuple[datetime, int, bool], held: Spending = FRESH) -> Spending:
    """What is held after these ticks: time, tokens, of its own."""
    for now, tokens, autonomous in ticks:
        held = spent(held, now, tokens=tokens, autonomous=autonomous)
    return held


def test_ticks_of_its_own_are_counted_by_the_hour_and_all_tokens_by_the_day() -> None:
    held = after((NOW, 100, True), (NOW, 20, False), (NOW + timedelta(hours=1), 3, True))
    assert held == {
        "hour": "2026-03-02T15",
        "autonomous_ticks": 1,
        "day": "2026-03-02",
        "tokens": 123,
    }


def test_hours_and_days_are_utcs() -> None:
    east = datetime(2026, 3, 3, 1, 30, tzinfo=timezone(timedelta(hours=3)))
    held = spent(FRESH, east, tokens=1, autonomous=True)
    assert (held["hour"], held["day"]) == ("2026-03-02T22", "2026-03-02")


def test_what_was_held_is_not_changed() -> None:
    spent(FRESH, NOW, tokens=5, autonomous=True)
    assert fresh_state()["spending"] == FRESH


def test_over_its_ticks_only_events_are_answered_until_the_hour_is_over() -> None:
    held = after((NOW, 1, True), (NOW, 1, False))
    assert over(held, SETTINGS, NOW) is None
    held = after((NOW, 1, True), held=held)
    assert over(held, SETTINGS, NOW) == (
        "2 ticks of its own in the hour from 14:00 UTC (autonomous_ticks_per_hour 2): until it is "
        "over only events are answered."
    )
    assert over(held, SETTINGS, NOW + timedelta(minutes=29, seconds=59)) is not None
    assert over(held, SETTINGS, NOW + timedelta(minutes=30)) is None


def test_over_its_tokens_only_events_are_answered_until_the_day_is_over() -> None:
    held = after((NOW, 999, False))
    assert over(held, SETTINGS, NOW) is None
    held = after((NOW, 1, False), held=held)
    assert over(held, SETTINGS, NOW + timedelta(hours=9)) == (
        "1,000 model tokens were spent on 2026-03-02 UTC (tokens_per_day 1,000): until that day is "
        "over only events are answered."
    )
    assert over(held, SETTINGS, NOW + timedelta(hours=9, minutes=30)) is None


@pytest.mark.parametrize("name", ["autonomous_ticks_per_hour", "tokens_per_day"])
def test_a_limit_of_zero_leaves_nothing_at_any_time(name: str) -> None:
    settings = Settings(**{name: 0})
    assert over(FRESH, settings, NOW) == f"{name} is 0: only events are answered."
    assert over(FRESH, Settings(), NOW) is None


def test_one_time_far_ahead_does_not_hold_the_assistant_until_then() -> None:
    far = datetime(2099, 1, 1, tzinfo=UTC)
    held = after((far, 600, True), (NOW, 600, True))
    assert held == {
        "hour": "2026-03-02T14",
        "autonomous_ticks": 2,
        "day": "2026-03-02",
        "tokens": 1_200,
    }
    assert over(held, SETTINGS, NOW) is not None
    assert over(held, SETTINGS, NOW + timedelta(days=1)) is None


def test_hours_edited_by_hand_break_nothing() -> None:
    for text in ("soon", "2026-03-02Tlate", "0"):
        held = spent(
            {"hour": text, "autonomous_ticks": 1, "day": text, "tokens": 1},
            NOW,
            tokens=1,
            autonomous=True,
        )
        over(held, SETTINGS, NOW)
        assert spent(held, NOW + timedelta(days=1), tokens=1, autonomous=True)["tokens"] == 1


TIMES = st.datetimes(timezones=st.just(UTC))


@given(st.lists(TIMES, min_size=1, max_size=6), TIMES)
def test_only_a_later_hour_or_day_takes_something_off(times: list[datetime], now: datetime) -> None:
    held = after(*((time, 10, True) for time in times))
    more = after((now, 10, True), held=held)
    stamp = now.isoformat()
    new_hour, new_day = stamp[:13] > held["hour"], stamp[:10] > held["day"]
    assert more["autonomous_ticks"] == 1 + (0 if new_hour else held["autonomous_ticks"])
    assert more["tokens"] == 10 + (0 if new_day else held["tokens"])
    assert over(more, Settings(autonomous_ticks_per_hour=1), now) is not None
