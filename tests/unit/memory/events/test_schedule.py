"""When the agent sleeps or wakes of its own accord, and what it may spend without being asked."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from memory.events.next_action import (
    RECOVERY,
    Pending,
    fatigued,
    hours_over,
    next_start,
    own_sleep_cause,
    sleep_due,
    spending_after_tick,
    wake_due,
    why_only_events,
    window_at,
)
from memory.settings import Settings
from memory.state.schema import SleepCause, Spending, State, fallen_asleep, fresh_state, woken

BERLIN = Settings(sleep_schedule_enabled=True, time_zone="Europe/Berlin")
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_without_a_schedule_no_hour_sends_it_to_sleep_or_wakes_it() -> None:
    off = Settings()
    assert not sleep_due(utc("2026-01-10T02:00"), off, last=None)
    assert not wake_due(utc("2026-01-12T02:00"), off, asleep_since=utc("2026-01-10T02:00"))


def test_fatigue_is_off_by_default_and_waits_while_something_is_pending() -> None:
    assert not fatigued(1.0, Settings(), pending=False)
    set_up = Settings(fatigue_threshold=0.6)
    assert fatigued(0.6, set_up, pending=False)
    assert not fatigued(0.59, set_up, pending=False)
    assert not fatigued(0.9, set_up, pending=True)


def test_fatigue_does_not_return_at_once_after_a_night_without_relief() -> None:
    settings = Settings(fatigue_threshold=0.6)
    assert not fatigued(0.62, settings, pending=False, rested=0.61)
    assert fatigued(0.61 + RECOVERY, settings, pending=False, rested=0.61)
    assert fatigued(0.6, settings, pending=False, rested=0.2)


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


def state(**changes: Any) -> State:
    return cast(State, {**fresh_state(), "messages": [], "unattended": True, **changes})


NOTHING = Pending(people=[], own=[], context=[], ignored=[])
EVENT: Any = {"id": "e1"}
VERDICT: Any = {"verdict": "act"}
ASKED = NOTHING._replace(people=[(EVENT, VERDICT)])
HEARD = NOTHING._replace(context=[EVENT])


def cause(
    of: State, settings: Settings, now: datetime, pending: Pending = NOTHING
) -> SleepCause | None:
    return own_sleep_cause(of, settings, now, pending)


def lived(settings: Settings, start: datetime, end: datetime, step: timedelta) -> list[str]:
    """The times at which it falls asleep and wakes when it is looked at every `step`."""
    found, now, agent = [], start, state()
    while now < end:
        if hours_over(agent, settings, now):
            agent = cast(State, {**agent, **woken(agent, settings, now, "hours", "")})
            found.append(f"woke {now:%m-%d %H:%M}")
        if cause(agent, settings, now) == "schedule":
            agent = cast(State, {**agent, **fallen_asleep(agent, now, "schedule", "")})
            found.append(f"slept {now:%m-%d %H:%M}")
        now += step
    return found


LATE = Settings(sleep_schedule_enabled=True, sleep_start_hour=23)


def test_a_window_over_midnight_is_found_on_both_days() -> None:
    found = [window_at(utc(f"2026-05-0{day}"), LATE) for day in ("1T22:59", "1T23:00", "2T02:59")]
    assert found == [None, *[(utc("2026-05-01T23:00"), utc("2026-05-02T03:00"))] * 2]


@pytest.mark.parametrize(
    ("settings", "start", "nights"),
    [
        # 29 March 2026: 02:00 does not exist in Berlin; the first moment after it is 01:00 UTC.
        (BERLIN, "2026-03-28T00:00", ["28 01:00", "28 05:00", "29 01:00", "29 05:00", "30 00:00"]),
        # 25 October 2026: 02:00 comes twice.
        (BERLIN, "2026-10-24T00:00", ["24 00:00", "24 04:00", "25 00:00", "25 04:00", "26 01:00"]),
        (LATE, "2026-05-01T04:00", ["01 23:00", "02 03:00", "02 23:00", "03 03:00", "03 23:00"]),
    ],
    ids=["no such hour", "the hour twice", "over midnight"],
)
def test_each_day_has_one_night_at_its_local_hour(
    settings: Settings, start: str, nights: list[str]
) -> None:
    """`nights`: when it falls asleep and when it wakes, in turn."""
    begin = utc(start)
    found = lived(settings, begin, begin + timedelta(hours=68), timedelta(minutes=5))
    assert [one.partition("-")[2] for one in found][:5] == nights
    assert [one.split()[0] for one in found][:5] == ["slept", "woke", "slept", "woke", "slept"]


def test_woken_within_its_hours_it_stays_awake_until_the_next_ones() -> None:
    now = utc("2026-01-10T01:00")
    agent = state()
    agent = cast(State, {**agent, **fallen_asleep(agent, now, "schedule", "")})
    later = now + timedelta(hours=1)
    agent = cast(State, {**agent, **woken(agent, BERLIN, later, "event", "Ada asks")})
    assert cause(agent, BERLIN, later + timedelta(minutes=1)) is None
    assert cause(agent, BERLIN, utc("2026-01-11T01:00")) == "schedule"
    assert [one["why"] for one in agent["report"]["mode_changes"]] == ["schedule", "event"]


@pytest.mark.parametrize(
    ("changes", "pending", "enabled"),
    [
        ({}, ASKED, True),
        ({"emergency_stop": True}, NOTHING, True),
        ({"unattended": False}, NOTHING, True),
        ({}, NOTHING, False),
    ],
)
def test_reasons_to_stay_awake_at_its_hour(
    changes: dict[str, Any], pending: Pending, enabled: bool
) -> None:
    now = utc("2026-01-10T01:30")
    assert cause(state(), BERLIN, now) == "schedule"
    settings = BERLIN.model_copy(update={"enabled": enabled})
    assert cause(state(**changes), settings, now, pending) is None


def test_its_wish_is_granted_also_in_an_attended_run() -> None:
    wish = {"at": "2026-01-10T12:00:00+00:00", "reasoning": "Done"}
    noon = utc("2026-01-10T12:00")
    assert cause(state(sleep_wish=wish, unattended=False), BERLIN, noon) == "go_to_sleep"
    assert cause(state(sleep_wish=wish, mode="sleep"), BERLIN, noon) is None
    assert cause(state(sleep_wish=wish), BERLIN, noon, ASKED) is None
    assert cause(state(sleep_wish=wish, emergency_stop=True), BERLIN, noon) is None


def test_fatigue_counts_the_history_alone_and_only_awake() -> None:
    settings = Settings(fatigue_threshold=0.5, max_context_tokens=500)
    full = [HumanMessage("bean " * 400)]
    now = utc("2026-01-10T12:00")
    assert cause(state(messages=full), settings, now) == "fatigue"
    assert cause(state(), settings, now) is None
    assert cause(state(messages=full), settings, now, HEARD) is None
    assert cause(state(messages=full, mode="sleep"), settings, now) is None
    assert cause(state(messages=full, unattended=False), settings, now) is None


def test_waking_remembers_how_full_the_history_was() -> None:
    settings = Settings(max_context_tokens=500)
    asleep = state(mode="sleep", messages=[HumanMessage("bean " * 400)])
    after = woken(asleep, settings, utc("2026-01-10T12:00"), "event", "")
    assert after["slumber"]["rested"] > 0.5
    assert (after["slumber"]["since"], after["slumber"]["why"]) == (None, None)


@pytest.mark.parametrize(
    ("causes", "wakes"),
    [
        (["request"], False),
        (["schedule"], True),
        (["go_to_sleep"], True),
        (["fatigue"], True),
        (["schedule", "request"], False),
    ],
)
def test_the_end_of_its_hours_wakes_it_unless_a_person_had_asked(
    causes: list[SleepCause], wakes: bool
) -> None:
    agent = state()
    for why in causes:
        agent = cast(State, {**agent, **fallen_asleep(agent, utc("2026-01-10T02:00"), why, "")})
    assert not hours_over(agent, BERLIN, utc("2026-01-10T04:59"))
    assert hours_over(agent, BERLIN, utc("2026-01-10T05:00")) is wakes


NOW = datetime(2026, 3, 2, 14, 30, tzinfo=UTC)
FRESH = fresh_state()["spending"]
SETTINGS = Settings(autonomous_ticks_per_hour=2, tokens_per_day=1_000)


def after(*ticks: tuple[datetime, int, bool], held: Spending = FRESH) -> Spending:
    """What is held after these ticks: time, tokens, of its own."""
    for now, tokens, autonomous in ticks:
        held = spending_after_tick(held, now, tokens=tokens, autonomous=autonomous)
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
    held = spending_after_tick(FRESH, east, tokens=1, autonomous=True)
    assert (held["hour"], held["day"]) == ("2026-03-02T22", "2026-03-02")


@pytest.mark.parametrize(
    ("ticks", "last", "until", "told"),
    [
        (
            [(NOW, 1, True), (NOW, 1, False)],
            (NOW, 1, True),
            NOW + timedelta(minutes=30),
            "2 autonomous ticks in the hour from 14:00 UTC (autonomous_ticks_per_hour 2): until "
            "it is over only events are answered.",
        ),
        (
            [(NOW, 999, False)],
            (NOW, 1, False),
            NOW + timedelta(hours=9, minutes=30),
            "1,000 model tokens were spent on 2026-03-02 UTC (tokens_per_day 1,000): until that "
            "day is over only events are answered.",
        ),
    ],
    ids=["ticks", "tokens"],
)
def test_over_its_budget_only_events_are_answered_until_the_hour_or_day_is_over(
    ticks: list[Any], last: Any, until: datetime, told: str
) -> None:
    held = after(*ticks)
    assert why_only_events(held, SETTINGS, NOW) is None
    held = after(last, held=held)
    assert why_only_events(held, SETTINGS, until - timedelta(seconds=1)) == told
    assert why_only_events(held, SETTINGS, until) is None


@pytest.mark.parametrize("name", ["autonomous_ticks_per_hour", "tokens_per_day"])
def test_a_limit_of_zero_leaves_nothing_at_any_time(name: str) -> None:
    settings = Settings(**{name: 0})
    assert why_only_events(FRESH, settings, NOW) == f"{name} is 0: only events are answered."
    assert why_only_events(FRESH, Settings(), NOW) is None


def test_one_time_far_ahead_does_not_hold_the_assistant_until_then() -> None:
    far = datetime(2099, 1, 1, tzinfo=UTC)
    held = after((far, 5_000, True), (far, 1, True))
    assert why_only_events(held, SETTINGS, far) is not None
    assert why_only_events(held, SETTINGS, NOW) is None
