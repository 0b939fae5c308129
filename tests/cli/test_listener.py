"""What a listener is told of a run as it happens, and what it is not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graph.api import AsyncAgent
from graph.following import Listener, follow
from graph.use_cases.approvals import decide
from memory.night.steps import NightEvent
from memory.records.tick import ToolOutcome
from memory.settings import Settings
from tests.support import launching
from tests.support.agents import night_model, opened, said
from tests.support.clock import Clock
from tests.support.scripted import call, calls, scripted


class Ear(Listener):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_words(self, text: str, message_id: str) -> None:
        self.heard.append(f"said{'' if text.startswith(' ') else ' '}{text}")

    def on_work(self, tools: list[str]) -> None:
        self.heard.append(f"at {', '.join(tools)}")

    def on_outcomes(self, outcomes: list[ToolOutcome]) -> None:
        self.heard += [f"{'ran' if one['ok'] else 'failed'} {one['name']}" for one in outcomes]

    def on_night(self, event: NightEvent) -> None:
        self.heard.append(f"night {event['event']} {event['step']}")


async def heard(agent: AsyncAgent, given: dict[str, Any]) -> list[str]:
    ear = Ear()
    await follow(agent.context, given, ear)
    return ear.heard


async def test_words_and_tools_come_in_the_order_of_the_tick(tmp_path: Path, clock: Clock) -> None:
    first = calls(("add_goal", {"description": "x"}), ("noop", {}), text="I will.")
    async with opened(tmp_path, scripted(first, "Done now."), clock) as agent:
        told = await heard(agent, said("Please"))
    assert told == [
        *("said I", "said will.", "at add_goal, noop", "ran add_goal", "ran noop"),
        *("said Done", "said now."),
    ]


async def test_a_look_at_its_own_work_is_only_announced(tmp_path: Path, clock: Clock) -> None:
    model = scripted(
        "Hello.",
        calls(("review_journal", {}), text="Let me see."),
        call("add_journal_entry", content="I was slow today"),
        "I should be quicker.",
        "Good night.",
    )
    settings = Settings(reflection_interval=1)
    async with opened(tmp_path, model, clock, settings=settings) as agent:
        told = await heard(agent, said("Hi"))
        agent.context = replace(agent.context, settings=Settings(reflection_interval=0))
        after = await heard(agent, said("Bye"))
    assert told == ["said Hello.", "at looking back"]
    assert after == ["said Good", "said night."]
    assert len(model.calls) == 5


async def test_a_resumed_tick_tells_only_its_rest(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches = launching.set_up(monkeypatch, tmp_path)
    first = calls(("noop", {}), ("launch", {"target": "the moon"}), ("noop", {}), text="Well.")
    model = scripted(first, "Flies.")
    async with opened(tmp_path / "data", model, clock) as agent:
        before = await heard(agent, said("Launch it"))
        (parked,) = (await agent.aget_state()).values["parked"]
        await decide(agent.context, parked["question"]["id"], "yes")
        after = await heard(agent, {})
    assert before == ["said Well.", "at noop, launch, noop", "ran noop"]
    assert after == ["ran launch", "ran noop", "said Flies."]
    assert launches.done == ["the moon"]


async def test_a_tool_with_an_open_question_is_not_announced(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    launching.set_up(monkeypatch, tmp_path)
    async with opened(tmp_path / "data", scripted(call("launch", target="Mars")), clock) as agent:
        assert await heard(agent, said("Launch it")) == []


async def test_planning_is_announced(tmp_path: Path, clock: Clock) -> None:
    large = "Plan and hold the harvest festival: find a field, order tables, hire a band, invite"
    steps = ["Find a field", "Order tables", "Hire a band"]
    model = scripted(
        call("add_goal", description=large), "Noted.", call("Subtasks", subtasks=steps), "Planned."
    )
    async with opened(tmp_path, model, clock) as agent:
        await agent.ainvoke(said("A festival"))
        told = await heard(agent, {"request": "tick"})
    assert told == ["at planning", "ran decompose_goal", "said Planned."]


async def test_delegating_is_announced_without_the_words_of_sub_agents(
    tmp_path: Path, clock: Clock
) -> None:
    two = calls(("delegate_task", {"task": "Oak?"}), ("delegate_task", {"task": "Ash?"}))
    model = scripted(two, call("noop"), "It is oak.", "It is ash.", "Both.")
    settings = Settings(sub_agents_enabled=True)
    async with opened(tmp_path, model, clock, settings=settings) as agent:
        told = await heard(agent, said("Which wood?"))
    assert told == [
        *("at delegating 2 tasks", "ran delegate_task", "ran delegate_task", "said Both.")
    ]


async def test_a_night_is_told_step_by_step_without_words(tmp_path: Path, clock: Clock) -> None:
    async with opened(tmp_path, scripted("Hello.", otherwise=night_model), clock) as agent:
        await agent.ainvoke(said("Hi"))
        told = await heard(agent, {"request": "sleep"})
    assert told == [
        *("night begin score_importance", "night progress score_importance"),
        *("night end score_importance", "night begin consolidate"),
        *("night progress consolidate", "night end consolidate"),
        *("night begin apply_operations", "night end apply_operations"),
        *("night begin dream", "night progress dream", "night end dream"),
        *("night begin prune_links", "night progress prune_links", "night end prune_links"),
        *(f"night {event} consolidate_entities" for event in ("begin", "progress", "end")),
        *(f"night {event} write_pages" for event in ("begin", "progress", "end")),
        *("night begin prune", "night progress prune", "night end prune"),
        *("night begin weigh_night", "night end weigh_night"),
        *("night begin apply_operations", "night end apply_operations"),
        *("night begin record_night",),
    ]
