"""A long night has larger visits and not more of them, for each visit reads the night anew."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lives import live, made_up
from benchmarks.night import Clocked
from graph.handle import AsyncAgent
from memory import night, night_view
from memory.overlay import MOST_WORDS, _telling
from memory.settings import Settings
from tests.agents import opened
from tests.clock import Clock

SMALL = Settings(
    score_batch_size=2,
    consolidate_batch_size=2,
    dream_batch_size=2,
    night_parallel=1,
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
    """How often the night was read, and its report."""
    read = []
    of = night.plans_of

    async def counted(*args: Any) -> Any:
        read.append(args)
        return await of(*args)

    monkeypatch.setattr(night, "plans_of", counted)
    report = (await agent.ainvoke({"request": "sleep"}))["report"]["night"]
    monkeypatch.undo()
    return len(read), report


@pytest.mark.parametrize(("a_wave", "most"), [(1, 12), (1_000, 30)])
async def test_a_visit_thinks_about_as_many_waves_as_the_night_is_long(
    agent: AsyncAgent, monkeypatch: pytest.MonkeyPatch, a_wave: int, most: int
) -> None:
    monkeypatch.setattr(night_view, "ENTRIES_A_WAVE", a_wave)
    read, report = await visits(agent, monkeypatch)
    assert report["complete"]
    steps = {one["step"]: one for one in report["steps"]}
    for step in ("score_importance", "consolidate", "dream"):
        assert (steps[step]["done"], steps[step]["llm_calls"]) == (LIVED, LIVED // 2)
    assert most - 8 <= read <= most


async def test_the_budget_is_looked_at_between_the_waves_of_one_visit(
    agent: AsyncAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(night_view, "ENTRIES_A_WAVE", 1)
    settings = SMALL.model_copy(update={"night_calls_per_100": 75})
    report = (await agent.ainvoke({"request": "sleep"}, context=settings))["report"]["night"]
    assert sum(one["llm_calls"] for one in report["steps"]) == 9
    assert report["held"]


def test_neighbours_are_looked_up_by_the_longest_words() -> None:
    words = [f"{'w' * size}" for size in range(1, 20)]
    assert _telling(" ".join(words)).split() == words[::-1][:MOST_WORDS]
    assert _telling("to be") == "to be"
