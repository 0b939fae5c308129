"""Checkpoints as they are stored: whole transactions, strict loading, and how a file is opened."""

import asyncio
import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, empty_checkpoint
from langgraph.graph import END, START, StateGraph
from langgraph.types import Interrupt, Overwrite
from pydantic import BaseModel
from typing_extensions import TypedDict

from graph.persistence import open_saver
from memory.errors import FolderError, MemoryStoreError
from memory.installation.opening import Installation
from tests.support.homes import folder_in, refuse, rows
from tests.support.homes import home as home
from tests.support.saver_graph import Story, ask, pragma, stock_saver, thread

REFUSED = (sqlite3.IntegrityError, MemoryStoreError)


class Loose(TypedDict, total=False):
    value: Any


class Secret(BaseModel):
    """A class that no checkpoint may bring back to life."""

    word: str


def checkpoint_of(value: Any) -> Checkpoint:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"value": value}
    return checkpoint


async def put(saver: BaseCheckpointSaver[str], value: Any, namespace: str = "") -> Any:
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": namespace}}
    new: Any = {"value": "1"}
    checkpoint = checkpoint_of(value)
    checkpoint["channel_versions"] = new
    return await saver.aput(config, checkpoint, {"source": "loop"}, new)


async def test_a_checkpoint_reads_back_as_from_langgraphs_own_saver(home: Installation) -> None:
    async with open_saver(home) as saver:
        await Story(ask).compile(saver).ainvoke({"listed": [1]}, thread(run_id="a"))
        ours = [item async for item in saver.alist(None)]
    async with stock_saver(home) as theirs:
        assert [item async for item in theirs.alist(None)] == ours
    assert {item.metadata["run_id"] for item in ours} == {"a"}
    assert any(item.pending_writes for item in ours)
    assert any(item.parent_config for item in ours)


async def test_an_object_in_the_state_is_loaded_as_plain_data(
    home: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    async def node(state: Loose) -> Loose:
        return {"value": Secret(word="open")}

    builder = StateGraph(Loose)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    async with open_saver(home) as saver:
        graph = builder.compile(checkpointer=saver)
        with caplog.at_level(logging.CRITICAL):
            await graph.ainvoke({"value": 1}, thread())
            state = await graph.aget_state(thread())
        assert state.values == {"value": {"word": "open"}}


async def test_safe_types_are_loaded_unchanged(home: Installation) -> None:
    value = [HumanMessage("hi", id="1"), AIMessage("yes", id="2"), Interrupt("q", id="3")]
    async with open_saver(home) as saver:
        stored = await put(saver, [*value, Overwrite([1])])
        found = await saver.aget_tuple(stored)
    assert found is not None
    assert found.checkpoint["channel_values"]["value"] == [*value, Overwrite([1])]


async def test_a_tasks_writes_are_stored_all_or_none(home: Installation) -> None:
    async with open_saver(home) as saver:
        config = await put(saver, 1)
        await refuse(saver, "INSERT", "writes", "NEW.channel = 'bad'")
        with pytest.raises(REFUSED, match="refused"):
            await saver.aput_writes(config, [("good", 1), ("bad", 2)], "task")
        await put(saver, 2)
        assert await rows(saver, "writes") == 0


async def test_a_checkpoint_is_not_stored_if_pruning_fails(home: Installation) -> None:
    async with open_saver(home, keep=1) as saver:
        await put(saver, 1)
        await refuse(saver, "DELETE", "checkpoints")
        with pytest.raises(REFUSED, match="refused"):
            await put(saver, 2)
        assert [item.checkpoint["channel_values"] async for item in saver.alist(None)] == [
            {"value": 1}
        ]


@pytest.mark.parametrize("turns", range(12))
async def test_a_cancelled_put_is_whole_or_absent_and_holds_no_lock(
    home: Installation, turns: int
) -> None:
    async with open_saver(home) as saver, open_saver(home) as other:
        config = await put(saver, 1)
        for attempt in (put(saver, [2]), saver.aput_writes(config, [("a", 1), ("b", 1)], "task")):
            task = asyncio.ensure_future(attempt)
            for _ in range(turns):
                await asyncio.sleep(0)
            await asyncio.sleep(0.0003 * turns)  # a server's answer takes time, not turns
            task.cancel()
            await asyncio.wait([task])
            async with asyncio.timeout(5.0):
                found = await saver.aget_tuple(config)
                await put(other, 3)
        assert found is not None
        assert len(found.pending_writes or []) in (0, 2)
        values = [item.checkpoint["channel_values"] async for item in saver.alist(None)]
        assert [one for one in values if one["value"] not in (1, [2], 3)] == []


async def test_the_saver_can_be_used_while_its_history_is_listed(home: Installation) -> None:
    async with open_saver(home) as saver:
        await Story().compile(saver).ainvoke({}, thread())

        async def walk() -> int:
            seen = 0
            async for item in saver.alist(thread()):
                await saver.aput_writes(item.config, [("blob", "x")], "task")
                seen += 1
            return seen

        assert await asyncio.wait_for(walk(), 5.0) == 5


async def test_two_connections_write_at_the_same_time(home: Installation) -> None:
    async with open_saver(home, keep=3) as one, open_saver(home, keep=3) as two:
        graphs = [Story().compile(one), Story().compile(two)]
        for _ in range(5):
            await asyncio.gather(
                *(graph.ainvoke({}, thread(f"t{n}")) for n, graph in enumerate(graphs))
            )
        for name in ("t0", "t1"):
            assert await rows(one, "checkpoints", f"thread_id = '{name}'") == 3


async def test_two_writers_of_a_thread_delete_none_of_each_others_values(
    home: Installation,
) -> None:
    """What one finds superfluous may be what the other, not yet stored, refers to."""
    async with open_saver(home, keep=1) as one, open_saver(home, keep=1) as two:
        for n in range(20):
            place: Any = {"configurable": {"thread_id": str(n), "checkpoint_ns": ""}}
            old, new, unchanged = checkpoint_of([1]), checkpoint_of([2]), checkpoint_of([1])
            for checkpoint, version in ((old, "1"), (new, "2"), (unchanged, "1")):
                checkpoint["channel_versions"] = {"value": version}
            await one.aput(place, old, {"source": "loop"}, {"value": "1"})
            await asyncio.gather(
                one.aput(place, new, {"source": "loop"}, {"value": "2"}),
                two.aput(place, unchanged, {"source": "loop"}, {}),
            )
            async for item in one.alist(place):
                assert item.checkpoint["channel_values"].get("value") in ([1], [2])


async def test_tables_can_be_made_concurrently(home: Installation) -> None:
    async def one(name: str) -> None:
        async with open_saver(home) as saver:
            await Story().compile(saver).ainvoke({}, thread(name))

    await asyncio.gather(*(one(str(n)) for n in range(5)))
    async with open_saver(home) as saver:
        assert await rows(saver, "checkpoints", "checkpoint_ns = ''") == 25


async def test_every_commit_is_on_disk_and_readers_never_wait(tmp_path: Path) -> None:
    full, incremental = 2, 2
    async with open_saver(folder_in(tmp_path)) as saver:
        assert await pragma(saver, "journal_mode") == "wal"
        assert await pragma(saver, "synchronous") == full
        assert await pragma(saver, "auto_vacuum") == incremental
        assert await pragma(saver, "busy_timeout") >= 10_000


async def test_a_missing_folder_is_one_clear_error(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    folder.path.rename(tmp_path / "elsewhere")
    with pytest.raises(FolderError, match=r"cannot open .*checkpoints\.db: unable to open"):
        async with open_saver(folder):
            raise AssertionError("opened")
