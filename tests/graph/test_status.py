"""The agent at a glance: every field of the contract, and how a person sees it."""

from dataclasses import replace

import pytest
from langchain_core.messages import HumanMessage

from graph.cli.status_view import goals_view
from graph.use_cases.status import prompt_tokens, status
from memory.models.offline.model import OfflineChatModel
from memory.prompt.components import component
from memory.settings import Settings
from memory.state.schema import State, fresh_state
from tests.support.agents import Opening, said
from tests.support.recalling import entry
from tests.support.screens import plain
from tests.support.tool_calls import goal_of


async def test_memory_counts_follow_a_day_and_a_night(opening: Opening) -> None:
    async with opening(OfflineChatModel()) as agent:
        await agent.ainvoke(said("I moved to Oslo in March"))
        await agent.ainvoke(said("Thank you!"))
        before = await status(agent.context)
        await agent.ainvoke({"request": "sleep"})
        after = await status(agent.context)
    assert before["memory"] == {"journal": 2, "pending": 2, "facts": 0, "entities": 1, "links": 0}
    assert after["memory"] == {"journal": 2, "pending": 0, "facts": 1, "entities": 1, "links": 1}
    assert after["mode"] == "sleep"


async def test_exempt_entries_do_not_add_to_cumulative_importance(opening: Opening) -> None:
    """Direct messages score 5; notes on the assistant itself add nothing."""
    async with opening(OfflineChatModel()) as agent:
        await agent.ainvoke(said("I moved to Oslo in March"))
        await agent.ainvoke(said("The roof leaks"))
        assert (await status(agent.context))["cumulative_importance"] == 10
        store, scope = agent.store, agent.scope
        note = entry("slow", importance=9, consolidation="exempt", tags=["self"])
        await store.aput(scope.namespace("journal", "20260302"), note["id"], note)
        assert (await status(agent.context))["cumulative_importance"] == 10


async def test_prompt_tokens_count_every_part_of_the_prompt(opening: Opening) -> None:
    rules = component(1, "rules", "word " * 400, token_budget=50)
    async with opening(OfflineChatModel()) as agent:
        resources = replace(agent.resources, components=(rules,))
    state: State = {**fresh_state(), "messages": []}
    empty = prompt_tokens(state, Settings(), agent.resources)
    state["messages"] = [HumanMessage("word " * 4000)]
    state["goals"] = {"goal_1_0": goal_of("goal_1_0", description="fence " * 500)}
    full = prompt_tokens(state, Settings(), resources)
    twice = prompt_tokens({**state, "calibration": 2.0}, Settings(), resources)
    cut = prompt_tokens(state, Settings(goals_tokens=100), resources)
    assert set(full) - set(empty) == {"rules", "goals"}
    assert 40 < full["rules"] < 80
    assert full["conversation_history"] > empty["conversation_history"] + 4_900
    assert full["goals"] > 700
    assert full["tools"] == empty["tools"] > 500
    assert twice["conversation_history"] == pytest.approx(2 * full["conversation_history"], abs=2)
    assert twice["goals"] == pytest.approx(2 * full["goals"], abs=2)
    assert cut["goals"] < 150


def test_goals_are_a_tree_with_progress_bars() -> None:
    goals = [
        goal_of("goal_1_0", progress=50),
        goal_of(
            "goal_1_1", parent_id="goal_1_0", description="Saw", progress=100, status="completed"
        ),
        goal_of("goal_1_2", parent_id="goal_1_0", description="Nail"),
        goal_of("goal_2_3", description="Paint", priority="low"),
    ]
    assert plain(goals_view(goals)).splitlines() == [
        "█████░░░░░  50 % Mend the fence  high, active, goal_1_0",
        "├── ██████████ 100 % Saw  high, completed, goal_1_1",
        "└── ░░░░░░░░░░   0 % Nail  high, active, goal_1_2",
        "░░░░░░░░░░   0 % Paint  low, active, goal_2_3",
    ]
