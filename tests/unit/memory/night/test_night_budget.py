"""The budget of a night, and when it stops."""

from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.night.order import (
    LEAST_CALLS,
    MENDING,
    Account,
    account,
    calls_allowed,
    items_left,
    may_ask_again,
    next_step,
    used_up,
)
from memory.night.record import Plans, new_night
from memory.records.records import NightRecord, PlanRecord
from memory.settings import Settings


def plan(step: str = "dream", **fields: Any) -> PlanRecord:
    made = {"step": step, "llm_calls": 0, "tokens": 0, "seconds": 0.0, **fields}
    return cast(PlanRecord, made)


def night_of(entries: list[str], calls: int = 0, **fields: Any) -> NightRecord:
    """The record of a night over `entries` that made `calls` calls."""
    steps = [{"step": "dream", "llm_calls": calls}, {"step": "compact", "llm_calls": 50}]
    made = new_night(datetime(2026, 5, 3, 2, tzinfo=UTC), entries, [])
    return cast(NightRecord, {**made, "steps": steps, **fields})


def ids(count: int, first: int = 0) -> list[str]:
    return [f"e{number}" for number in range(first, first + count)]


HUNDRED = night_of(ids(100))


@pytest.mark.parametrize(
    ("entries", "calls"), [(0, 8), (10, 8), (53, 8), (60, 9), (100, 15), (1_000, 150)]
)
def test_the_budget_is_fifteen_calls_per_hundred_entries_with_a_minimum(
    entries: int, calls: int
) -> None:
    assert calls_allowed(entries, Settings()) == calls


@given(st.integers(0, 100_000))
def test_above_the_minimum_no_night_exceeds_its_share(entries: int) -> None:
    calls = calls_allowed(entries, Settings())
    assert calls == LEAST_CALLS or calls * 100 <= 15 * entries


def test_the_budget_adds_up_all_steps_but_compaction() -> None:
    free = [plan("extract_facts", llm_calls=50, tokens=10**6), plan("compact", llm_calls=50)]
    assert used_up(free, HUNDRED, Settings(night_tokens=10, night_minutes=1.0)) is None
    plans = [plan("score_importance", llm_calls=5), plan("consolidate", llm_calls=5)]
    assert used_up(plans, HUNDRED, Settings()) is None
    assert used_up([*plans, plan("reflect", llm_calls=5)], HUNDRED, Settings()) is not None


TOKENS = "2,000 of 2,000 tokens are used (night_tokens)"


@pytest.mark.parametrize(
    ("used", "settings", "why"),
    [
        ({"llm_calls": 15}, {}, "15 of 15 model calls are used (night_calls_per_100)"),
        ({"llm_calls": 14}, {}, None),
        ({"tokens": 2_000}, {"night_tokens": 2_000}, TOKENS),
        ({"tokens": 1_999}, {"night_tokens": 2_000}, None),
        ({"tokens": 10**9}, {}, None),
        ({"seconds": 90.0}, {"night_minutes": 1.5}, "1.5 of 1.5 minutes are over (night_minutes)"),
        ({"seconds": 89.0}, {"night_minutes": 1.5}, None),
        ({"seconds": 10.0**6}, {}, None),
    ],
)
def test_a_night_stops_when_calls_tokens_or_minutes_are_used_up(
    used: dict[str, Any], settings: dict[str, Any], why: str | None
) -> None:
    assert used_up([plan(**used)], HUNDRED, Settings(**settings)) == why


def test_a_few_calls_of_each_step_that_mend_slips_are_no_part_of_the_budget() -> None:
    slips = [plan("score_importance", llm_calls=9, mending=MENDING + 1)]
    slips += [plan("consolidate", llm_calls=7, mending=MENDING)]
    made = 16 - 2 * MENDING
    settings = Settings(night_calls_per_100=made)
    assert used_up(slips, HUNDRED, settings) is not None
    assert used_up(slips[1:], HUNDRED, settings) is None
    assert used_up([*slips[1:], plan(llm_calls=made - 5)], HUNDRED, settings) is not None


@pytest.mark.parametrize(
    ("scoring", "mending", "others", "may"),
    [
        (0, 0, 7, True),
        (MENDING, 0, 7, True),
        (0, 1, 7, True),
        (0, MENDING, 7, False),
        (0, 0, 8, False),
    ],
)
def test_slips_in_scores_leave_refused_facts_their_calls(
    scoring: int, mending: int, others: int, may: bool
) -> None:
    made: dict[str, Any] = {"phase": "compacting", "operations": [], "errors": [], "inputs": []}
    scored: dict[str, Any] = {"llm_calls": others - 1 + scoring, "mending": scoring}
    scores = plan("score_importance", key="s", **scored, **made)
    facts = plan("consolidate", key="c", llm_calls=mending, mending=mending, **made)
    plans, small = Plans([scores, facts]), night_of(ids(20))
    asked: dict[str, Any] = {"calls": 1, "mending": 0, "facts": 20}
    assert may_ask_again(plans, small, Settings(), [], mends=True, **asked) is may
    assert not may_ask_again(plans, small, Settings(), [], mends=False, **asked)


@given(st.lists(st.tuples(st.integers(1, 120), st.integers(0, 60)), max_size=40))
def test_many_small_nights_cost_no_more_than_one_large_night(nights: list[tuple[int, int]]) -> None:
    """Each night wants a drawn number of calls and makes those that its budget allows."""
    earlier: list[NightRecord] = []
    made = heard = 0
    for entries, wants in nights:
        new = ids(entries, heard)
        heard += entries
        may = account(earlier, new, Settings(), asked=False)
        made += (calls := min(wants, may.calls))
        earlier.append(night_of(new, calls))
        assert made * 100 <= 15 * heard + LEAST_CALLS * 100


@pytest.mark.parametrize(
    ("earlier", "new", "asked", "may"),
    [
        ([], ids(5), False, Account(LEAST_CALLS, 0)),
        ([night_of(ids(5), calls=4)], ids(5, 5), False, Account(0, 3)),
        ([night_of(ids(5), calls=4)], ids(22, 5), False, Account(LEAST_CALLS, 0)),
        # An entry that a night left counts once.
        ([night_of(ids(30), calls=8)], ids(30), False, Account(0, 4)),
        ([night_of(ids(5), calls=8)], ids(1, 5), True, Account(LEAST_CALLS, 0)),
    ],
)
def test_a_night_nobody_asked_for_waits_for_entries_for_calls_made_ahead(
    earlier: list[NightRecord], new: list[str], asked: bool, may: Account
) -> None:
    assert account(earlier, new, Settings(), asked=asked) == may


def test_a_waiting_night_gives_the_reason() -> None:
    waits = night_of(ids(5), ahead=3)
    why = "earlier nights made 3 model calls ahead of new entries (night_calls_per_100)"
    assert used_up([], waits, Settings()) == why


@pytest.mark.parametrize(
    ("made", "begun", "step"),
    [(13, False, "reflect"), (14, False, "prune"), (14, True, "reflect"), (15, True, "prune")],
)
def test_a_reflection_begins_only_with_calls_for_its_questions_and_its_insights(
    made: int, begun: bool, step: str
) -> None:
    made_of: dict[str, Any] = {"phase": "dreaming", "operations": [], "errors": [], "inputs": []}
    done = [("consolidate", made), ("prune_links", 0), ("write_pages", 0)]
    done += [("reflect", 0)] if begun else []
    plans = Plans(
        plan(name, llm_calls=calls, key=name, finished=name != "reflect", **made_of)
        for name, calls in done
    )
    night = night_of(ids(100), reflect=True, applied=["compacting"])
    told = next_step(night, plans, Settings(), waking=False, compaction_due=False)
    assert told == step
    assert items_left("reflect", night, plans, Settings()) == 1, "no night is silent about it"
