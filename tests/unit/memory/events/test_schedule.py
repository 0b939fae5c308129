"""When the agent sleeps of its own accord."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memory.events.schedule import next_start, sleep_due, tired, wake_due, window_at, window_of
from memory.settings import Settings

BERLIN = Settings(sleep_schedule_enabled=True, time_zone="Europe/Berlin")
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_the_night_begins_at_its_local_hour_and_lasts_its_hours() -> None:
    window = window_of(date(2026, 1, 10), BERLIN)
    assert window == (utc("2026-01-10T01:00"), utc("2026-01-10T05:00"))


def test_an_hour_that_does_not_exist_is_the_first_moment_after_it() -> None:
    # 29 March 2026: 02:00 is 03:00 in Berlin.
    window = window_of(date(2026, 3, 29), BERLIN)
    assert window.start == utc("2026-03-29T01:00")
    assert window.start.astimezone(ZoneInfo("Europe/Berlin")).hour == 3
    assert window.end - window.start == timedelta(hours=4)


def test_an_hour_that_comes_twice_begins_one_night() -> None:
    # 25 October 2026: 02:00 comes twice in Berlin, at 00:00 and at 01:00 UTC.
    first, second = utc("2026-10-25T00:00"), utc("2026-10-25T01:00")
    assert window_of(date(2026, 10, 25), BERLIN).start == first
    assert sleep_due(first, BERLIN, last=None)
    assert not sleep_due(second, BERLIN, last=first)


def test_a_window_over_midnight_is_found_on_both_days() -> None:
    late = Settings(sleep_schedule_enabled=True, sleep_start_hour=23)
    for moment in ("2026-05-01T23:00", "2026-05-02T02:59"):
        window = window_at(utc(moment), late)
        assert window is not None
        assert window.start == utc("2026-05-01T23:00")
    assert window_at(utc("2026-05-02T03:00"), late) is None
    assert window_at(utc("2026-05-01T22:59"), late) is None


def test_it_falls_asleep_once_in_a_window_and_again_in_the_next() -> None:
    slept = utc("2026-01-10T01:00")
    assert not sleep_due(utc("2026-01-10T04:59"), BERLIN, last=slept)
    assert not sleep_due(utc("2026-01-10T12:00"), BERLIN, last=slept)
    assert sleep_due(utc("2026-01-11T01:00"), BERLIN, last=slept)


def test_without_a_schedule_no_hour_sends_it_to_sleep_or_wakes_it() -> None:
    off = Settings()
    assert not sleep_due(utc("2026-01-10T02:00"), off, last=None)
    assert not wake_due(utc("2026-01-12T02:00"), off, asleep_since=utc("2026-01-10T02:00"))


def test_it_wakes_when_its_hours_are_over_if_it_fell_asleep_in_them() -> None:
    slept = utc("2026-01-10T01:10")
    assert not wake_due(utc("2026-01-10T04:59"), BERLIN, asleep_since=slept)
    assert wake_due(utc("2026-01-10T05:00"), BERLIN, asleep_since=slept)
    by_request = utc("2026-01-10T20:00")
    assert not wake_due(utc("2026-01-11T05:00"), BERLIN, asleep_since=by_request)


def test_fatigue_is_off_by_default_and_waits_while_something_is_pending() -> None:
    assert not tired(1.0, Settings(), pending=False)
    set_up = Settings(fatigue_threshold=0.6)
    assert tired(0.6, set_up, pending=False)
    assert not tired(0.59, set_up, pending=False)
    assert not tired(0.9, set_up, pending=True)


def test_a_time_zone_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValidationError, match="no time zone is called 'Mars/Olympus'"):
        Settings(time_zone="Mars/Olympus")


@given(
    zone=st.sampled_from(ZONES),
    hour=st.integers(0, 23),
    hours=st.sampled_from([1.0, 4.0, 12.0, 23.0]),
    minutes=st.integers(0, 60 * 24 * 400),
)
def test_every_day_has_one_night_and_it_is_due_once(
    zone: str, hour: int, hours: float, minutes: int
) -> None:
    settings = Settings(
        sleep_schedule_enabled=True,
        time_zone=zone,
        sleep_start_hour=hour,
        sleep_duration_hours=hours,
    )
    now = utc("2026-01-01T00:00") + timedelta(minutes=minutes)
    start = next_start(now, settings)
    assert timedelta(0) < start - now <= timedelta(hours=25)
    assert sleep_due(start, settings, last=start - timedelta(hours=22))
    assert not sleep_due(start, settings, last=start)
    assert wake_due(start + timedelta(hours=hours), settings, asleep_since=start)
