"""The execution pattern: layers that only narrow (ruling 4)."""

from __future__ import annotations

from itertools import product

import pytest

from memory.settings import Settings
from tools.contexts import CONTEXTS, ContextConfig
from tools.pattern import (
    MODES,
    Limits,
    context_pattern,
    meet,
    select_execution_pattern,
    static_pattern,
    within,
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


def test_the_meet_allows_only_what_both_allow() -> None:
    for a, b in product(UNIVERSE, repeat=2):
        both = meet(a, b)
        assert within(both, a)
        assert within(both, b)


def test_the_meet_is_the_widest_of_those() -> None:
    for a, b in product(UNIVERSE[::5], UNIVERSE[::7]):
        both = meet(a, b)
        assert all(within(c, both) for c in UNIVERSE if within(c, a) and within(c, b))


def test_the_meet_is_commutative_and_idempotent() -> None:
    for a, b in product(UNIVERSE, repeat=2):
        assert meet(a, b) == meet(b, a)
    assert all(meet(a, a) == a for a in UNIVERSE)


def test_the_meet_is_associative() -> None:
    for a, b, c in product(UNIVERSE[::9], UNIVERSE[::11], UNIVERSE[::13]):
        assert meet(a, meet(b, c)) == meet(meet(a, b), c)


def test_within_is_an_order_and_not_mere_equality() -> None:
    assert all(within(a, Limits()) for a in UNIVERSE)
    assert not any(within(a, b) and within(b, a) for a in UNIVERSE for b in UNIVERSE if a != b)


def reflection() -> ContextConfig:
    """The context of the page's composition example."""
    return ContextConfig(
        context_type="reflection",
        name="Reflection",
        description="Self-analysis",
        enabled_components=[0],
        execution_mode="react_loop",
        max_iterations=3,
    )


def test_the_composition_of_the_page() -> None:
    settings = Settings(multi_action_enabled=True, max_iterations_per_tick=5)
    pattern = select_execution_pattern(settings, reflection())
    assert pattern["mode"] == "react_loop"
    assert pattern["max_iterations"] == 3
    layers = pattern["source_layers"]
    assert {key: layers[key] for key in ("mode", "max_iterations", "multi_tool_enabled")} == {
        "mode": "context",
        "max_iterations": "context",
        "multi_tool_enabled": "allowed",
    }


def test_the_default_pattern_of_a_tick_is_a_loop_of_five() -> None:
    pattern = select_execution_pattern(Settings(), CONTEXTS["tick_event"])
    assert pattern == {
        "mode": "react_loop",
        "max_iterations": 5,
        "allowed_categories": None,
        "terminal_ends_loop": True,
        "dangerous_requires_confirm": False,
        "multi_tool_enabled": True,
        "sub_agents_enabled": False,
        "source_layers": {
            "mode": "context",
            "max_iterations": "static",
            "allowed_categories": "allowed",
            "terminal_ends_loop": "context",
            "dangerous_requires_confirm": "allowed",
            "multi_tool_enabled": "allowed",
            "sub_agents_enabled": "static",
        },
    }


def test_the_static_layer_caps_awake_and_asleep_each_by_its_own_setting() -> None:
    settings = Settings(max_iterations_per_tick=2, max_iterations_sleep=7)
    most = {
        name: select_execution_pattern(settings, context)["max_iterations"]
        for name, context in CONTEXTS.items()
    }
    assert most == {
        "tick_event": 2,
        "tick_autonomous": 2,
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


def test_an_assessment_can_narrow_and_never_widen() -> None:
    context = CONTEXTS["tick_event"]
    narrow = Limits(mode="single_action", max_iterations=1, dangerous_requires_confirm=True)
    pattern = select_execution_pattern(Settings(), context, narrow)
    assert (pattern["mode"], pattern["max_iterations"]) == ("single_action", 1)
    assert pattern["source_layers"]["mode"] == "assessment"
    assert pattern["source_layers"]["dangerous_requires_confirm"] == "assessment"
    wide = Limits(mode="plan_execute", max_iterations=10)
    assert select_execution_pattern(Settings(), context, wide) == select_execution_pattern(
        Settings(), context
    )


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
