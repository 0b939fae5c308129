"""What ends a night: its budget, after a batch, and its hours, which compacting outlasts."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from graph.api.async_agent import AsyncAgent
from memory.journal import entries as journal
from memory.operations.apply import UNDREAMED
from memory.settings import Settings
from memory.storage.access import list_items
from tests.support.agents import entries, opened
from tests.support.clock import Clock
from tests.support.dreamers import SETTINGS, SUNDAY, answer, dreamer, shown
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


async def heard(agent: AsyncAgent, clock: Clock, count: int) -> None:
    """The agent overhears `count` messages of different importance."""
    events = [
        {
            "id": f"e{n:03}",
            "sender": "Ben",
            "text": f"Plot {n:03} grows a plant of kind {n * 7 % count}.",
            "addressed": False,
            "at": clock().isoformat(),
        }
        for n in range(count)
    ]
    await agent.post(events)
    clock.advance(hours=1)


async def weighed(agent: AsyncAgent) -> None:
    """Make every third entry important before the night."""
    for entry in await entries(agent):
        number = int(re.findall(r"Plot (\d+)", entry["content"])[0])
        changed: Any = {**entry, "importance": 5 if number % 3 == 0 else 3}
        await agent.store.abatch(journal.puts(agent.scope, changed))


async def test_a_hundred_entries_take_at_most_fifteen_calls_one_after_the_other(
    tmp_path: Path, clock: Clock
) -> None:
    running, most = 0, 0

    class Counting(ScriptedChatModel):
        async def _agenerate(self, *args: Any, **more: Any) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            try:
                return await super()._agenerate(*args, **more)
            finally:
                running -= 1

    model = Counting(otherwise=lambda messages, tools: answer(messages, tools))
    settings = Settings(reflection_threshold=20, min_observations=2)
    async with opened(tmp_path, model, clock, settings=settings) as agent:
        await heard(agent, clock, 100)
        slept = await agent.sleep()
        made = [one for one in slept["operations"] if one["kind"] == "add_fact"]
    assert len(model.calls) <= 15
    assert most == 1
    assert (slept["complete"], slept["held"], len(made)) == (True, [], 100)
    assert {one["step"] for one in slept["steps"]} >= {"dream", "reflect"}


async def test_after_the_budget_is_used_up_the_next_night_takes_the_rest_by_importance(
    tmp_path: Path, clock: Clock
) -> None:
    settings = SETTINGS.model_copy(
        update={
            "night_tokens": 600,
            "score_batch_size": 5,
            "consolidate_batch_size": 5,
            "gate_facts": 1_000,
        }
    )
    model = dreamer()
    async with opened(tmp_path, model, clock, settings=settings) as agent:
        await heard(agent, clock, 30)
        await agent.ainvoke({})
        await weighed(agent)
        first = await agent.sleep()
        asked = [plot for call in model.calls for plot in plots(call.messages)]
        assert first["complete"] is False
        assert re.fullmatch(r"\d+ of 600 tokens are used \(night_tokens\)", first["stopped"] or "")
        assert asked == sorted(asked, key=lambda n: (n % 3 != 0, n))
        assert len(first["held"]) == 30
        paid = len(model.calls)
        unlimited = settings.model_copy(update={"night_tokens": None})
        agent.context = replace(agent.context, settings=unlimited)
        clock.advance(days=1)
        second = await agent.sleep()
    scored = [call for call in model.calls[paid:] if call.tools == ["Scores"]]
    again = {plot for call in scored for plot in plots(call.messages)}
    assert again.isdisjoint(asked)
    assert len(again.union(asked)) == 30
    assert (second["complete"], second["stopped"], second["held"]) == (True, None, [])


def plots(messages: list[BaseMessage]) -> list[int]:
    """The plots that a batch shows."""
    told = shown(str(messages[1].text)).values()
    return [int(found) for line in told for found in re.findall(r"Plot (\d+)", line)]


async def test_a_stopped_night_records_the_reason_and_the_entries_left(
    tmp_path: Path, clock: Clock
) -> None:
    settings = SETTINGS.model_copy(update={"night_tokens": 1})
    async with opened(tmp_path, dreamer(), clock, settings=settings) as agent:
        await heard(agent, clock, 5)
        await agent.sleep()
        told = await agent.night("last")
    assert told["stopped"] is not None
    assert (told["status"], told["complete"], len(told["held"])) == ("complete", False, 5)


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
