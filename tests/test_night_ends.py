"""How a night ends, and what is said of it: why it stopped, and whether there is more to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from graph.nights import broke_off, find_night
from memory import night
from memory.errors import InputError, ModelError
from memory.session import fallen_asleep
from memory.state import State
from memory.store_access import write_batch
from nodes import weigh_night
from tests.agents import entries, opened
from tests.clock import Clock
from tests.dreamers import SETTINGS, answer, dreamer
from tests.scripted import ScriptedChatModel, scripted
from tests.test_night_hours import HEARD, HOURS, NIGHTLY, at, slow
from tests.test_night_previews import copy_of, lived
from tests.test_undo_resumed import breaks_off_a_tick

__all__ = ["lived"]


async def test_a_tick_broken_off_behind_a_night_in_the_same_run_is_none_of_the_nights(
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
    """Answers all that a night asks, but for these steps."""

    def answered(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        if tools and tools[0] in steps:
            raise ModelError("no JSON")
        return answer(messages, tools)

    return scripted(otherwise=answered)


def asked(model: ScriptedChatModel, step: str) -> int:
    return sum(one.tools == [step] for one in model.calls)


DOWN = "the model gives no usable answer"


@pytest.mark.parametrize("tried", [False, True])
async def test_a_night_stopped_by_its_model_says_so_at_its_end_and_asks_no_more(
    lived: Path, clock: Clock, tried: bool
) -> None:
    model, settings = failing_at("Dream"), SETTINGS.model_copy(update={"night_parallel": 1})
    async with copy_of(lived, "down", clock, model, settings) as agent:
        if tried:
            await agent.ainvoke({"request": "wake"})
        slept = await agent.sleep(dry_run=tried)
        (_, line) = await agent.nights()
    assert {"prune_links", "prune"} & {step["step"] for step in slept["steps"]}
    assert (slept["stopped"], line["stopped"], slept["complete"]) == (DOWN, DOWN, False)
    assert asked(model, "Dream") > 0
    assert asked(model, "Attributes") + asked(model, "Questions") == 0


async def test_what_cut_a_night_is_said_and_not_what_holds_at_its_end(
    lived: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    weigh = weigh_night._weighed

    async def woken_meanwhile(view: Any, resources: Any, settings: Any) -> Any:
        assert view.record["stopped"] == "a message waits"
        return await weigh(view, resources, settings)

    monkeypatch.setattr(weigh_night, "_weighed", woken_meanwhile)
    async with copy_of(lived, "message", clock, dreamer()) as agent:
        await agent.post({"id": "e1", "sender": "Ada", "text": "Are you there?"})
        out = await agent.ainvoke({"request": "sleep"})
    night = out["report"]["night"]
    assert (night["stopped"], night["complete"]) == ("a message waits", True)
    assert [tick["event_id"] for tick in out["report"]["ticks"]] == ["e1"]


async def test_a_night_that_its_hours_woke_before_it_was_gone_on_with_says_the_hours(
    tmp_path: Path, clock: Clock
) -> None:
    clock.set(at("2026-01-10T02:00"))
    async with opened(tmp_path, slow(clock, "Dream", at("2026-01-10T02:01")), clock) as agent:
        await agent.ainvoke(HEARD)
        asleep = fallen_asleep(
            cast(State, (await agent.aget_state()).values), clock(), "schedule", "its hour"
        )
        await agent.aupdate_state(asleep)
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
