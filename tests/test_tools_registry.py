"""What the model is shown of the tools, and which of them a call is given."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from memory.errors import InputError
from memory.settings import Settings
from tools.contexts import CONTEXTS
from tools.pattern import select_execution_pattern
from tools.registry import BUILT_IN, ToolCategory, category_of, tools_for

ARGUMENTS = {
    # tool: (required, optional beside reasoning)
    "create_project": ({"project_key", "summary"}, {"initial_context"}),
    "list_projects": (set(), set()),
    "swap_project": ({"project_key"}, {"current_project_update"}),
    "update_project": (set(), {"context_update", "status"}),
    "add_goal": ({"description"}, {"priority", "parent_id"}),
    "update_goal": ({"goal_id"}, {"status", "progress"}),
    "decompose_goal": ({"goal_id"}, set()),
    "add_session_memory": ({"memory_type", "content"}, set()),
    "compact_session_memory": ({"new_facts", "new_patterns", "summary"}, set()),
    "add_journal_entry": ({"content"}, {"importance", "tags", "source_entity"}),
    "review_journal": (set(), {"query", "tags", "limit"}),
    "recall_memories": ({"query"}, {"limit", "include_superseded"}),
    "store_memory": ({"facts"}, set()),
    "get_system_status": (set(), set()),
    "noop": (set(), set()),
}


def schema(name: str) -> dict[str, Any]:
    shown: dict[str, Any] = convert_to_openai_tool(BUILT_IN[name][0])["function"]["parameters"]
    return shown


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_tool_shows_the_model_its_arguments_and_nothing_else(name: str) -> None:
    required, optional = ARGUMENTS[name]
    shown = schema(name)
    assert set(shown["properties"]) == required | optional | {"reasoning"}
    assert set(shown.get("required", ())) == required
    assert BUILT_IN[name][0].description


def test_these_are_all_the_tools() -> None:
    assert set(BUILT_IN) == set(ARGUMENTS)


def test_defaults_and_choices_are_those_of_the_contract() -> None:
    assert schema("review_journal")["properties"]["limit"]["default"] == 10
    assert schema("recall_memories")["properties"]["limit"]["default"] == 10
    assert schema("recall_memories")["properties"]["include_superseded"]["default"] is False
    priority = schema("add_goal")["properties"]["priority"]
    assert (priority["default"], set(priority["enum"])) == ("medium", {"high", "medium", "low"})
    assert set(schema("add_session_memory")["properties"]["memory_type"]["enum"]) == {
        "fact",
        "pattern",
    }
    fact = schema("store_memory")["properties"]["facts"]["items"]
    assert set(fact["properties"]) == {"text", "source_ids", "speaker", "entities"}
    assert fact["required"] == ["text"]


def test_categories_are_those_of_the_pages() -> None:
    needing_time = {"decompose_goal", "store_memory"}
    for name, (_, category) in BUILT_IN.items():
        expected = "async_required" if name in needing_time else "safe_chain"
        assert category == expected, name


def names_for(context_type: str, *extra: Any, **changes: Any) -> set[str]:
    context = CONTEXTS[context_type]
    pattern = select_execution_pattern(Settings(), context)
    return {one.name for one in tools_for(context, {**pattern, **changes}, extra)}  # type: ignore[typeddict-item]


def test_each_context_gets_the_tools_that_its_filter_names() -> None:
    assert names_for("tick_event") == names_for("tick_autonomous") == set(BUILT_IN)
    assert names_for("goal_decompose") == set()
    assert names_for("pre_compaction") == {"noop", "add_journal_entry"}
    assert names_for("sleep_consolidate") == {
        "noop",
        "add_journal_entry",
        "review_journal",
        "recall_memories",
        "store_memory",
    }


def test_the_pattern_narrows_by_category() -> None:
    names = names_for("tick_event", allowed_categories=["async_required"])
    assert names == {"decompose_goal", "store_memory"}


@tool
def ring_bell(times: int) -> str:
    """Ring the bell."""
    return "ding" * times


def test_a_users_tool_joins_the_ticks_and_not_the_filtered_contexts() -> None:
    assert "ring_bell" in names_for("tick_event", ring_bell)
    assert "ring_bell" not in names_for("sleep_consolidate", ring_bell)
    assert category_of(ring_bell) is ToolCategory.SAFE_CHAIN


def test_a_users_tool_names_its_category_in_its_metadata() -> None:
    loud = ring_bell.model_copy(update={"metadata": {"category": "terminal"}})
    assert category_of(loud) is ToolCategory.TERMINAL
    assert "ring_bell" not in names_for("tick_event", loud, allowed_categories=["safe_chain"])
    odd = ring_bell.model_copy(update={"metadata": {"category": "harmless"}})
    with pytest.raises(InputError, match=r"ring_bell.*harmless"):
        category_of(odd)


def test_a_users_tool_cannot_take_the_place_of_a_built_in_one() -> None:
    with pytest.raises(InputError, match="noop"):
        names_for("tick_event", ring_bell.model_copy(update={"name": "noop"}))
