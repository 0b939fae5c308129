"""The checkpoint file: whole transactions, strict loading, and how it is opened."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.graph import END, START, StateGraph
from langgraph.types import Interrupt, Overwrite
from pydantic import BaseModel
from typing_extensions import TypedDict

from graph.persistence import open_saver
from memory.errors import FolderError
from memory.sqlite.saver import CircadianSaver
from tests.saver_graph import Story, ask, pragma, rows, stock_saver, thread


class Loose(TypedDict, total=False):
    """A state that takes anything."""

    value: Any


class Secret(BaseModel):
    """A class that no checkpoint may bring back to life."""

    word: str


def checkpoint_of(value: Any) -> Checkpoint:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"value": value}
    return checkpoint


async def put(saver: CircadianSaver, value: Any, namespace: str = "") -> Any:
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": namespace}}
    return await saver.aput(config, checkpoint_of(value), {"source": "loop"}, {})


def write_elsewhere(path: Path) -> None:
    """Write through a connection of its own, without waiting for anybody."""
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
        other.execute("CREATE TABLE IF NOT EXISTS probe (x)")


async def test_a_checkpoint_reads_back_as_langgraphs_own_saver_would_give_it(
    tmp_path: Path,
) -> None:
    async with open_saver(tmp_path / "c.db") as saver:
        await Story(ask).compile(saver).ainvoke({}, thread(run_id="a"))
        ours = [item async for item in saver.alist(None)]
    async with stock_saver(tmp_path / "c.db") as stock:
        assert [item async for item in stock.alist(None)] == ours
    assert {item.metadata["run_id"] for item in ours} == {"a"}
    assert any(item.pending_writes for item in ours)
    assert any(item.parent_config for item in ours)


async def test_an_object_in_the_state_comes_back_as_data_and_never_as_its_class(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def node(state: Loose) -> Loose:
        return {"value": Secret(word="open")}

    builder = StateGraph(Loose)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    async with open_saver(tmp_path / "c.db") as saver:
        graph = builder.compile(checkpointer=saver)
        with caplog.at_level(logging.CRITICAL):
            await graph.ainvoke({"value": 1}, thread())
            state = await graph.aget_state(thread())
        assert state.values == {"value": {"word": "open"}}


async def test_what_a_graph_needs_comes_back_as_it_was(tmp_path: Path) -> None:
    value = [HumanMessage("hi", id="1"), AIMessage("yes", id="2"), Interrupt("q", id="3")]
    async with open_saver(tmp_path / "c.db") as saver:
        stored = await put(saver, [*value, Overwrite([1])])
        found = await saver.aget_tuple(stored)
    assert found is not None
    assert found.checkpoint["channel_values"]["value"] == [*value, Overwrite([1])]


async def test_a_tasks_writes_are_stored_all_or_none(tmp_path: Path) -> None:
    async with open_saver(tmp_path / "c.db") as saver:
        config = await put(saver, 1)
        await saver.conn.executescript(
            "CREATE TRIGGER refuse BEFORE INSERT ON writes WHEN NEW.channel = 'bad'"
            " BEGIN SELECT RAISE(FAIL, 'refused'); END"
        )
        with pytest.raises(sqlite3.IntegrityError, match="refused"):
            await saver.aput_writes(config, [("good", 1), ("bad", 2)], "task")
        await put(saver, 2)
        assert await rows(saver, "writes") == 0


async def test_a_checkpoint_that_cannot_be_pruned_behind_is_not_stored(tmp_path: Path) -> None:
    async with open_saver(tmp_path / "c.db", keep=1) as saver:
        await put(saver, 1)
        await saver.conn.executescript(
            "CREATE TRIGGER refuse BEFORE DELETE ON checkpoints"
            " BEGIN SELECT RAISE(FAIL, 'refused'); END"
        )
        with pytest.raises(sqlite3.IntegrityError, match="refused"):
            await put(saver, 2)
        assert [item.checkpoint["channel_values"] async for item in saver.alist(None)] == [
            {"value": 1}
        ]


@pytest.mark.parametrize("turns", range(12))
async def test_a_cancelled_put_keeps_no_lock_on_the_file(tmp_path: Path, turns: int) -> None:
    path = tmp_path / "c.db"
    async with open_saver(path) as saver:
        config = await put(saver, 1)
        for attempt in (put(saver, 2, "sub"), saver.aput_writes(config, [("a", 1)], "task")):
            task = asyncio.ensure_future(attempt)
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            await saver.aget_tuple(config)
            await asyncio.to_thread(write_elsewhere, path)


async def test_the_saver_can_be_used_while_its_history_is_walked(tmp_path: Path) -> None:
    async with open_saver(tmp_path / "c.db") as saver:
        await Story().compile(saver).ainvoke({}, thread())

        async def walk() -> int:
            seen = 0
            async for item in saver.alist(thread()):
                await saver.aput_writes(item.config, [("blob", "x")], "task")
                seen += 1
            return seen

        assert await asyncio.wait_for(walk(), 5.0) == 5


async def test_two_connections_write_the_same_file_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    async with open_saver(path, keep=3) as one, open_saver(path, keep=3) as two:
        graphs = [Story().compile(one), Story().compile(two)]
        for _ in range(5):
            await asyncio.gather(
                *(graph.ainvoke({}, thread(f"t{n}")) for n, graph in enumerate(graphs))
            )
        for name in ("t0", "t1"):
            assert await rows(one, "checkpoints", f"thread_id = '{name}'") == 3


async def test_every_commit_is_on_disk_and_readers_never_wait(tmp_path: Path) -> None:
    full, incremental = 2, 2
    async with open_saver(tmp_path / "c.db") as saver:
        assert await pragma(saver, "journal_mode") == "wal"
        assert await pragma(saver, "synchronous") == full
        assert await pragma(saver, "auto_vacuum") == incremental
        assert await pragma(saver, "busy_timeout") >= 10_000


async def test_a_file_that_is_no_database_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    path.write_bytes(b"this is not a database " * 50)
    with pytest.raises(FolderError, match=r"cannot open .*c\.db: file is not a database"):
        async with open_saver(path):
            raise AssertionError("opened")


async def test_a_folder_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"cannot open .*c\.db: unable to open"):
        async with open_saver(tmp_path / "none" / "c.db"):
            raise AssertionError("opened")
