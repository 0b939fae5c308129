"""How a night ends, and what its report says: why it stopped, and whether work is left."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from graph.use_cases.nights import broke_off, find_night
from memory.errors import InputError, ModelError
from memory.night import record as night
from memory.night.steps import NightContext
from memory.state.schema import State, fallen_asleep
from memory.storage.access import write_batch
from nodes.night.weigh_night import _weighed
from tests.graph.test_night_hours import HEARD, HOURS, NIGHTLY, at, slow
from tests.graph.test_night_previews import copy_of, life, lived
from tests.graph.test_undo_resumed import breaks_off_a_tick
from tests.support.agents import entries, opened
from tests.support.clock import Clock
from tests.support.dreamers import answer, dreamer
from tests.support.scripted import ScriptedChatModel, scripted

__all__ = ["life", "lived"]


async def test_a_tick_interrupted_after_a_night_does_not_reopen_the_night(
    lived: Path, clock: Clock
) -> None:
    model = dreamer()
    async with copy_of(lived, "behind", clock, model) as agent:
        await breaks_off_a_tick(agent, request="sleep")
        record = await find_night(agent.context, "last")
        snapshot = await agent.aget_state()
        assert snapshot.values["report"]["night"]["id"] == record["id"]
        assert not await broke_off(agent.context, record)
        paid = len(model.calls)
        with pytest.raises(InputError, match="is applied: there is nothing to apply"):
            await agent.apply_night(record["id"])
        assert len(model.calls) == paid
        assert [task.name for task in (await agent.aget_state()).tasks] == ["awake"]
        assert len(await agent.nights()) == 2


def failing_at(*steps: str) -> ScriptedChatModel:
    """A model that fails at these steps only."""

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
