"""get_system_status: every field of the page, from live state."""

import json
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from memory.messages.convert import EVENT_KEY
from memory.settings import Settings
from tests.support.agents import opened, said
from tests.support.clock import Clock
from tests.support.scripted import call, calls, scripted
from tests.support.tool_calls import NOW, Bench, tick_state


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
    assert 200 <= used <= 400
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
            "recommended_action": "Proceed normally",
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


async def test_the_status_warns_of_a_full_context() -> None:
    messages = [HumanMessage("y" * 4_800)]
    bench = Bench(state=tick_state(messages=messages), settings=Settings(max_context_tokens=1_200))
    result = (await bench.call("get_system_status")).result
    assert result["token_advisory"]["recommended_action"] == "Respond immediately"
    assert result["token_usage"]["available"] == 0


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


async def test_after_a_question_only_calls_without_an_answer_are_pending() -> None:
    """The calls before this one are answered already, and their answers part of the history."""
    names = ("noop", "get_system_status", "list_projects")
    asked = [{"name": name, "args": {}, "id": f"call-{name}"} for name in names]
    mark = {EVENT_KEY: {"tick": 42}}
    answered = ToolMessage("{}", tool_call_id="call-noop", name="noop", additional_kwargs=mark)
    messages = [HumanMessage("go on"), AIMessage("", tool_calls=asked), answered]
    result = (await Bench(state=tick_state(messages=messages)).call("get_system_status")).result
    assert result["chain_state"]["pending_tools"] == ["list_projects"]
    assert result["session_metrics"]["total_tool_calls"] == 0


def statuses(messages: list[Any]) -> list[dict[str, Any]]:
    answers = (m for m in messages if isinstance(m, ToolMessage) and m.name == "get_system_status")
    return [json.loads(str(answer.content)) for answer in answers]


async def test_each_call_of_a_tick_sees_what_the_calls_before_it_did(
    tmp_path: Path, clock: Clock
) -> None:
    look = ("get_system_status", dict[str, Any]())
    model = scripted(
        calls(("noop", {}), ("swap_project", {"project_key": "castle"}), look, look, ("noop", {})),
        call("get_system_status"),
        "Done.",
        call("get_system_status"),
        "Done.",
    )
    async with opened(tmp_path, model, clock) as agent:
        await agent.ainvoke(said("How are you doing?"))
        await agent.ainvoke(said("And now?"))
        seen = statuses((await agent.aget_state()).values["messages"])
    loops = [one["loop_state"] for one in seen]
    assert [one["tool_count_this_cycle"] for one in loops] == [2, 3, 5, 0]
    assert loops[1]["tools_this_cycle"] == ["noop", "swap_project", "get_system_status"]
    assert [one["iteration"] for one in loops] == [1, 1, 2, 1]
    metrics = [one["session_metrics"] for one in seen]
    assert [one["total_tool_calls"] for one in metrics] == [2, 3, 5, 6]
    assert [one["successful_calls"] for one in metrics] == [1, 2, 4, 5]
    assert [one["failed_calls"] for one in metrics] == [1, 1, 1, 1]
    chains = [one["chain_state"] for one in seen]
    assert [one["chain_depth"] for one in chains] == [0, 0, 1, 0]
    assert [one["pending_tools"] for one in chains] == [
        ["get_system_status", "noop"],
        ["noop"],
        [],
        [],
    ]
    used = [one["token_usage"]["estimated_used"] for one in seen]
    assert used[0] < used[1] < used[2]
