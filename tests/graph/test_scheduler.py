"""The scheduler in process, with a clock that the test sets."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from graph.api import AsyncAgent
from graph.cli.commands.run import Scheduler, Watcher, outlook
from memory.errors import ModelError
from memory.settings import Settings
from memory.state.schema import Mode
from tests.support.agents import Opening, night_model, overheard, said
from tests.support.clock import Clock
from tests.support.scripted import ScriptedChatModel, call, scripted

QUICK: dict[str, Any] = {"tick_rate": 0.01, "tick_rate_sleep": 0.01}


class Notes(Watcher):
    def __init__(self) -> None:
        self.runs = 0
        self.rested: list[tuple[str, Mode]] = []
        self.errors: list[str] = []

    def begins(self) -> None:
        super().begins()
        self.runs += 1

    def rests(self, why: str, mode: Mode) -> None:
        self.rested.append((why, mode))

    def failed(self, error: str) -> None:
        self.errors.append(error)


@asynccontextmanager
async def going(agent: AsyncAgent) -> AsyncIterator[tuple[Scheduler, Notes, asyncio.Task[None]]]:
    notes = Notes()
    scheduler = Scheduler(agent.context, notes)
    task = asyncio.create_task(scheduler.run())
    try:
        yield scheduler, notes, task
    finally:
        scheduler.end()
        await asyncio.wait_for(task, 20)


async def until(true: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to that")


async def test_an_idle_agent_makes_no_run_checkpoint_or_model_call(opening: Opening) -> None:
    model = scripted("Hello.")
    async with opening(model, settings=Settings(**QUICK)) as agent:
        await agent.ainvoke(said("Hi"))
        before = (await agent.aget_state()).config
        async with going(agent) as (_, notes, _task):
            await until(lambda: len(notes.rested) > 20)
        after = (await agent.aget_state()).config
    assert (notes.runs, before, len(model.calls)) == (0, after, 1)
    assert set(notes.rested) == {("Nothing is pending and no goal is active.", "awake")}


async def test_posted_events_are_answered_and_other_runs_get_their_turn(opening: Opening) -> None:
    model = scripted("Hello Ada.", "Hello Ben.")
    async with (
        opening(model, settings=Settings(**QUICK)) as agent,
        going(agent) as (_, notes, _task),
    ):
        await agent.post({"id": "e1", "text": "Hi", "sender": "Ada"})
        await until(lambda: len(model.calls) == 1 and len(notes.rested) > 0)
        async with opening(model) as other:
            await asyncio.wait_for(other.ainvoke(said("Hi", "Ben")), 10)
            values = (await other.aget_state()).values
    # Which of the two takes the message is nobody's business.
    assert (values["tick"], len(model.calls), notes.errors) == (2, 2, [])


async def test_end_finishes_the_model_call_and_the_next_run_resumes(opening: Opening) -> None:
    model = scripted(call("noop"), "Here I am.", delay=0.5)
    async with opening(model, settings=Settings(**QUICK)) as agent:
        async with going(agent) as (scheduler, _, task):
            await agent.post({"id": "e1", "text": "What is up?", "sender": "Ada"})
            await until(lambda: len(model.calls) == 1)
            scheduler.end()
            await asyncio.wait_for(task, 10)
        between = await agent.aget_state()
        assert (len(model.calls), between.values.get("tick", 0)) == (1, 0)
        assert (await outlook(agent.context)).rests is None
        async with going(agent) as (_, notes, _task):
            await until(lambda: bool(notes.rested))
        after = (await agent.aget_state()).values
    assert (len(model.calls), after["tick"], notes.errors) == (2, 1, [])
    assert after["report"]["ticks"][0]["reply"] == "Here I am."


async def test_a_cancelled_scheduler_stops_at_once_and_keeps_the_event(opening: Opening) -> None:
    model = scripted("lost", "Here I am.", delay=30)
    async with opening(model, settings=Settings(**QUICK)) as agent:
        task = asyncio.create_task(Scheduler(agent.context, Notes()).run())
        await agent.post({"id": "e1", "text": "What is up?", "sender": "Ada"})
        await until(lambda: len(model.calls) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 5)
        model.delay = 0
        async with going(agent) as (_, notes, _task):
            await until(lambda: bool(notes.rested))
        after = (await agent.aget_state()).values
    assert (after["tick"], after["report"]["ticks"][0]["reply"]) == (1, "Here I am.")


async def test_end_does_not_wait_for_another_holder_of_the_agent(opening: Opening) -> None:
    slow = scripted("Done.", delay=60)
    async with opening(slow, settings=Settings(**QUICK)) as other:
        held = asyncio.create_task(other.ainvoke(said("Hi")))
        await until(lambda: len(slow.calls) == 1)
        model = scripted()
        async with opening(model, settings=Settings(**QUICK)) as agent:
            async with going(agent) as (scheduler, notes, task):
                await until(lambda: notes.runs == 1)
                scheduler.end()
                await asyncio.wait_for(task, 1)
            assert not held.done()
        held.cancel()
        await asyncio.gather(held, return_exceptions=True)
    assert model.calls == []


async def test_a_lock_timeout_names_the_holder_and_is_retried(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0.1")
    slow, model = scripted("Done.", delay=0.6), scripted("Hello.")
    async with opening(slow) as other, opening(model, settings=Settings(**QUICK)) as agent:
        held = asyncio.create_task(other.ainvoke(said("Hi")))
        await until(lambda: len(slow.calls) == 1)
        async with going(agent) as (_, notes, _task):
            await until(lambda: bool(notes.errors))
            await held
            await agent.post({"id": "e2", "text": "Hi", "sender": "Ben"})
            await until(lambda: bool(notes.rested))
        tick = (await agent.aget_state()).values["tick"]
    assert "in use by process" in notes.errors[0]
    assert (tick, len(model.calls)) == (2, 1)


async def test_a_failing_model_is_retried_until_the_emergency_stop(opening: Opening) -> None:
    settings = Settings(**QUICK, max_failed_ticks=10, max_consecutive_errors=4)
    model = ScriptedChatModel(steps=[ModelError("no answer")] * 4 + ["Back."])
    async with opening(model, settings=settings) as agent:
        async with going(agent) as (_, notes, _task):
            await agent.post({"id": "e1", "text": "Hi", "sender": "Ada"})
            await until(lambda: bool(notes.rested) and "stop" in notes.rested[-1][0])
            assert (len(model.calls), notes.runs) == (4, 4)
            await agent.ainvoke({"request": "clear_stop"})
            await until(lambda: notes.rested[-1][0].startswith("Nothing is pending"))
        after = (await agent.aget_state()).values
    assert (after["tick"], len(model.calls), notes.errors) == (1, 5, [])


async def test_an_invalid_state_is_reported_and_does_not_end_the_scheduler(
    opening: Opening,
) -> None:
    model = scripted("Hello.", "Again.")
    async with opening(model, settings=Settings(**QUICK)) as agent:
        await agent.ainvoke(said("Hi"))
        await agent.aupdate_state(None, {"tick": -5})
        async with going(agent) as (_, notes, _task):
            await until(lambda: len(notes.errors) > 1)
            assert "tick: must not be below 0" in notes.errors[0]
            await agent.aupdate_state(None, {"tick": 1})
            await agent.post({"id": "e2", "text": "Hi", "sender": "Ada"})
            await until(lambda: bool(notes.rested))
    assert len(model.calls) == 2


@pytest.mark.parametrize("given", [{}, {"request": "stop"}, {"request": "sleep"}])
async def test_the_outlook_agrees_with_what_a_run_does(
    opening: Opening, given: dict[str, Any]
) -> None:
    model = scripted("Hello.", otherwise=night_model)
    async with opening(model) as agent:
        await agent.ainvoke(said("Hi"))
        await agent.ainvoke(given)
        paid = len(model.calls)
        assert (await outlook(agent.context)).rests is not None
        out = (await agent.ainvoke({}))["report"]
    assert (out["ticks"], out["night"], out["mode_changes"]) == ([], None, [])
    assert len(model.calls) == paid


async def test_end_in_a_night_stops_between_steps_and_pays_no_answer_twice(
    opening: Opening, clock: Clock
) -> None:
    settings = Settings(**QUICK, sleep_schedule_enabled=True)
    clock.set(datetime(2026, 3, 3, 2, 0, tzinfo=UTC))
    model = scripted(otherwise=night_model, delay=0.3)
    async with opening(model, settings=settings) as agent:
        await agent.ainvoke(overheard(*(f"Gate {n} closes" for n in range(6))))
        async with going(agent) as (scheduler, _, task):
            await until(lambda: len(model.calls) == 1)
            scheduler.end()
            await asyncio.wait_for(task, 10)
        assert (len(model.calls), (await outlook(agent.context)).rests) == (1, None)
        async with going(agent) as (_, notes, _task):
            await until(lambda: bool(notes.rested))
        after = (await agent.aget_state()).values
        facts = await agent.resources.semantic.all(agent.scope)
    assert [one["llm_calls"] for one in after["report"]["night"]["steps"]] == [1, 1, 1, 1, 0]
    assert (len(model.calls), len(facts), after["mode"]) == (4, 6, "sleep")
    assert [one["why"] for one in after["report"]["mode_changes"]] == ["schedule"]
