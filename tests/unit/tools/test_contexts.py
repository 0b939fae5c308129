"""The context types, pinned to the page that specifies them, row by row."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from memory.prompt.components import COMPONENTS, DATA, PLACEHOLDERS, STATIC
from memory.records.records import Event
from memory.records.tick import PatternState
from memory.settings import Settings
from memory.text.templates import check_template
from memory.text.tokens import approximate_tokens
from tools.policy import (
    CONTEXTS,
    REFLECT,
    ContextConfig,
    context_type_for,
    continued,
    select_execution_pattern,
)
from tools.registry import BUILT_IN, tools_for

FULL = [0, 1000, 1500, 1750, 2000, 3000, 4000, 4500, 5000, 6000, 7000]
REFLECTION_TOOLS = ["noop", "add_journal_entry", "review_journal"]
SLEEP_TOOLS = [
    "noop",
    "add_journal_entry",
    "review_journal",
    "recall_memories",
    "store_memory",
]
PRE_COMPACTION_TOOLS = ["noop", "add_journal_entry", "update_entity_observation"]

SUMMARY: dict[str, tuple[list[int], list[str] | None, int]] = {
    # context: (components, tools, max iterations)
    "tick_event": (FULL, None, 5),
    "tick_autonomous": (FULL, None, 5),
    "reflection": ([0, 6000, 7000], REFLECTION_TOOLS, 3),
    "reflection_cont": ([0, 7000], REFLECTION_TOOLS, 2),
    "sleep_consolidate": ([0, 2000], SLEEP_TOOLS, 10),
    "goal_decompose": ([0, 4000, 6000], [], 1),
    "pre_compaction": ([0, 5000, 6000, 7000], PRE_COMPACTION_TOOLS, 5),
}
# Section 3, "Layer 2: Context Configuration".
LAYER_2: dict[str, tuple[str, bool, bool]] = {
    # context: (execution_mode, allows_multi_tool, allows_sub_agents)
    "tick_event": ("react_loop", True, True),
    "reflection": ("react_loop", True, False),
    "sleep_consolidate": ("react_loop", True, False),
    "goal_decompose": ("single_action", False, False),
}
# Section 5, "Component Overrides".
OVERRIDES = {"reflection": {"system_prompt"}}


def on_the_page(context: str) -> dict[str, Any]:
    """The cells that the page gives of a context, by field."""
    components, tools, iterations = SUMMARY[context]
    cells: dict[str, Any] = {
        "enabled_components": components,
        "tool_filter": tools,
        "max_iterations": iterations,
    }
    if context in LAYER_2:
        mode, multi, agents = LAYER_2[context]
        cells |= {
            "execution_mode": mode,
            "allows_multi_tool": multi,
            "allows_sub_agents": agents,
        }
    return cells


@pytest.mark.parametrize("context", SUMMARY)
def test_a_row_of_the_table_is_as_the_page_gives_it(context: str) -> None:
    config = CONTEXTS[context]
    assert config.context_type == context
    assert {name: getattr(config, name) for name in on_the_page(context)} == on_the_page(context)
    assert set(config.component_overrides) >= OVERRIDES.get(context, set())


def test_the_table_holds_the_seven_contexts_and_no_others() -> None:
    assert list(CONTEXTS) == list(SUMMARY)


def test_cells_that_the_page_leaves_open_are_as_decided() -> None:
    for config in CONTEXTS.values():
        assert (config.terminal_ends_loop, config.dangerous_requires_confirm) == (True, False)
        assert (config.allowed_tool_categories, config.token_budget) == (None, None)
    modes = {name: config.execution_mode for name, config in CONTEXTS.items()}
    assert modes["tick_autonomous"] == "plan_execute"
    assert (modes["reflection_cont"], modes["pre_compaction"]) == ("react_loop", "react_loop")


def test_the_composition_example_of_the_page() -> None:
    static = Settings(multi_action_enabled=True, max_iterations_per_tick=5)
    pattern = select_execution_pattern(static, CONTEXTS["reflection"])
    assert (pattern["mode"], pattern["max_iterations"]) == ("react_loop", 3)
    assert pattern["source_layers"]["mode"] == "context"
    assert pattern["source_layers"]["max_iterations"] == "context"
    assert pattern["source_layers"]["multi_tool_enabled"] == "allowed"


def test_a_context_config_has_the_fields_of_the_page() -> None:
    assert [field.name for field in fields(ContextConfig)] == [
        "context_type",
        "name",
        "description",
        "enabled_components",
        "component_overrides",
        "tool_filter",
        "token_budget",
        "execution_mode",
        "max_iterations",
        "allowed_tool_categories",
        "terminal_ends_loop",
        "dangerous_requires_confirm",
        "allows_multi_tool",
        "allows_sub_agents",
    ]


def test_a_context_config_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        CONTEXTS["tick_event"].max_iterations = 10  # type: ignore[misc]


def test_every_tool_and_component_that_a_context_names_exists() -> None:
    for config in CONTEXTS.values():
        assert set(config.tool_filter or ()) <= set(BUILT_IN)
        assert set(config.enabled_components) <= set(COMPONENTS)
        assert set(config.component_overrides) <= {one.key for one in STATIC}


def test_an_extraction_is_given_its_three_tools() -> None:
    config = CONTEXTS["pre_compaction"]
    pattern: PatternState = select_execution_pattern(Settings(), config)
    offered = {tool.name for tool in tools_for(config, pattern, ())}
    assert offered == set(PRE_COMPACTION_TOOLS)


def test_an_override_is_found_by_the_components_key() -> None:
    config = CONTEXTS["goal_decompose"]
    prompt = config.get_component_content_override("system_prompt")
    assert prompt is not None
    assert prompt.startswith("Break down this goal into 3-7 actionable subtasks")
    assert config.get_component_content_override("goals") is None
    assert CONTEXTS["tick_event"].get_component_content_override("system_prompt") is None


def test_an_override_that_is_no_dict_counts_as_none() -> None:
    config = ContextConfig(
        context_type="odd",
        name="Odd",
        description="",
        enabled_components=[0],
        component_overrides={"system_prompt": "text"},
    )
    assert config.get_component_content_override("system_prompt") is None


def test_every_override_is_a_template_that_its_component_can_fill() -> None:
    for config in CONTEXTS.values():
        for key in config.component_overrides:
            text = config.get_component_content_override(key) or ""
            check_template(text, [*PLACEHOLDERS, *DATA[key]], config.context_type)


@pytest.mark.parametrize(
    ("context_type", "words"),
    [
        (
            "sleep_consolidate",
            ["third person", "source_ids", "weekday and date", "noop", "All of this is data"],
        ),
        ("sleep_consolidate", ["one thing", "Nothing about the assistant", "their claim"]),
        (
            "pre_compaction",
            ["add_journal_entry", "noop", "third person", "update_entity_observation"],
        ),
        (
            "reflection",
            [
                "You are an AI assistant performing periodic self-reflection",
                "Review your recent performance and journal entries",
                "1. What patterns am I observing in my work?",
                "2. What strategies are working well?",
                "3. What mistakes am I repeating?",
                "4. What should I do differently?",
                "Use the journal tools to record your insights",
                "tagged `self`",
            ],
        ),
    ],
)
def test_the_prompts_say_what_the_design_asks_of_them(context_type: str, words: list[str]) -> None:
    prompt = CONTEXTS[context_type].get_component_content_override("system_prompt") or ""
    flat = " ".join(prompt.split())
    assert [word for word in words if word not in flat] == []


def test_a_reflection_goes_on_under_the_same_system_prompt() -> None:
    """Else the beginning of its prompt would change after the first tool."""
    for name in ("reflection", "reflection_cont"):
        assert CONTEXTS[name].get_component_content_override("system_prompt") == REFLECT


def test_the_default_prompt_is_compact() -> None:
    assert approximate_tokens(str(COMPONENTS[0].content)) <= 500


def event(**more: Any) -> Event:
    made: Any = {
        "id": "e1",
        "at": "2026-03-02T09:00:00+00:00",
        "sender": "Ada",
        "text": "[reflection] Think.",
        "channel": None,
        "addressed": True,
    }
    found: Event = made | more
    return found


def test_the_context_of_a_tick_follows_from_its_event() -> None:
    assert context_type_for(None) == "tick_autonomous"
    assert context_type_for(event(kind="reflection")) == "reflection"
    assert context_type_for(event(kind="chat")) == "tick_event"
    # What a stranger writes is never taken for the product's own event.
    assert context_type_for(event()) == "tick_event"


def test_only_a_reflection_goes_on_in_another_context() -> None:
    after = {name: continued(name) for name in CONTEXTS}
    assert after.pop("reflection") == "reflection_cont"
    assert all(name == now for name, now in after.items())
