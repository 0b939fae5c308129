"""An interrupted undo is finished before everything else, an interrupted tick included."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from graph.api.async_agent import AsyncAgent
from graph.use_cases.transfer import export_memory, import_memory
from memory.night import undo as night_undo
from memory.operations import apply
from memory.records.records import Scope
from memory.storage.access import write_batch
from memory.transfer.format import line_of
from tests.graph.test_night_previews import copy_of, life, lived
from tests.support.agents import opened, said
from tests.support.clock import Clock
from tests.support.dreamers import SATURDAY, SETTINGS, answer, day, dreamer
from tests.support.scripted import scripted

__all__ = ["life", "lived"]


async def breaks_off_an_undo(agent: AsyncAgent) -> str:
    """Leave the data as a kill right after the beginning of an undo does."""
    name = (await agent.nights())[-1]["id"]
    begun = night_undo.UndoBegun(id=name, at=agent.resources.clock().isoformat(), who="Ada")
    await write_batch(agent.store, [night_undo._pointer(agent.scope, begun)])
    return name


QUESTION = said("Where does Ada live?", "Ben", id="asked")


async def breaks_off_a_tick(agent: AsyncAgent, **more: Any) -> None:
    """Leave the data as a kill during the model call for the event `asked` does."""
    model: Any = agent.resources.chat_model
    run = asyncio.create_task(agent.ainvoke({**QUESTION, **more}))
    for _ in range(1_000):
        if model.calls and "Where does Ada live?" in model.calls[-1].text:
            break
        model.delay = 0.05
        await asyncio.sleep(0.01)
    run.cancel()
    with suppress(asyncio.CancelledError):
        await run
    model.delay = 0.0
    assert [task.name for task in (await agent.aget_state()).tasks] == ["awake"]


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_interrupted_tick_goes_on_after_the_undo(
    lived: Path, clock: Clock, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stood: list[str] = []

    def answered(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        stood.append("asked")
        return answer(messages, tools)

    applied = apply.apply_operations

    async def taking_back(*args: Any, **options: Any) -> None:
        stood.append("taken back")
        await applied(*args, **options)

    async with copy_of(lived, "resumed", clock, scripted(otherwise=answered)) as agent:
        await breaks_off_a_tick(agent)
        name = await breaks_off_an_undo(agent)
        monkeypatch.setattr(apply, "apply_operations", taking_back)
        stood.clear()
        if streamed:
            async for _ in agent.astream(None):
                pass
        else:
            await agent.ainvoke(None)
        report = (await agent.aget_state()).values["report"]
        assert stood[:2] == ["taken back", "asked"]
        assert stood.count("taken back") == 1
        assert (await agent.night(name))["status"] == "undone"
        assert await night_undo.unfinished_undo(agent.store, agent.scope) is None
    assert [one["event_id"] for one in report["ticks"]] == ["asked"]
    told = f"The undo of {name} had been broken off; it is finished now."
    assert report["notes"].count(told) == 1


async def test_an_import_finishes_an_undo_interrupted_in_the_export(
    tmp_path: Path, clock: Clock
) -> None:
    async with opened(tmp_path / "old", dreamer(), clock, settings=SETTINGS) as agent:
        await day(agent, clock, SATURDAY)
        await agent.sleep()
        name = await breaks_off_an_undo(agent)
        lines = [line_of(record) async for record in export_memory(agent.context)]
    kinds = [json.loads(line).get("namespace", [""])[0] for line in lines]
    assert night_undo.OPEN_UNDO in kinds
    async with opened(tmp_path / "new", dreamer(), clock, settings=SETTINGS) as agent:
        await import_memory(agent.context, lines)
        assert await night_undo.unfinished_undo(agent.store, agent.scope) is None
        assert (await agent.night(name))["status"] == "undone"
        assert await facts(agent, agent.scope) == []
        assert (await import_memory(agent.context, lines))["already"]
        assert await facts(agent, agent.scope) == []


async def facts(agent: AsyncAgent, scope: Scope) -> list[str]:
    return [one["text"] for one in await agent.resources.semantic.all(scope)]
