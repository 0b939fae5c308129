"""The agent at a glance: every field of the contract, and how a person sees it."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from rich.console import Console, RenderableType

from graph.cli.night_view import night_view
from graph.cli.status_view import goals_view, status_view
from graph.use_cases.status import prompt_tokens, status
from memory.messages.convert import valid_event
from memory.models.offline.model import OfflineChatModel
from memory.prompt.components import component
from memory.records.records import InboxItem
from memory.records.tick import NightReport
from memory.settings import Settings
from memory.state.schema import State, fresh_state
from tests.support.agents import Opening, said
from tests.support.commandline import circadian
from tests.support.homes import held
from tests.support.recalling import entry
from tests.support.tool_calls import goal_of


def plain(part: RenderableType, width: int = 100) -> str:
    """What a person reads, without colours."""
    stream = io.StringIO()
    Console(file=stream, width=width, markup=False, emoji=False, highlight=False).print(part)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


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


async def test_problems_of_the_prompt_are_listed(opening: Opening) -> None:
    settings = Settings(max_context_tokens=6_000, session_memory_tokens=20, project_tokens=20)
    async with opening(OfflineChatModel(), settings=settings) as agent:
        facts = ["The gate is locked at night, and the key lies under the blue pot."] * 3
        memory = {**fresh_state()["session_memory"], "key_facts": facts}
        await agent.aupdate_state(None, {"session_memory": memory})
        now = await status(agent.context)
    assert [one for one in now["prompt"]["components"] if one["at_budget"]] == [
        {
            "key": "character_context",
            "tokens": now["prompt"]["components"][1]["tokens"],
            "share": now["prompt"]["components"][1]["share"],
            "budget": 40,
            "at_budget": True,
        }
    ]
    first, second = now["prompt"]["problems"][:2]
    assert first.startswith("character_context fills its budget of 40 tokens")
    assert second.startswith("The tools' schemas take")


# For people


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


async def test_a_person_sees_projects_memory_inbox_and_the_stop(opening: Opening) -> None:
    async with opening(OfflineChatModel()) as agent:
        await agent.ainvoke(said("Start a project to build a shed in the garden"))
        await agent.ainvoke(said("Create a project fence: mend the old fence"))
        await agent.ainvoke(said("Remember that the gate is locked at night"))
        await agent.ainvoke({"request": "stop"})
        now = await status(agent.context)
    event = valid_event({"id": "e9", "at": "2026-03-02T09:00:00", "sender": "Ada", "text": "Hi"})
    item: InboxItem = {
        "event": event,
        "received_at": event["at"],
        "order": "1",
        "attempts": 3,
        "error": "it broke",
    }
    seen = plain(status_view(now, "default", [item]))
    both = plain(status_view(now, "default", [item, item]))
    assert seen.startswith(
        "default  awake  tick 3  EMERGENCY STOP (circadian clear-stop)\nContext "
    )
    assert "● fence (active)" in seen
    assert "○ build_shed_garden (paused)" in seen
    assert "• The gate is locked at night" in seen
    assert "3 journal entries (3 for the next night) · 0 facts" in seen
    assert 'set aside: e9, Ada "Hi": it broke' in seen
    assert "circadian retry puts it back" in seen
    assert "circadian retry puts them back" in both


def night(**more: Any) -> NightReport:
    made: Any = {
        "id": "night_20260502_220000",
        "dry_run": False,
        "started": "2026-05-02T22:00:00+00:00",
        "ended": "2026-05-02T22:01:00+00:00",
        "complete": True,
        "held": [],
        "steps": [],
        "operations": [],
        "errors": [],
    }
    found: NightReport = made | more
    return found


def test_a_long_list_of_facts_is_shortened() -> None:
    fact = {"text": "A fact", "speaker": None, "source_events": ["e1"], "source_entries": []}
    after = {**fact, "valid_from": "2026-05-02T08:00:00+00:00"}
    added: dict[str, Any] = {"kind": "add_fact", "before": None, "after": after}
    operations = [{"id": str(n), "target": str(n), **added} for n in range(15)]
    seen = plain(night_view(night(operations=operations)))
    assert "Learned 15 facts" in seen
    assert seen.count("• A fact (2 May 2026, e1)") == 12
    assert "and 3 more" in seen


def test_status_of_a_running_agent_does_not_wait(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The lock is another process's; the last checkpoint is shown."""
    circadian(capsys, "send", "Hello", "--data", tmp_path)
    with held(tmp_path):
        done = circadian(capsys, "status", "--data", tmp_path, "--json")
    assert done.document["tick"] == 1
