"""A night and its hours: dreaming ends with them, compacting is finished."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from graph.api.async_agent import AsyncAgent
from memory.operations.apply import UNDREAMED
from memory.settings import Settings
from memory.storage.access import list_items
from tests.support.agents import opened
from tests.support.clock import Clock
from tests.support.dreamers import SUNDAY, answer
from tests.support.scripted import ScriptedChatModel, scripted

NIGHTLY = Settings(
    sleep_schedule_enabled=True,
    dream_batch_size=1,
    night_calls_per_100=1_000,
    probes_kept=0,
)
HEARD = {
    "events": [
        {"id": f"e{n}", "text": text, "sender": who, "addressed": False}
        for n, (who, text) in enumerate(SUNDAY)
    ]
}
HOURS = "its hours are over (02:00 UTC, 4 h)"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def slow(clock: Clock, step: str, until: datetime, *, nth: int = 1) -> ScriptedChatModel:
    """A model that lets time pass while it answers `step` for the nth time."""
    asked = 0

    def answered(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        nonlocal asked
        asked += (tools == [step]) if step != "facts" else "store_memory" in tools
        if asked == nth and clock() < until:
            clock.set(until)
        return answer(messages, tools)

    return scripted(otherwise=answered)


def asked_for(model: ScriptedChatModel) -> list[str]:
    """The steps that asked, one name per call."""
    return [one.tools[0] if len(one.tools) == 1 else "facts" for one in model.calls]


async def undreamed(agent: AsyncAgent) -> int:
    return len(await list_items(agent.store, agent.scope.namespace(UNDREAMED)))


async def steps_of(out: dict[str, Any]) -> list[str]:
    return [one["step"] for one in out["report"]["night"]["steps"]]


async def test_dreaming_stops_when_the_sleeping_hours_end(tmp_path: Path, clock: Clock) -> None:
    clock.set(at("2026-01-10T02:00"))
    model = slow(clock, "Dream", at("2026-01-10T06:00"), nth=2)
    async with opened(tmp_path, model, clock, settings=NIGHTLY) as agent:
        await agent.ainvoke(HEARD)
        out = await agent.ainvoke({})
        night, first = out["report"]["night"], asked_for(model)
        assert first.count("Dream") == 2
        assert (night["complete"], night["stopped"], night["held"]) == (True, HOURS, [])
        assert await undreamed(agent) == await agent.resources.semantic.count(agent.scope) - 2
        assert [one["why"] for one in out["report"]["mode_changes"]] == ["schedule", "hours"]
        assert (out["mode"], "prune" in await steps_of(out)) == ("awake", False)
        clock.set(at("2026-01-11T02:00"))
        later = await agent.ainvoke({})
        assert (later["report"]["night"]["stopped"], await undreamed(agent)) == (None, 0)
        assert [one["stopped"] for one in await agent.nights()] == [HOURS, None]
    again = asked_for(model)[len(first) :]
    assert (again.count("Scores"), again.count("facts"), again.count("Dream") > 0) == (0, 0, True)


async def test_compacting_goes_on_after_the_sleeping_hours_and_dreaming_does_not_begin(
    tmp_path: Path, clock: Clock
) -> None:
    clock.set(at("2026-01-10T02:00"))
    model = slow(clock, "Scores", at("2026-01-10T06:00"))
    async with opened(tmp_path, model, clock, settings=NIGHTLY) as agent:
        await agent.ainvoke(HEARD)
        out = await agent.ainvoke({})
        facts = await agent.resources.semantic.count(agent.scope)
        assert (facts, await undreamed(agent)) == (len(SUNDAY), len(SUNDAY))
    night = out["report"]["night"]
    assert (night["held"], night["stopped"], "Dream" in asked_for(model)) == ([], HOURS, False)
    assert out["mode"] == "awake"


@pytest.mark.parametrize("asked", ["before its hour", "within its hours"])
async def test_a_requested_night_ignores_the_sleeping_hours(
    tmp_path: Path, clock: Clock, asked: str
) -> None:
    clock.set(at("2026-01-10T01:00" if asked == "before its hour" else "2026-01-10T03:00"))
    model = slow(clock, "Dream", at("2026-01-10T06:00"), nth=2)
    async with opened(tmp_path, model, clock, settings=NIGHTLY) as agent:
        await agent.ainvoke(HEARD)
        out = await agent.ainvoke({"request": "sleep"})
        assert await undreamed(agent) == 0
    night = out["report"]["night"]
    assert (night["complete"], night["stopped"], out["mode"]) == (True, None, "sleep")


async def test_a_preview_ignores_the_end_of_the_sleeping_hours(
    tmp_path: Path, clock: Clock
) -> None:
    clock.set(at("2026-01-10T02:00"))
    async with opened(tmp_path, scripted(), clock, settings=NIGHTLY) as agent:
        await agent.ainvoke({})
        await agent.ainvoke(HEARD)
    model = slow(clock, "Dream", at("2026-01-10T06:00"), nth=2)
    async with opened(tmp_path, model, clock, settings=NIGHTLY) as agent:
        tried = await agent.sleep(dry_run=True)
    assert (tried["complete"], tried["stopped"]) == (True, None)
    assert asked_for(model).count("Dream") > 2
