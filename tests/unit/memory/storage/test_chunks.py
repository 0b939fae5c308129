"""A history in SQLite: each message is stored once, whatever checkpoints contain it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointMetadata, empty_checkpoint

from graph.persistence import open_saver
from memory.installation.folder import DataFolder
from memory.storage.serializer import CHUNK
from tests.support.homes import folder_in, rows
from tests.support.saver_graph import stock_saver

LONG = 5 * CHUNK + 3


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return folder_in(tmp_path)


def said(count: int, word: str = "word") -> list[AnyMessage]:
    return [HumanMessage(f"{word} {place} " + "x" * 200, id=str(place)) for place in range(count)]


async def put(
    saver: BaseCheckpointSaver[str],
    messages: list[AnyMessage],
    thread: str = "t",
    namespace: str = "",
    run_id: str = "",
) -> Any:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"messages": messages, "tick": len(messages)}
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": namespace}}
    metadata: CheckpointMetadata = {"source": "loop", "run_id": run_id}
    return await saver.aput(config, checkpoint, metadata, {})


async def history(saver: BaseCheckpointSaver[str], config: Any = None) -> list[AnyMessage]:
    newest: Any = {"configurable": {"thread_id": "t"}}
    found = await saver.aget_tuple(config or newest)
    assert found is not None
    return list(found.checkpoint["channel_values"]["messages"])


async def chunks(saver: BaseCheckpointSaver[str], thread: str = "t") -> int:
    return await rows(saver, "circadian_chunks", f"thread_id = '{thread}'")


def written(folder: DataFolder) -> list[int]:
    """Bytes of each checkpoint, the oldest first."""
    with closing(sqlite3.connect(folder.checkpoints_db)) as file:
        sizes = file.execute("SELECT length(checkpoint) FROM checkpoints ORDER BY checkpoint_id")
        return [size for (size,) in sizes]


async def test_a_growing_history_is_stored_once_and_read_as_it_was(folder: DataFolder) -> None:
    every = said(LONG)
    async with open_saver(folder) as saver:
        configs = [await put(saver, every[:count]) for count in range(LONG + 1)]
        for count in range(LONG - 40, LONG):
            assert await history(saver, configs[count]) == every[:count]
        assert await history(saver) == every
        assert await chunks(saver) == LONG // CHUNK
    sizes = written(folder)
    assert max(sizes[-CHUNK:]) < 1.2 * max(sizes[: CHUNK + 1])
    async with open_saver(folder) as saver:
        assert await history(saver) == every
        listed = [one async for one in saver.alist({"configurable": {"thread_id": "t"}})]
    assert [len(one.checkpoint["channel_values"]["messages"]) for one in listed] == (
        list(range(LONG, LONG - len(listed), -1))
    )


async def test_an_edit_makes_one_chunk_anew_and_the_state_before_it_stays(
    folder: DataFolder,
) -> None:
    before = said(LONG)
    after = [*before]
    after[CHUNK + 5] = AIMessage("as it should have been", id=str(CHUNK + 5))
    async with open_saver(folder) as saver:
        old = await put(saver, before)
        await put(saver, after)
        assert await chunks(saver) == LONG // CHUNK + 1
        assert await history(saver) == after
        assert await history(saver, old) == before


async def test_what_no_checkpoint_contains_any_more_is_gone(folder: DataFolder) -> None:
    async with open_saver(folder, keep=2) as saver:
        await put(saver, said(LONG, word="forgotten"))
        for _ in range(3):
            await put(saver, said(2 * CHUNK))
        assert await chunks(saver) == LONG // CHUNK + 2  # until a chunk is stored or all is pruned
        await saver.aprune(["t"])
        assert await chunks(saver) == 2
        assert await history(saver) == said(2 * CHUNK)
    assert b"forgotten" not in folder.checkpoints_db.read_bytes()


async def test_a_new_chunk_takes_the_place_of_those_that_are_out_of_use(folder: DataFolder) -> None:
    async with open_saver(folder, keep=1) as saver:
        await put(saver, said(LONG, word="compacted"))
        await put(saver, [])
        await put(saver, said(CHUNK))
        assert await chunks(saver) == 1


async def test_a_copy_outlives_its_thread(folder: DataFolder) -> None:
    async with open_saver(folder) as saver:
        await put(saver, said(LONG))
        await saver.acopy_thread("t", "copy")
        await saver.adelete_thread("t")
        assert await chunks(saver) == 0
    async with open_saver(folder) as saver:
        assert await history(saver, {"configurable": {"thread_id": "copy"}}) == said(LONG)


async def test_a_deleted_run_takes_its_chunks_with_it(folder: DataFolder) -> None:
    async with open_saver(folder) as saver:
        await put(saver, said(CHUNK), run_id="a")
        await put(saver, said(3 * CHUNK), run_id="b")
        await put(saver, said(2 * CHUNK), thread="other", run_id="c")
        await saver.adelete_for_runs(["b"])
        assert (await chunks(saver), await chunks(saver, "other")) == (1, 2)
        assert await history(saver) == said(CHUNK)


async def test_the_steps_of_a_night_share_the_chunks_of_the_root(folder: DataFolder) -> None:
    async with open_saver(folder) as saver:
        await put(saver, said(LONG))
        step = await put(saver, said(LONG), namespace="sleep:1")
        assert await chunks(saver) == LONG // CHUNK
        assert await history(saver, step) == said(LONG)


async def test_a_file_from_before_chunks_is_read_and_goes_on(folder: DataFolder) -> None:
    async with stock_saver(folder.checkpoints_db) as stock:
        await put(stock, said(LONG))
    async with open_saver(folder) as saver:
        assert await history(saver) == said(LONG)
        await put(saver, [*said(LONG), AIMessage("and on", id="on")])
        assert (await history(saver))[-1].text == "and on"


async def test_a_checkpoint_is_not_stored_without_its_chunks(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_saver(folder) as saver:
        await put(saver, said(CHUNK))

        def fails(*_: object) -> bool:
            raise sqlite3.OperationalError("disk full")

        with monkeypatch.context() as patched:
            patched.setattr(type(saver), "_put_chunks", fails)
            with pytest.raises(Exception, match="disk full"):
                await put(saver, said(2 * CHUNK))
        assert await history(saver) == said(CHUNK)
        assert await rows(saver, "checkpoints") == 1


async def test_an_older_program_says_that_it_cannot_read_the_history(folder: DataFolder) -> None:
    async with open_saver(folder) as saver:
        await put(saver, said(CHUNK))
    async with stock_saver(folder.checkpoints_db) as stock:
        with pytest.raises(NotImplementedError, match="chunks"):
            await history(stock)
