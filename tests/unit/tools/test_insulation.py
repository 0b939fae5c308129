"""Which tools a sub-agent is given, and the tool that asks for one."""

from __future__ import annotations

from typing import Any, cast

import pytest
from langchain_core.tools import tool

from tools.builtin.communication import delegate_task
from tools.delegation import Insulation, tools_for_delegate
from tools.registry import BUILT_IN, ToolCategory, registered

MODES: tuple[Insulation, ...] = ("none", "orchestrator", "delegate")


@tool
async def look_up(word: str) -> str:
    """Look a word up."""
    return word


@tool
async def paint(wall: str) -> str:
    """Paint a wall."""
    return wall


def test_a_sub_agent_is_given_reading_tools_only_and_memory_only_without_insulation() -> None:
    built_in = [known for known, _ in BUILT_IN.values()]
    mine = [
        look_up,
        registered(paint, "safe_chain", always_ask=True),
        *(registered(paint, one) for one in ToolCategory if one != "safe_chain"),
    ]
    given = {
        mode: [one.name for one in tools_for_delegate([*built_in, *mine], mode)] for mode in MODES
    }
    assert sorted(given["none"]) == [
        "list_projects",
        "look_up",
        "recall_memories",
        "review_journal",
    ]
    assert given["orchestrator"] == given["delegate"] == ["look_up"]


def test_a_tool_that_the_requester_was_not_offered_is_not_given() -> None:
    assert tools_for_delegate([], "none") == []


async def test_delegate_task_is_never_run_as_a_tool() -> None:
    arguments = {"task": "x", "runtime": None}
    with pytest.raises(RuntimeError, match="carried out by the node delegate"):
        await cast(Any, delegate_task).coroutine(**arguments)


def test_delegate_task_asks_for_a_task_and_offers_context() -> None:
    schema = cast(Any, delegate_task.tool_call_schema).model_json_schema()
    assert sorted(schema["properties"]) == ["context", "task"]
    assert schema["required"] == ["task"]
