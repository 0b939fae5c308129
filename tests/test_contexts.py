"""The context types and the prompt components, as architecture-context-system gives them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

from memory.components import COMPONENTS, STATIC
from tools.contexts import CONTEXTS, ContextConfig
from tools.registry import BUILT_IN

FULL = [0, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 7000]

ROWS = {
    # context: components, tools, mode, iterations, multi-tool, sub-agents
    "tick_event": (FULL, None, "react_loop", 5, True, True),
    "tick_autonomous": (FULL, None, "react_loop", 5, True, True),
    "goal_decompose": ([0, 4000, 6000], [], "single_action", 1, False, False),
    "sleep_consolidate": (
        [0, 2000],
        ["noop", "add_journal_entry", "review_journal", "recall_memories", "store_memory"],
        "react_loop",
        10,
        True,
        False,
    ),
    "pre_compaction": (
        [0, 5000, 6000, 7000],
        ["noop", "add_journal_entry"],
        "react_loop",
        5,
        True,
        False,
    ),
}


@pytest.mark.parametrize("context_type", ROWS)
def test_a_context_is_as_the_page_gives_it(context_type: str) -> None:
    config = CONTEXTS[context_type]
    assert config.context_type == context_type
    assert ROWS[context_type] == (
        config.enabled_components,
        config.tool_filter,
        config.execution_mode,
        config.max_iterations,
        config.allows_multi_tool,
        config.allows_sub_agents,
    )


def test_the_table_holds_the_contexts_in_use_and_no_others() -> None:
    assert set(CONTEXTS) == set(ROWS)


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


@pytest.mark.parametrize(
    ("context_type", "words"),
    [
        (
            "sleep_consolidate",
            ["third person", "source_ids", "absolute dates", "noop", "data, not"],
        ),
        ("sleep_consolidate", ["One fact an item", "Never the assistant's own"]),
        ("pre_compaction", ["add_journal_entry", "noop", "third person"]),
        ("tick_autonomous", ["noop", "decompose_goal"]),
    ],
)
def test_the_prompts_say_what_the_design_asks_of_them(context_type: str, words: list[str]) -> None:
    prompt = CONTEXTS[context_type].get_component_content_override("system_prompt") or ""
    flat = " ".join(prompt.split())
    assert [word for word in words if word not in flat] == []


def test_the_nine_components_stand_in_id_order_with_their_keys_and_roles() -> None:
    assert [(one.id, one.key, one.role) for one in STATIC] == [
        (0, "system_prompt", "system"),
        (1000, "character_context", "system"),
        (1500, "entity_context", "system"),
        (2000, "semantic_memories", "system"),
        (3000, "context_buffer", "system"),
        (4000, "goals", "system"),
        (5000, "conversation_history", "mixed"),
        (6000, "pending_event", "user"),
        (7000, "tool_result", "tool"),
    ]
    assert all(one.is_static and one.enabled and one.name and one.description for one in STATIC)
    assert [COMPONENTS[one.id] for one in STATIC] == list(STATIC)
