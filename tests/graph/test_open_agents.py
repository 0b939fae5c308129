"""Many agents of many users over one folder or database, in one process."""

import asyncio
import gc
import tracemalloc
import weakref
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver

from graph.agent import open_agent, open_agents
from memory.errors import BusyError
from memory.facts.sqlite.indexes import ScopeIndex
from memory.models.offline.model import OfflineChatModel
from memory.records.records import thread_id
from memory.settings import Settings
from tests.support.agents import opened, said
from tests.support.clock import Clock
from tests.support.homes import place as place
from tests.support.homes import rows
from tests.support.scripted import ScriptedChatModel, call, scripted


def opening(place: Path | None) -> Any:
    return open_agents(place, model=OfflineChatModel(), embedder="offline")


async def test_concurrent_agents_know_only_their_own_users(place: Path | None) -> None:
    users = [f"user{n}" for n in range(8)]
    async with opening(place) as agents:
        opened = [agents.agent("default", user=user) for user in users]
        await asyncio.gather(
            *(
                agent.ainvoke(said(f"Remember that the code of {user} is {user * 2}"))
                for agent, user in zip(opened, users, strict=True)
            )
        )
        for agent, user in zip(opened, users, strict=True):
            assert agent.scope == (user, thread_id(user, "default"))
            texts = [hit["text"] for hit in await agent.recall("What is the code?")]
            assert texts
            assert all(user in text for text in texts)
            assert (await agent.aget_state()).values["tick"] == 1


async def test_open_agent_and_open_agents_open_the_same_agent(tmp_path: Path) -> None:
    async with open_agents(tmp_path, model=scripted("Hello."), embedder="offline") as agents:
        await agents.agent("garden").ainvoke(said("Hi"))
    async with open_agent(tmp_path, "garden", model=scripted()) as agent:
        assert (await agent.aget_state()).values["tick"] == 1


async def test_a_busy_agent_is_called_by_the_name_that_people_know(
    place: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0")
    thread = thread_id("ada", "garden")
    async with opening(place) as agents, opening(place) as others, others.home.agent_lock(thread):
        with pytest.raises(BusyError, match=r"^the agent 'garden' is in use by process "):
            await agents.agent("garden", user="ada").ainvoke(said("Hi"))


async def test_agents_that_only_were_made_use_no_memory(tmp_path: Path) -> None:
    async with open_agents(tmp_path, model=OfflineChatModel(), embedder="offline") as agents:
        await agents.agent("warm").ainvoke(said("Hello"))
        gc.collect()
        tracemalloc.start()
        try:
            for number in range(1_000):
                agents.agent(f"agent{number}")
            gc.collect()
            left, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert left < 200_000


@pytest.mark.parametrize("many", [24, pytest.param(200, marks=pytest.mark.slow)])
async def test_used_agents_stay_in_memory_up_to_a_limit(
    place: Path | None, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.facts.sqlite.table.SCOPES_IN_MEMORY", 10)
    monkeypatch.setattr("memory.storage.checkpoints.THREADS", 10)
    warm = many // 2
    async with opening(place) as agents:
        objects, files = 0, 0
        for number in range(many):
            agent = agents.agent("default", user=f"user{number}")
            # The same words for all: caches by text are not of an agent.
            await agent.ainvoke(said("My friend Ada lives in house 7"))
            assert await agent.recall("friend")
            del agent
            if number == warm:
                objects, files = living(), open_files()
        # `isinstance` asks a lazy module for its class, and thereby imports it.
        assert sum(type(one) is ScopeIndex for one in gc.get_objects()) <= 10
        # One agent's index alone has ten.
        assert living() - objects < 5 * (many - warm)
        assert open_files() <= files + 8, "connections of a pool come and go"


def living() -> int:
    """Objects in use. A connection of SQLite keeps up to 200 dead references to its cursors."""
    gc.collect()
    return sum(type(one) is not weakref.ref for one in gc.get_objects())


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_an_abandoned_run_leaves_its_event_in_the_inbox(place: Path | None) -> None:
    async with opening(place) as agents:
        agent = agents.agent("default", user="ada")
        begun = asyncio.Event()

        async def stream() -> None:
            async for _ in agent.astream(said("Hello", id="e1"), stream_mode="updates"):
                begun.set()
                await asyncio.sleep(60)

        task = asyncio.create_task(stream())
        await asyncio.wait_for(begun.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        out = await agents.agent("default", user="ada").ainvoke(None)
        assert [tick["event_id"] for tick in out["report"]["ticks"]] == ["e1"]


TICKS = 20


async def test_many_ticks_leave_few_checkpoints_and_the_next_tick_is_right(
    place: Path | None, clock: Clock
) -> None:
    settings = Settings(reflection_interval=0, checkpoints_kept=5)
    kept = settings.checkpoints_kept
    async with opened(place, noops(), clock, settings=settings) as agent:
        for run in range(10):
            await agent.ainvoke({"events": [{"text": f"{run}.{n}"} for n in range(TICKS // 10)]})
        saver = agent.graph.checkpointer
        assert isinstance(saver, BaseCheckpointSaver)
        # The state before the newest run is kept too, for a rollback.
        assert await rows(saver, "checkpoints", "checkpoint_ns = ''") <= kept + 1
        assert await rows(saver, "checkpoints", "checkpoint_ns != ''") == 0
        assert await rows(saver, "writes", "checkpoint_ns != ''") == 0
    async with opened(place, scripted("Done."), clock, settings=settings) as agent:
        out = await agent.ainvoke(said("One more"))
    tick = out["report"]["ticks"][0]
    assert (tick["tick"], tick["reply"]) == (TICKS + 1, "Done.")
    assert len(out["messages"]) == 4 * TICKS + 2


async def test_an_unfinished_tick_keeps_the_checkpoints_that_it_needs(
    place: Path | None, clock: Clock
) -> None:
    settings = Settings(checkpoints_kept=1)
    async with opened(place, noops(), clock, settings=settings) as agent:
        await agent.ainvoke(said("Before"))
        async for _, update in agent.astream(said("Go on"), stream_mode="updates", subgraphs=True):
            if "use_tools" in update:
                break
    left = scripted("Done.")
    async with opened(place, left, clock, settings=settings) as agent:
        out = await agent.ainvoke(None)
    assert (out["report"]["ticks"][0]["reply"], len(left.calls)) == ("Done.", 1)


def noops() -> ScriptedChatModel:
    return scripted(*[one for _ in range(TICKS + 1) for one in (call("noop"), "I see.")])
