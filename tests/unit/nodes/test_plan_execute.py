"""plan_execute: a large goal is broken down into steps, which are then worked on."""

import inspect
import json
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from graph.api import AsyncAgent
from memory.errors import ContextOverflow, ModelError
from memory.messages.convert import EVENT_KEY
from memory.records.records import Goal
from memory.settings import Settings
from nodes.tick.assess_task import draft_plan
from tests.support.agents import Opening, said
from tests.support.scripted import ScriptedChatModel, call, scripted
from tests.support.tool_calls import goal_of

LARGE = "Plan and hold the harvest festival: find a field, order tables, hire a band, print posters"
STEPS = {"subtasks": ["Find a field", "Hire a band", "Print the posters"]}


def goal(description: str = LARGE, **changes: Any) -> dict[str, Goal]:
    made = {"description": description, "priority": "medium", **changes}
    return {"goal_1_0": goal_of(created="2026-03-01T09:00:00+00:00", **made)}


async def ticked(agent: AsyncAgent, goals: dict[str, Goal]) -> dict[str, Any]:
    await agent.aupdate_state(None, {"goals": goals, "goal_index": 1})
    out = await agent.ainvoke({"request": "tick"})
    assert out["report"]["failures"] == []
    (tick,) = out["report"]["ticks"]
    assert tick["context_type"] == "tick_autonomous"
    return dict(tick)


def names(tick: dict[str, Any]) -> list[tuple[str, bool]]:
    """The tools of a tick, in order, and whether each answered well."""
    return [(one["name"], one["ok"]) for one in tick["tools"]]


def answers(model: ScriptedChatModel) -> list[str]:
    return [str(one.text) for one in model.calls[-1].messages if isinstance(one, ToolMessage)]


async def test_a_large_goal_gets_steps_and_the_tick_goes_on_with_them(opening: Opening) -> None:
    model = scripted(
        call("Subtasks", **STEPS),
        call("update_goal", goal_id="goal_1_1", status="completed"),
        call("update_goal", goal_id="goal_1_2", progress=50),
        "The field is found; the band is next.",
    )
    async with opening(model) as agent:
        tick = await ticked(agent, goal())
        goals = (await agent.aget_state()).values["goals"]
    assert names(tick) == [("decompose_goal", True), ("update_goal", True), ("update_goal", True)]
    assert [call.tools == ["Subtasks"] for call in model.calls] == [True, False, False, False]
    assert [goals[f"goal_1_{n}"]["description"] for n in (1, 2, 3)] == STEPS["subtasks"]
    assert all(goals[f"goal_1_{n}"]["auto_generated"] for n in (1, 2, 3))
    assert (goals["goal_1_0"]["progress"], goals["goal_1_2"]["progress"]) == (50, 50)
    assert tick["pattern"]["mode"] == "plan_execute"
    assert tick["assessment"]["complexity"] == 5
    assert tick["llm_calls"] == 4


async def test_the_plan_is_a_call_like_any_other_and_costs_no_iteration(opening: Opening) -> None:
    model = scripted(call("Subtasks", **STEPS), call("noop"), call("noop"), "So far.")
    settings = Settings(max_iterations_per_tick=2)
    async with opening(model, settings=settings) as agent:
        await ticked(agent, goal())
        messages = (await agent.aget_state()).values["messages"]
    assert [bool(call.tools) for call in model.calls] == [True, True, True, False]
    asked = next(one for one in messages if isinstance(one, AIMessage))
    assert (asked.id, asked.additional_kwargs[EVENT_KEY]["tick"]) == ("~plan_1", 1)
    (wanted,) = asked.tool_calls
    assert (wanted["name"], wanted["args"]["goal_id"]) == ("decompose_goal", "goal_1_0")
    assert wanted["args"]["reasoning"].startswith("A plan first")
    answered = [one for one in messages if isinstance(one, ToolMessage)]
    assert answered[0].tool_call_id == wanted["id"] == "call_plan_1"
    assert "goal_1_3" in str(model.calls[1].messages[-1].text)


async def test_the_plan_goes_on_with_the_tools() -> None:
    loop: Any = {"next": "act", "iteration": 0, "llm_calls": 0}
    update = await inspect.unwrap(draft_plan)({"goals": goal(), "tick": 7, "loop": loop})
    assert update["loop"] == {**loop, "next": "use_tools"}
    assert update["messages"][0].tool_calls[0]["id"] == "call_plan_7"


async def test_the_steps_are_worked_on_in_later_ticks_and_not_planned_again(
    opening: Opening,
) -> None:
    large = {"subtasks": [LARGE, "Hire a band", "Print the posters"]}
    model = scripted(call("Subtasks", **large), "The steps stand.", "Step one is in hand.")
    async with opening(model) as agent:
        first = await ticked(agent, goal())
        out = await agent.ainvoke({"request": "tick"})
    (second,) = out["report"]["ticks"]
    assert (names(first), names(second)) == ([("decompose_goal", True)], [])
    assert second["pattern"]["mode"] == "react_loop"
    assert model.remaining == 0


async def test_of_several_goals_the_most_important_one_is_planned(opening: Opening) -> None:
    first, second = goal("Write a book")["goal_1_0"], goal(priority="high")["goal_1_0"]
    model = scripted(call("Subtasks", **STEPS), "The steps stand.")
    async with opening(model) as agent:
        await ticked(agent, {"goal_1_0": first, "goal_1_1": {**second, "id": "goal_1_1"}})
        goals = (await agent.aget_state()).values["goals"]
    assert len(goals["goal_1_1"]["subtask_ids"]) == 3
    assert goals["goal_1_0"]["subtask_ids"] == []


async def test_a_plan_that_fails_leaves_the_tick_and_the_goal_as_they_are(opening: Opening) -> None:
    model = scripted(ModelError("no answer"), "I begin with the field.")
    async with opening(model) as agent:
        tick = await ticked(agent, goal())
        goals = (await agent.aget_state()).values["goals"]
    assert names(tick) == [("decompose_goal", False)]
    assert tick["reply"] == "I begin with the field."
    assert "The model gave no subtasks" in answers(model)[0]
    assert list(goals) == ["goal_1_0"]


async def test_after_an_overflow_no_second_plan_is_made_in_the_tick(opening: Opening) -> None:
    model = scripted(
        ModelError("no answer"),
        ContextOverflow("too long"),
        otherwise=lambda messages, tools: "I begin with the field.",
    )
    async with opening(model) as agent:
        tick = await ticked(agent, goal())
        messages = (await agent.aget_state()).values["messages"]
    assert names(tick) == [("decompose_goal", False)]
    assert [call.tools for call in model.calls].count(["Subtasks"]) == 1
    assert tick["reply"] == "I begin with the field."
    planned = [one for one in messages if isinstance(one, AIMessage) and one.tool_calls]
    answered = [one for one in messages if isinstance(one, ToolMessage)]
    assert len(planned) == len(answered)


async def test_thanks_get_one_tool_at_most_and_then_the_answer(opening: Opening) -> None:
    two = AIMessage(
        "",
        tool_calls=[
            {"name": "noop", "args": {}, "id": "a", "type": "tool_call"},
            {"name": "add_goal", "args": {"description": "x"}, "id": "b", "type": "tool_call"},
        ],
    )
    model = scripted(two, "You are welcome.")
    async with opening(model) as agent:
        out = await agent.ainvoke(said("Thank you, see you tomorrow!"))
        goals = (await agent.aget_state()).values["goals"]
    (tick,) = out["report"]["ticks"]
    assert names(tick) == [("noop", True), ("add_goal", False)]
    assert model.calls[1].tools == []
    assert goals == {}
    assert tick["assessment"]["event_class"] == "communication"
    assert json.loads(json.dumps(tick["assessment"])) == tick["assessment"]
