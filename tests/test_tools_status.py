"""get_system_status: every field of the page, from live state."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from memory.settings import Settings
from tests.tool_calls import NOW, Bench, tick_state


async def test_the_status_has_every_field_of_the_page() -> None:
    outcomes = [{"name": "inspect_location", "ok": True}, {"name": "recall_memories", "ok": True}]
    state = tick_state(
        messages=[HumanMessage("y" * 400)],
        metrics={
            "total_tool_calls": 47,
            "successful_calls": 45,
            "failed_calls": 2,
            "session_start": "2025-12-06T10:00:00Z",
        },
    )
    assert state["loop"] is not None
    state["loop"] = {**state["loop"], "iteration": 2, "tools": outcomes}  # type: ignore[typeddict-item]
    bench = Bench(state=state, settings=Settings(max_context_tokens=128_000))
    result = (await bench.call("get_system_status")).result
    used = result["token_usage"]["estimated_used"]
    assert 200 <= used <= 300
    assert result == {
        "success": True,
        "timestamp": NOW.isoformat(),
        "token_usage": {
            "estimated_used": used,
            "model_limit": 128_000,
            "available": 128_000 - used,
            "usage_percentage": 0.2,
        },
        "token_advisory": {
            "level": "normal",
            "message": "Sufficient context available",
            "threshold": 60,
        },
        "loop_state": {
            "iteration": 2,
            "max_iterations": 5,
            "tools_this_cycle": ["inspect_location", "recall_memories"],
            "tool_count_this_cycle": 2,
        },
        "session_metrics": {
            "total_tool_calls": 47,
            "successful_calls": 45,
            "failed_calls": 2,
            "session_start": "2025-12-06T10:00:00Z",
        },
        "chain_state": {"in_chain": True, "chain_depth": 1, "pending_tools": []},
    }


@pytest.mark.parametrize(
    ("characters", "level"), [(100, "normal"), (2_800, "warning"), (4_000, "critical")]
)
async def test_the_status_warns_as_the_context_fills(characters: int, level: str) -> None:
    messages = [HumanMessage("y" * characters)]
    bench = Bench(state=tick_state(messages=messages), settings=Settings(max_context_tokens=1_200))
    result = (await bench.call("get_system_status")).result
    assert result["token_advisory"]["level"] == level
    assert result["token_usage"]["available"] >= 0


async def test_the_status_counts_calibrated_tokens() -> None:
    plain = (await Bench().call("get_system_status")).result["token_usage"]["estimated_used"]
    doubled = Bench(state=tick_state(calibration=2.0))
    assert (await doubled.call("get_system_status")).result["token_usage"][
        "estimated_used"
    ] == 2 * plain


async def test_the_status_names_the_tools_that_the_same_answer_asked_for_after_it() -> None:
    names = ("noop", "get_system_status", "list_projects", "add_goal")
    calls = [{"name": name, "args": {}, "id": f"call-{name}"} for name in names]
    old = AIMessage("", tool_calls=[calls[1], calls[0]])
    messages = [old, HumanMessage("go on"), AIMessage("", tool_calls=calls)]
    result = (await Bench(state=tick_state(messages=messages)).call("get_system_status")).result
    assert result["chain_state"] == {
        "in_chain": False,
        "chain_depth": 0,
        "pending_tools": ["list_projects", "add_goal"],
    }
