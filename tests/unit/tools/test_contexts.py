"""The context types, pinned to the page that specifies them, row by row."""

from typing import Any, cast

from memory.prompt.components import COMPONENTS, DATA, PLACEHOLDERS, STATIC, check_template
from memory.records.records import Event
from tests.support.tool_calls import EVENT
from tools.policy import CONTEXTS, REFLECT, ContextConfig, context_type_for, continued
from tools.registry import BUILT_IN

FULL = [0, 1000, 1500, 1750, 2000, 3000, 4000, 4500, 5000, 6000, 7000]
REFLECTION_TOOLS = ["noop", "add_journal_entry", "review_journal"]
SLEEP_TOOLS = ["noop", "add_journal_entry", "review_journal", "recall_memories", "store_memory"]
PRE_COMPACTION_TOOLS = ["noop", "add_journal_entry", "update_entity_observation"]

TABLE: dict[str, tuple[list[int], list[str] | None, str, int, bool, bool]] = {
    # context: (components, tools, mode, max iterations, several tools, sub-agents)
    "tick_event": (FULL, None, "react_loop", 5, True, True),
    "tick_autonomous": (FULL, None, "plan_execute", 5, True, True),
    "reflection": ([0, 6000, 7000], REFLECTION_TOOLS, "react_loop", 3, True, False),
    "reflection_cont": ([0, 7000], REFLECTION_TOOLS, "react_loop", 2, True, False),
    "sleep_consolidate": ([0, 2000], SLEEP_TOOLS, "react_loop", 10, True, False),
    "goal_decompose": ([0, 4000, 6000], [], "single_action", 1, False, False),
    "pre_compaction": ([0, 5000, 6000, 7000], PRE_COMPACTION_TOOLS, "react_loop", 5, True, False),
}
# Section 3, "Layer 2: Context Configuration".
# Section 5, "Component Overrides".


def test_the_contexts_are_those_of_the_specification() -> None:
    assert {
        name: (
            one.enabled_components,
            one.tool_filter,
            one.execution_mode,
            one.max_iterations,
            one.allows_multi_tool,
            one.allows_sub_agents,
        )
        for name, one in CONTEXTS.items()
    } == TABLE
    for config in CONTEXTS.values():
        assert (config.terminal_ends_loop, config.dangerous_requires_confirm) == (True, False)
        assert (config.allowed_tool_categories, config.token_budget) == (None, None)


def test_every_tool_and_component_that_a_context_names_exists() -> None:
    for config in CONTEXTS.values():
        assert set(config.tool_filter or ()) <= set(BUILT_IN)
        assert set(config.enabled_components) <= set(COMPONENTS)
        assert set(config.component_overrides) <= {one.key for one in STATIC}


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


def test_a_reflection_goes_on_under_the_same_system_prompt() -> None:
    """Else the beginning of its prompt would change after the first tool."""
    for name in ("reflection", "reflection_cont"):
        assert CONTEXTS[name].get_component_content_override("system_prompt") == REFLECT


def event(**more: Any) -> Event:
    return cast(Event, {**EVENT, "text": "[reflection] Think.", **more})


def test_the_context_of_a_tick_follows_from_its_event() -> None:
    assert context_type_for(None) == "tick_autonomous"
    assert context_type_for(event(kind="reflection")) == "reflection"
    assert context_type_for(event(kind="chat")) == "tick_event"
    # What a stranger writes is never taken for the product's own event.
    assert context_type_for(event()) == "tick_event"


def test_only_a_reflection_continues_in_another_context() -> None:
    after = {name: continued(name) for name in CONTEXTS}
    assert after.pop("reflection") == "reflection_cont"
    assert all(name == now for name, now in after.items())
