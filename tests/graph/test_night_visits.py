"""Visits to the steps of a night: how many batches each visit has."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lives import live, made_up
from benchmarks.night import Clocked
from graph.api.async_agent import AsyncAgent
from memory.night import dream_work as nightwork
from memory.night import record as night
from memory.night import steps as night_steps
from memory.night.order import LEAST_CALLS
from memory.operations import apply
from memory.records.operations import observe_entity
from memory.records.profiles import Observation, entity_id
from memory.settings import Settings
from nodes.night.consolidate_entities import ENTITIES_A_CALL
from tests.support.agents import opened
from tests.support.clock import Clock
from tests.support.dreamers import dreamer

SMALL = Settings(
    score_batch_size=2,
    consolidate_batch_size=2,
    dream_batch_size=2,
    night_calls_per_100=1_000,
    reflection_threshold=10_000,
    min_observations=100,
)
LIVED = 12


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[AsyncAgent]:
    async with opened(tmp_path, Clocked(), Clock(), settings=SMALL) as made:
        await live(made, made_up(LIVED))
        yield made


async def visits(agent: AsyncAgent, monkeypatch: pytest.MonkeyPatch) -> tuple[int, dict[str, Any]]:
    """(how often the night was read, its report)."""
    read = []
    of = night.plans_of

    async def counted(*args: Any) -> Any:
        read.append(args)
        return await of(*args)

    monkeypatch.setattr(night, "plans_of", counted)
    report = (await agent.ainvoke({"request": "sleep"}))["report"]["night"]
    monkeypatch.undo()
    return len(read), report


@pytest.mark.parametrize(("a_batch", "most"), [(1, 12), (1_000, 30)])
async def test_the_longer_a_night_the_more_batches_a_visit_has(
    agent: AsyncAgent, monkeypatch: pytest.MonkeyPatch, a_batch: int, most: int
) -> None:
    monkeypatch.setattr(night_steps, "ITEMS_A_BATCH", a_batch)
    read, report = await visits(agent, monkeypatch)
    assert report["complete"]
    steps = {one["step"]: one for one in report["steps"]}
    for step in ("score_importance", "consolidate", "dream"):
        assert (steps[step]["done"], steps[step]["llm_calls"]) == (LIVED, LIVED // 2)
    assert most - 8 <= read <= most


async def known(agent: AsyncAgent, count: int) -> None:
    """Observe something of each of `count` people."""
    memory: Any = {"store": agent.store, "semantic": agent.resources.semantic, "scope": agent.scope}
    now = agent.resources.clock().isoformat()
    for number in range(count):
        seen: Observation = {
            "id": f"observation_{number:016}",
            "text": f"Has plot {number}.",
            "at": now,
            "speaker": "Ben",
            "trust": 0.9,
            "sources": [f"event-{number}"],
            "consolidated": False,
        }
        id_, name = entity_id(f"friend {number}"), f"Friend {number}"
        one = observe_entity(id_, name, seen, kept=50, now=now, reason="test")
        await apply.apply_operations([one], **memory)


@pytest.mark.parametrize(("a_batch", "visited"), [(1, 9), (1_000, 16)])
async def test_the_more_entities_the_more_batches_a_visit_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, a_batch: int, visited: int
) -> None:
    monkeypatch.setattr(night_steps, "ITEMS_A_BATCH", a_batch)
    settings = SMALL.model_copy(update={"min_observations": 1})
    people = LEAST_CALLS * ENTITIES_A_CALL
    of = nightwork.work_of

    async def with_one_gone(*args: Any) -> Any:
        work = await of(*args)
        return {**work, "entities": [*work["entities"], "entity_gone"]}

    visited_node = sys.modules["nodes.night.apply_operations"]
    monkeypatch.setattr(visited_node, "work_of", with_one_gone)
    async with opened(tmp_path, dreamer(), Clock(), settings=settings) as agent:
        await known(agent, people)
        read, report = await visits(agent, monkeypatch)
    (step,) = [one for one in report["steps"] if one["step"] == "consolidate_entities"]
    assert (step["done"], step["skipped"]) == (people + 1, 0)
    assert step["llm_calls"] == LEAST_CALLS
    assert read == visited


async def test_the_budget_is_checked_between_the_batches_of_one_visit(
    agent: AsyncAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(night_steps, "ITEMS_A_BATCH", 1)
    settings = SMALL.model_copy(update={"night_calls_per_100": 75})
    report = (await agent.ainvoke({"request": "sleep"}, context=settings))["report"]["night"]
    assert sum(one["llm_calls"] for one in report["steps"]) == 9
    assert report["held"]
