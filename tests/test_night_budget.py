"""What a night may spend, and when it stops."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.dreaming.budget import LEAST_CALLS, calls_allowed, calls_left, used_up
from memory.records import PlanRecord
from memory.settings import Settings


def plan(step: str = "dream", **fields: Any) -> PlanRecord:
    made = {"step": step, "llm_calls": 0, "tokens": 0, "seconds": 0.0, **fields}
    return cast(PlanRecord, made)


@pytest.mark.parametrize(
    ("entries", "calls"), [(0, 8), (10, 8), (53, 8), (60, 9), (100, 15), (1_000, 150)]
)
def test_fifteen_calls_a_hundred_entries_and_never_less_than_a_small_night_needs(
    entries: int, calls: int
) -> None:
    assert calls_allowed(entries, Settings()) == calls


@given(st.integers(0, 100_000))
def test_above_the_least_no_night_makes_more_than_its_share(entries: int) -> None:
    calls = calls_allowed(entries, Settings())
    assert calls == LEAST_CALLS or calls * 100 <= 15 * entries


def test_the_calls_that_are_left_never_fall_below_none() -> None:
    assert calls_left([plan(llm_calls=3)], 100, Settings()) == 12
    assert calls_left([plan(llm_calls=40)], 100, Settings()) == 0


def test_what_cuts_a_history_that_is_too_long_is_not_counted() -> None:
    free = [plan("extract_facts", llm_calls=50, tokens=10**6), plan("compact", llm_calls=50)]
    assert calls_left(free, 100, Settings()) == 15
    assert used_up(free, 100, Settings(night_tokens=10, night_minutes=1.0)) is None


@pytest.mark.parametrize(
    ("used", "settings", "why"),
    [
        ({"llm_calls": 15}, {}, "15 of 15 model calls are used (night_calls_per_100)"),
        ({"llm_calls": 14}, {}, None),
        (
            {"tokens": 2_000},
            {"night_tokens": 2_000},
            "2,000 of 2,000 tokens are used (night_tokens)",
        ),
        ({"tokens": 1_999}, {"night_tokens": 2_000}, None),
        ({"tokens": 10**9}, {}, None),
        ({"seconds": 90.0}, {"night_minutes": 1.5}, "1.5 of 1.5 minutes are over (night_minutes)"),
        ({"seconds": 89.0}, {"night_minutes": 1.5}, None),
        ({"seconds": 10.0**6}, {}, None),
    ],
)
def test_a_night_stops_where_one_of_three_is_used_up_and_says_which(
    used: dict[str, Any], settings: dict[str, Any], why: str | None
) -> None:
    assert used_up([plan(**used)], 100, Settings(**settings)) == why


def test_what_all_steps_spend_counts_together() -> None:
    plans = [plan("score_importance", llm_calls=5), plan("consolidate", llm_calls=5)]
    assert used_up(plans, 100, Settings()) is None
    assert used_up([*plans, plan("reflect", llm_calls=5)], 100, Settings()) is not None
