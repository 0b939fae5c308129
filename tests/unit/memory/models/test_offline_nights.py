"""Nights on the offline model, from what was heard to what is known, and back."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from graph.api import AsyncAgent
from memory.entities import entities
from memory.models.offline.model import OfflineChatModel
from memory.settings import Settings
from tests.support.agents import entries, opened, said
from tests.support.clock import Clock

SETTINGS = Settings(reflection_threshold=20, min_observations=2, probes_kept=0)
SATURDAY = [
    ("Ben", "The glass arrives on Friday."),
    ("Ada", "I live in Bergen with my two cats."),
    ("Ben", "My sister Lila is allergic to strawberries."),
    ("Ben", "Note about Ben: Ben likes jazz."),
    ("Ben", "Note about Ben: Ben lives in Turin."),
]
SUNDAY = [
    ("Ben", "The glass now arrives on Monday."),
    ("Ada", "I moved to Oslo with my two cats."),
    ("Ada", "Lila planted strawberries in the old bed."),
]


@pytest.fixture
async def agent(tmp_path: Path, clock: Clock) -> AsyncIterator[AsyncAgent]:
    async with opened(tmp_path / "data", OfflineChatModel(), clock, settings=SETTINGS) as handle:
        yield handle


async def day_and_night(
    agent: AsyncAgent, clock: Clock, heard: list[tuple[str, str]]
) -> dict[str, Any]:
    for who, text in heard:
        clock.advance(minutes=5)
        await agent.ainvoke(said(text, who))
    clock.advance(hours=10)
    night: dict[str, Any] = (await agent.ainvoke({"request": "sleep"}))["report"]["night"]
    clock.advance(hours=8)
    await agent.ainvoke({"request": "wake"})
    return night


async def holding(agent: AsyncAgent) -> dict[str, bool]:
    facts = await agent.resources.semantic.all(agent.scope)
    return {fact["text"]: fact["invalid_at"] is None for fact in facts}


async def test_each_step_of_a_night_has_an_answer_by_rules(agent: AsyncAgent, clock: Clock) -> None:
    night = await day_and_night(agent, clock, SATURDAY)
    assert (night["complete"], night["held"], night["errors"]) == (True, [], [])
    assert [(one["step"], one["skipped"], one["llm_calls"]) for one in night["steps"]] == [
        ("score_importance", 0, 1),
        ("consolidate", 0, 1),
        ("dream", 0, 1),
        ("consolidate_entities", 0, 1),
        ("write_pages", 0, 0),
        ("reflect", 0, 1),
    ]
    profiles = await entities.everyone(agent.store, agent.scope)
    ben = next(one for one in profiles if one["name"] == "Ben")
    told = {name: one["value"] for name, one in ben["attributes"].items()}
    assert told == {"noticed_last": "Ben lives in Turin"}
    assert not [one for one in await entries(agent) if one["tags"] == ["insight"]]


async def test_the_new_value_takes_the_place_of_the_old_and_a_second_night_has_nothing_to_do(
    agent: AsyncAgent, clock: Clock
) -> None:
    await day_and_night(agent, clock, SATURDAY)
    night = await day_and_night(agent, clock, SUNDAY)
    assert (night["complete"], night["errors"]) == (True, [])
    assert await holding(agent) == {
        "The glass arrives on Friday.": False,
        "I live in Bergen with my two cats.": False,
        "My sister Lila is allergic to strawberries.": True,
        "Lila planted strawberries in the old bed.": True,
        "Note about Ben: Ben likes jazz.": True,
        "Note about Ben: Ben lives in Turin.": True,
        "The glass now arrives on Monday.": True,
        "I moved to Oslo with my two cats.": True,
    }
    found = [hit["text"] for hit in await agent.recall("When does the glass arrive?", limit=3)]
    assert "The glass now arrives on Monday." in found
    assert "The glass arrives on Friday." not in found
    again = await agent.ainvoke({"request": "sleep"})
    assert again["report"]["notes"] == ["Nothing to do tonight."]
