"""What `circadian run` spends on goals: no call while nothing changes, and waits that double."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from graph.api import AsyncAgent
from graph.cli.commands.run import Scheduler
from graph.use_cases import status
from memory.settings import Settings
from tests.graph.test_scheduler import Notes
from tests.support.agents import Opening, said
from tests.support.clock import Clock
from tests.support.scripted import ScriptedChatModel, call, scripted

MIDNIGHT = datetime(2026, 3, 3, tzinfo=UTC)
QUIET = Settings(time_zone="UTC", reflection_interval=0)


async def day(
    agent: AsyncAgent,
    clock: Clock,
    *,
    seconds: float = 30,
    hours: float = 24,
    at: dict[datetime, Callable[[], Any]] | None = None,
) -> Notes:
    """What the scheduler does in a simulated day, looking every 30 seconds."""
    notes = Notes()
    scheduler = Scheduler(agent.context, notes)
    end = clock() + timedelta(hours=hours)
    due = dict(at or {})
    while clock() < end:
        for when in [when for when in due if when <= clock()]:
            await due.pop(when)()
        before = clock()
        await scheduler._once()
        clock.set(max(before, clock()) + timedelta(seconds=seconds))
    return notes


def idle_model() -> ScriptedChatModel:
    idle = "There is nothing to do."
    goal = call("add_goal", description="Watch the pond")
    return scripted(goal, "Made.", otherwise=lambda messages, tools: idle)


async def made(agent: AsyncAgent, model: ScriptedChatModel) -> int:
    await agent.ainvoke(said("Please watch the pond, and keep it as a goal of yours"))
    return len(model.calls)


async def test_a_day_with_an_unchanged_goal_costs_a_handful_of_calls(
    opening: Opening, clock: Clock
) -> None:
    clock.set(MIDNIGHT)
    model = idle_model()
    async with opening(model, settings=QUIET) as agent:
        before = await made(agent, model)
        notes = await day(agent, clock, seconds=60, hours=23)
        spent = (await agent.aget_state()).values["spending"]["tokens"]
    # At 0, 1, 3, 7 ... 255 minutes, then every four hours. Without waits it would be 60 an hour.
    assert len(model.calls) - before == 13
    assert notes.runs == 13
    assert spent < 100_000
    rested = notes.rested[-1][0]
    assert "Nothing has changed since the last look at the goals: the next is at" in rested


@pytest.mark.parametrize("minutes", [0, 10])
async def test_the_setting_is_the_ceiling_and_0_ends_all_waits(
    opening: Opening, clock: Clock, minutes: float
) -> None:
    clock.set(MIDNIGHT)
    model = idle_model()
    settings = Settings(
        time_zone="UTC", reflection_interval=0, goal_pause_minutes=minutes, tokens_per_day=10**9
    )
    async with opening(model, settings=settings) as agent:
        before = await made(agent, model)
        await day(agent, clock, hours=1)
    # 0, 1, 3, 7, then 15, 25 ... 55; or every one that the limit of an hour allows.
    assert len(model.calls) - before == (60 if minutes == 0 else 9)


async def test_an_event_and_a_new_day_end_a_wait(opening: Opening, clock: Clock) -> None:
    clock.set(MIDNIGHT + timedelta(hours=20))
    model = idle_model()
    async with opening(model, settings=QUIET) as agent:
        await made(agent, model)
        await day(agent, clock, hours=2)  # looks at 20:00 and on to 21:03; the next is at 22:07
        before = len(model.calls)
        due = (await status(agent.context))["spending"]["next_look"]
        assert due == "2026-03-03T22:07:00+00:00"
        heard = {"id": "h1", "text": "A heron is there", "sender": "Ada", "addressed": False}
        await agent.post(heard)
        assert (await status(agent.context))["spending"]["next_look"] == due  # not yet taken in
        await day(agent, clock, hours=1 / 60)
        assert len(model.calls) == before + 1
        await day(agent, clock, hours=2)
        looks = len(model.calls)
    assert looks - before == 1 + 6 + 1  # then after 1, 3, 7, 15, 31 and 63 minutes, and at midnight


async def test_an_autonomous_tick_that_changes_a_goal_is_followed_at_once(
    opening: Opening, clock: Clock
) -> None:
    clock.set(MIDNIGHT)
    model = idle_model()
    async with opening(model, settings=QUIET) as agent:
        await made(agent, model)
        model.steps.extend(
            answer
            for progress in (30, 60)
            for answer in (call("update_goal", goal_id="goal_1_0", progress=progress), "Went on.")
        )
        before = (await agent.aget_state()).values["tick"]
        await day(agent, clock, hours=2 / 60)
        after = (await agent.aget_state()).values["tick"]
    assert after - before == 3  # two that changed it, 30 seconds apart, and one that did not


async def test_a_requested_tick_does_not_wait(opening: Opening) -> None:
    model = idle_model()
    async with opening(model) as agent:
        before = await made(agent, model)
        for _ in range(3):
            await agent.ainvoke({"request": "tick"})
        assert len(model.calls) == before + 3
        assert (await agent.ainvoke({}))["report"]["ticks"] == []
        assert len(model.calls) == before + 3
