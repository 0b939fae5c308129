"""How a night ends: with its hours, its budget or its model, and what its report says of that."""

from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from graph.api import AsyncAgent
from graph.use_cases.nights import find_night
from memory.errors import InputError, ModelError
from memory.night import record as night
from memory.night.steps import NightContext
from memory.operations.apply import UNDREAMED
from memory.settings import Settings
from memory.state.schema import State, fallen_asleep
from memory.storage.access import list_items, write_batch
from nodes.night.weigh_night import _weighed
from tests.graph.test_night_previews import copy_of, life, lived
from tests.graph.test_night_undo import breaks_off_a_tick
from tests.support.agents import Opening, entries, opened
from tests.support.clock import Clock
from tests.support.dreamers import SUNDAY, answer, dreamer
from tests.support.scripted import ScriptedChatModel, scripted

__all__ = ["life", "lived"]

# The hours of sleep

NIGHTLY = Settings(
    sleep_schedule_enabled=True, dream_batch_size=1, night_calls_per_100=1_000, probes_kept=0
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
    return [one.tools[0] if len(one.tools) == 1 else "facts" for one in model.calls]


async def undreamed(agent: AsyncAgent) -> int:
    return len(await list_items(agent.store, agent.scope.namespace(UNDREAMED)))


async def steps_of(out: dict[str, Any]) -> list[str]:
    return [one["step"] for one in out["report"]["night"]["steps"]]


async def test_dreaming_stops_when_the_sleeping_hours_end(opening: Opening, clock: Clock) -> None:
    clock.set(at("2026-01-10T02:00"))
    model = slow(clock, "Dream", at("2026-01-10T06:00"), nth=2)
    async with opening(model, settings=NIGHTLY) as agent:
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
    opening: Opening, clock: Clock
) -> None:
    clock.set(at("2026-01-10T02:00"))
    model = slow(clock, "Scores", at("2026-01-10T06:00"))
    async with opening(model, settings=NIGHTLY) as agent:
        await agent.ainvoke(HEARD)
        out = await agent.ainvoke({})
        facts = await agent.resources.semantic.count(agent.scope)
        assert (facts, await undreamed(agent)) == (len(SUNDAY), len(SUNDAY))
    night = out["report"]["night"]
    assert (night["held"], night["stopped"], "Dream" in asked_for(model)) == ([], HOURS, False)
    assert out["mode"] == "awake"


@pytest.mark.parametrize("asked", ["before its hour", "within its hours"])
async def test_a_requested_night_ignores_the_sleeping_hours(
    opening: Opening, clock: Clock, asked: str
) -> None:
    clock.set(at("2026-01-10T01:00" if asked == "before its hour" else "2026-01-10T03:00"))
    model = slow(clock, "Dream", at("2026-01-10T06:00"), nth=2)
    async with opening(model, settings=NIGHTLY) as agent:
        await agent.ainvoke(HEARD)
        out = await agent.ainvoke({"request": "sleep"})
        assert await undreamed(agent) == 0
    night = out["report"]["night"]
    assert (night["complete"], night["stopped"], out["mode"]) == (True, None, "sleep")


async def test_a_preview_ignores_the_end_of_the_sleeping_hours(
    opening: Opening, clock: Clock
) -> None:
    clock.set(at("2026-01-10T02:00"))
    async with opening(scripted(), settings=NIGHTLY) as agent:
        await agent.ainvoke({})
        await agent.ainvoke(HEARD)
    model = slow(clock, "Dream", at("2026-01-10T06:00"), nth=2)
    async with opening(model, settings=NIGHTLY) as agent:
        tried = await agent.sleep(dry_run=True)
    assert (tried["complete"], tried["stopped"]) == (True, None)
    assert asked_for(model).count("Dream") > 2


async def test_a_tick_interrupted_after_a_night_does_not_reopen_the_night(
    lived: Path, clock: Clock
) -> None:
    model = dreamer()
    async with copy_of(lived, "behind", clock, model) as agent:
        await breaks_off_a_tick(agent, request="sleep")
        record = await find_night(agent.context, "last")
        snapshot = await agent.aget_state()
        assert snapshot.values["report"]["night"]["id"] == record["id"]
        paid = len(model.calls)
        with pytest.raises(InputError, match="is applied: there is nothing to apply"):
            await agent.apply_night(record["id"])
        assert len(model.calls) == paid
        assert [task.name for task in (await agent.aget_state()).tasks] == ["awake"]
        assert len(await agent.nights()) == 2


def failing_at(*steps: str) -> ScriptedChatModel:
    def answered(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        if tools and tools[0] in steps:
            raise ModelError("no JSON")
        return answer(messages, tools)

    return scripted(otherwise=answered)


def asked(model: ScriptedChatModel, step: str) -> int:
    return sum(one.tools == [step] for one in model.calls)


DOWN = "the model gives no usable answer"


@pytest.mark.parametrize("tried", [False, True])
async def test_a_night_stopped_by_a_failing_model_reports_it_and_asks_no_more(
    lived: Path, clock: Clock, tried: bool
) -> None:
    model = failing_at("Dream")
    async with copy_of(lived, "down", clock, model) as agent:
        if tried:
            await agent.ainvoke({"request": "wake"})
        slept = await agent.sleep(dry_run=tried)
        (_, line) = await agent.nights()
    assert {"prune_links", "prune"} & {step["step"] for step in slept["steps"]}
    assert (slept["stopped"], line["stopped"], slept["complete"]) == (DOWN, DOWN, False)
    assert asked(model, "Dream") > 0
    assert asked(model, "Attributes") + asked(model, "Questions") == 0


async def test_the_report_gives_the_first_reason_for_stopping(
    lived: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    weigh = _weighed

    async def woken_meanwhile(context: NightContext) -> Any:
        assert context.record["stopped"] == "a message waits"
        return await weigh(context)

    monkeypatch.setattr(import_module("nodes.night.weigh_night"), "_weighed", woken_meanwhile)
    async with copy_of(lived, "message", clock, dreamer()) as agent:
        await agent.post({"id": "e1", "sender": "Ada", "text": "Are you there?"})
        out = await agent.ainvoke({"request": "sleep"})
    night = out["report"]["night"]
    assert (night["stopped"], night["complete"]) == ("a message waits", True)
    assert [tick["event_id"] for tick in out["report"]["ticks"]] == ["e1"]


async def test_a_resumed_night_after_its_hours_gives_the_hours_as_reason(
    tmp_path: Path, clock: Clock
) -> None:
    clock.set(at("2026-01-10T02:00"))
    async with opened(tmp_path, slow(clock, "Dream", at("2026-01-10T02:01")), clock) as agent:
        await agent.ainvoke(HEARD)
        asleep = fallen_asleep(
            cast(State, (await agent.aget_state()).values), clock(), "schedule", "its hour"
        )
        await agent.aupdate_state(None, asleep)
        ids = [entry["id"] for entry in await entries(agent)]
        open_night = night.new_night(clock(), ids, [])
        await write_batch(agent.store, night.begin_puts(agent.scope, open_night))
    clock.set(at("2026-01-10T06:30"))
    model = slow(clock, "Dream", at("2026-01-10T02:01"))
    async with opened(tmp_path, model, clock, settings=NIGHTLY) as agent:
        out = await agent.ainvoke({})
    assert [one["why"] for one in out["report"]["mode_changes"]] == ["hours"]
    assert (out["report"]["night"]["id"], out["report"]["night"]["stopped"]) == (
        open_night["id"],
        HOURS,
    )
    assert asked(model, "Dream") == 0
