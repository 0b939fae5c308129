"""The execution pattern: layers that only narrow."""

from itertools import product
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.records.tick import Assessment, PatternState
from memory.settings import Settings
from tools.policy import (
    CONTEXTS,
    MODES,
    SINGLE_ACTION,
    ContextConfig,
    Limits,
    assessment_pattern,
    context_pattern,
    meet,
    narrower,
    select_execution_pattern,
    static_pattern,
)

UNIVERSE = [
    Limits(mode, most, categories, terminal, confirm, multi, agents)
    for mode, most, categories, (terminal, confirm), (multi, agents) in product(
        MODES,
        (1, 5),
        (None, frozenset({"safe_chain"}), frozenset({"terminal"})),
        product((False, True), repeat=2),
        product((False, True), repeat=2),
    )
]


def within(a: Limits, b: Limits) -> bool:
    """Whether `a` allows nothing that `b` does not (a <= b)."""
    return all(
        (
            MODES.index(a.mode) <= MODES.index(b.mode),
            a.max_iterations <= b.max_iterations,
            _subset(a.allowed_categories, b.allowed_categories),
            a.terminal_ends_loop >= b.terminal_ends_loop,
            a.dangerous_requires_confirm >= b.dangerous_requires_confirm,
            a.multi_tool_enabled <= b.multi_tool_enabled,
            a.sub_agents_enabled <= b.sub_agents_enabled,
        )
    )


def _subset(a: frozenset[str] | None, b: frozenset[str] | None) -> bool:
    return b is None or (a is not None and a <= b)


def test_the_meet_allows_only_what_both_allow() -> None:
    for a, b in product(UNIVERSE, repeat=2):
        both = meet(a, b)
        assert within(both, a)
        assert within(both, b)


def test_the_meet_is_the_widest_of_those() -> None:
    for a, b in product(UNIVERSE[::5], UNIVERSE[::7]):
        both = meet(a, b)
        assert all(within(c, both) for c in UNIVERSE if within(c, a) and within(c, b))


def test_the_static_layer_caps_awake_and_asleep_each_by_its_own_setting() -> None:
    settings = Settings(max_iterations_per_tick=2, max_iterations_sleep=7)
    most = {
        name: select_execution_pattern(settings, context)["max_iterations"]
        for name, context in CONTEXTS.items()
    }
    assert most == {
        "tick_event": 2,
        "tick_autonomous": 2,
        "reflection": 2,
        "reflection_cont": 2,
        "goal_decompose": 1,
        "sleep_consolidate": 7,
        "pre_compaction": 5,
    }
    assert static_pattern(settings, asleep=True).max_iterations == 7
    assert static_pattern(settings, asleep=False).max_iterations == 2


@pytest.mark.parametrize("context_type", CONTEXTS)
def test_the_master_switch_allows_one_action_only(context_type: str) -> None:
    settings = Settings(multi_action_enabled=False)
    pattern = select_execution_pattern(settings, CONTEXTS[context_type])
    assert (pattern["mode"], pattern["max_iterations"]) == ("single_action", 1)
    assert pattern["multi_tool_enabled"] is False
    assert pattern["source_layers"]["mode"] == "static"


def test_sub_agents_need_the_setting_and_the_context() -> None:
    settings = Settings(sub_agents_enabled=True)
    event = select_execution_pattern(settings, CONTEXTS["tick_event"])
    night = select_execution_pattern(settings, CONTEXTS["sleep_consolidate"])
    assert (event["sub_agents_enabled"], night["sub_agents_enabled"]) == (True, False)
    assert event["source_layers"]["sub_agents_enabled"] == "allowed"
    assert night["source_layers"]["sub_agents_enabled"] == "context"


def test_a_setting_asks_a_person_before_a_dangerous_tool_and_may_be_switched_off() -> None:
    context = CONTEXTS["tick_event"]
    asked = select_execution_pattern(Settings(), context)
    assert asked["dangerous_requires_confirm"] is True
    off = Settings(dangerous_requires_confirm=False)
    unasked = select_execution_pattern(off, context)
    assert unasked["dangerous_requires_confirm"] is False
    assert unasked["source_layers"]["dangerous_requires_confirm"] == "allowed"


def test_an_assessment_can_narrow_and_never_widen() -> None:
    context, settings = CONTEXTS["tick_event"], Settings(dangerous_requires_confirm=False)
    narrow = assessment_pattern(assessment(mode="single_action", confirm=True))
    pattern = select_execution_pattern(settings, context, narrow)
    assert (pattern["mode"], pattern["max_iterations"]) == ("single_action", 1)
    assert pattern["multi_tool_enabled"] is False
    for key in ("mode", "max_iterations", "dangerous_requires_confirm", "multi_tool_enabled"):
        assert pattern["source_layers"][key] == "assessment"
    assert pattern["source_layers"]["terminal_ends_loop"] == "context"
    wide = assessment_pattern(assessment(mode="plan_execute", iterations=10))
    assert select_execution_pattern(settings, context, wide) == select_execution_pattern(
        settings, context
    )


def test_a_value_is_named_for_the_layer_that_narrowed_it_last() -> None:
    """One that only repeats what an earlier layer set has set nothing."""
    context = CONTEXTS["tick_event"]
    for iterations, source in ((5, "static"), (4, "assessment")):
        limits = assessment_pattern(assessment(iterations=iterations))
        pattern = select_execution_pattern(Settings(), context, limits)
        assert pattern["max_iterations"] == iterations
        assert pattern["source_layers"]["max_iterations"] == source
        assert pattern["source_layers"]["mode"] == "context"


def assessment(
    mode: Any = None, iterations: int | None = None, confirm: bool = False, **signals: Any
) -> Assessment:
    return {
        "by": "heuristic",
        "event_class": signals.get("event_class", "unknown"),
        "complexity": 3,
        "recommended_mode": mode,
        "recommended_iterations": iterations,
        "recommend_confirm_dangerous": confirm,
        "reasoning": "",
        "signals": signals,
    }


AT_MOST_TWO = Limits(max_iterations=2)
CONFIRM = Limits(dangerous_requires_confirm=True)


@pytest.mark.parametrize(
    ("measured", "limits"),
    [
        ({"token_pressure": "critical"}, SINGLE_ACTION),
        ({"token_pressure": "high"}, AT_MOST_TWO),
        ({"token_pressure": "normal"}, Limits()),
        ({"recent_errors": 3}, meet(SINGLE_ACTION, CONFIRM)),
        ({"recent_errors": 4}, meet(SINGLE_ACTION, CONFIRM)),
        ({"recent_errors": 2}, AT_MOST_TWO),
        ({"recent_errors": 1}, Limits()),
        ({"event_class": "communication"}, SINGLE_ACTION),
        ({"event_class": "building"}, CONFIRM),
        ({"event_class": "query"}, Limits()),
        ({"goal_urgency": "low"}, Limits()),
        ({}, Limits()),
        ({"token_pressure": "high", "event_class": "building"}, meet(AT_MOST_TWO, CONFIRM)),
    ],
)
def test_the_signal_table_of_the_page(measured: dict[str, Any], limits: Limits) -> None:
    assert assessment_pattern(assessment(**measured)) == limits


def test_recommendations_narrow_beside_the_signals() -> None:
    assert assessment_pattern(assessment(iterations=3)) == Limits(max_iterations=3)
    assert assessment_pattern(assessment(mode="react_loop")) == Limits(mode="react_loop")
    assert assessment_pattern(assessment(confirm=True)) == CONFIRM
    assert assessment_pattern(assessment(iterations=3, token_pressure="high")) == AT_MOST_TWO
    assert assessment_pattern(assessment(iterations=0)).max_iterations == 1


def test_a_second_assessment_takes_away_and_gives_nothing_back() -> None:
    measured = assessment("react_loop", 2, token_pressure="high")
    judged = {**assessment(None, 4, True, token_pressure="normal"), "by": "model", "complexity": 5}
    both = narrower(measured, cast(Assessment, judged))
    assert (both["by"], both["complexity"]) == ("model", 5)
    assert (both["recommended_mode"], both["recommended_iterations"]) == ("react_loop", 2)
    assert both["recommend_confirm_dangerous"] is True
    assert both["signals"] == {"token_pressure": "high"}
    nothing = narrower(assessment(), assessment())
    assert (nothing["recommended_mode"], nothing["recommended_iterations"]) == (None, None)


SETTINGS = st.builds(
    Settings,
    multi_action_enabled=st.booleans(),
    max_iterations_per_tick=st.integers(1, 10),
    max_iterations_sleep=st.integers(1, 10),
    sub_agents_enabled=st.booleans(),
    dangerous_requires_confirm=st.booleans(),
)
ASSESSMENTS = st.builds(
    assessment,
    st.sampled_from([None, *MODES]),
    st.none() | st.integers(1, 10),
    st.booleans(),
    token_pressure=st.sampled_from(["normal", "high", "critical"]),
    recent_errors=st.integers(0, 5),
    event_class=st.sampled_from(["communication", "building", "query", "unknown"]),
)


def composed(pattern: PatternState) -> Limits:
    categories = pattern["allowed_categories"]
    values = {key: value for key, value in pattern.items() if key != "source_layers"}
    return Limits(
        **{
            **cast(Any, values),
            "allowed_categories": None if categories is None else frozenset(categories),
        }
    )


@given(SETTINGS, st.sampled_from(sorted(CONTEXTS)), ASSESSMENTS, ASSESSMENTS)
def test_no_combination_grants_what_an_earlier_layer_withholds(
    settings: Settings, context_type: str, measured: Assessment, judged: Assessment
) -> None:
    context = CONTEXTS[context_type]
    asleep = context_type in ("sleep_consolidate", "pre_compaction")
    layers = [static_pattern(settings, asleep), context_pattern(context)]
    two = composed(select_execution_pattern(settings, context))
    assert all(within(two, layer) for layer in layers)
    three = composed(select_execution_pattern(settings, context, assessment_pattern(measured)))
    assert all(within(three, layer) for layer in (*layers, two, assessment_pattern(measured)))
    four = composed(
        select_execution_pattern(settings, context, assessment_pattern(narrower(measured, judged)))
    )
    assert all(within(four, layer) for layer in (*layers, two, three))


def test_the_categories_of_a_context_are_kept_in_a_fixed_order() -> None:
    context = ContextConfig(
        context_type="quiet",
        name="Quiet",
        description="No speech",
        enabled_components=[0],
        allowed_tool_categories=["terminal", "safe_chain"],
    )
    assert context_pattern(context).allowed_categories == frozenset({"safe_chain", "terminal"})
    pattern = select_execution_pattern(Settings(), context)
    assert pattern["allowed_categories"] == ["safe_chain", "terminal"]
    assert pattern["source_layers"]["allowed_categories"] == "context"
