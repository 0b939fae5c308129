"""A history: each message is stored once, whatever checkpoints contain it."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointMetadata, empty_checkpoint

from graph.persistence import open_saver
from memory.installation.folder import DataFolder
from memory.installation.opening import Installation
from memory.storage.checkpoints import CHUNK
from tests.support.homes import fetch, refuse, rows
from tests.support.homes import home as home
from tests.support.saver_graph import stock_saver

LONG = 5 * CHUNK + 3


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
    new: Any = {"messages": checkpoint["id"]}
    checkpoint["channel_versions"] = new
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": namespace}}
    metadata: CheckpointMetadata = {"source": "loop", "run_id": run_id}
    return await saver.aput(config, checkpoint, metadata, new)


async def history(saver: BaseCheckpointSaver[str], config: Any = None) -> list[AnyMessage]:
    newest: Any = {"configurable": {"thread_id": "t"}}
    found = await saver.aget_tuple(config or newest)
    assert found is not None
    return list(found.checkpoint["channel_values"]["messages"])


async def chunks(saver: BaseCheckpointSaver[str], thread: str = "t") -> int:
    return await rows(saver, "circadian_chunks", f"thread_id = '{thread}'")


async def written(saver: BaseCheckpointSaver[str], home: Installation) -> list[int]:
    asked = "SELECT length(checkpoint) FROM checkpoints ORDER BY checkpoint_id"
    if not isinstance(home, DataFolder):
        asked = "SELECT length(blob) FROM checkpoint_blobs ORDER BY version"
    return [size for (size,) in await fetch(saver, asked)]


async def test_a_growing_history_is_stored_once_and_read_as_it_was(home: Installation) -> None:
    every = said(LONG)
    async with open_saver(home) as saver:
        configs = [await put(saver, every[:count]) for count in range(LONG + 1)]
        for count in range(LONG - 40, LONG):
            assert await history(saver, configs[count]) == every[:count]
        assert await history(saver) == every
        assert await chunks(saver) == LONG // CHUNK
    async with open_saver(home) as saver:
        sizes = await written(saver, home)
        assert max(sizes) < 1.1 * len("x" * 200) * 2 * CHUNK
        assert await history(saver) == every
        listed = [one async for one in saver.alist({"configurable": {"thread_id": "t"}})]
    assert [len(one.checkpoint["channel_values"]["messages"]) for one in listed] == (
        list(range(LONG, LONG - len(listed), -1))
    )


async def test_an_edit_makes_one_chunk_anew_and_the_state_before_it_stays(
    home: Installation,
) -> None:
    before = said(LONG)
    after = [*before]
    after[CHUNK + 5] = AIMessage("as it should have been", id=str(CHUNK + 5))
    async with open_saver(home) as saver:
        old = await put(saver, before)
        await put(saver, after)
        assert await chunks(saver) == LONG // CHUNK + 1
        assert await history(saver) == after
        assert await history(saver, old) == before


async def test_what_no_checkpoint_contains_any_more_is_gone(home: Installation) -> None:
    async with open_saver(home, keep=2) as saver:
        await put(saver, said(LONG, word="forgotten"))
        await put(saver, said(2 * CHUNK))
        assert await chunks(saver) == LONG // CHUNK + 2
        await saver.aprune(["t"])
        assert await chunks(saver) == 2
        assert await history(saver) == said(2 * CHUNK)
    if isinstance(home, DataFolder):
        assert b"forgotten" not in home.checkpoints_db.read_bytes()


async def test_chunks_go_with_the_last_checkpoint_that_contains_them(home: Installation) -> None:
    async with open_saver(home, keep=2) as saver:
        before = said(LONG, word="compacted")
        await put(saver, before, thread="other")
        await put(saver, before)
        await put(saver, before[: 3 * CHUNK])
        assert await chunks(saver) == LONG // CHUNK
        for _ in range(2):
            await put(saver, before[:CHUNK])
        # In a folder those that are out of use stay until a new one is stored.
        assert await chunks(saver) == (LONG // CHUNK if isinstance(home, DataFolder) else 1)
        assert await chunks(saver, "other") == LONG // CHUNK
        assert await history(saver) == before[:CHUNK]


async def test_a_new_chunk_takes_the_place_of_those_that_are_out_of_use(home: Installation) -> None:
    async with open_saver(home, keep=1) as saver:
        await put(saver, said(LONG, word="compacted"))
        await put(saver, [])
        await put(saver, said(CHUNK))
        assert await chunks(saver) == 1


async def test_a_copy_outlives_its_thread(home: Installation) -> None:
    async with open_saver(home) as saver:
        await put(saver, said(LONG))
        await saver.acopy_thread("t", "copy")
        await saver.adelete_thread("t")
        assert await chunks(saver) == 0
    async with open_saver(home) as saver:
        assert await history(saver, {"configurable": {"thread_id": "copy"}}) == said(LONG)


@pytest.mark.parametrize("how", ["adelete_thread", "aprune"])
async def test_a_thread_is_not_deleted_without_its_chunks(home: Installation, how: str) -> None:
    async with open_saver(home) as saver:
        await put(saver, said(CHUNK))
        await refuse(saver, "DELETE", "circadian_chunks")
        with pytest.raises(Exception, match="refused"):
            await (
                saver.aprune(["t"], strategy="delete")
                if how == "aprune"
                else saver.adelete_thread("t")
            )
        assert await history(saver) == said(CHUNK)


async def test_a_deleted_run_takes_its_chunks_with_it(home: Installation) -> None:
    async with open_saver(home) as saver:
        await put(saver, said(CHUNK), run_id="a")
        await put(saver, said(3 * CHUNK), run_id="b")
        await put(saver, said(2 * CHUNK), thread="other", run_id="c")
        await saver.adelete_for_runs(["b"])
        assert (await chunks(saver), await chunks(saver, "other")) == (1, 2)
        assert await history(saver) == said(CHUNK)


async def test_the_steps_of_a_night_share_the_chunks_of_the_root(home: Installation) -> None:
    async with open_saver(home) as saver:
        await put(saver, said(LONG))
        step = await put(saver, said(LONG), namespace="sleep:1")
        assert await chunks(saver) == LONG // CHUNK
        assert await history(saver, step) == said(LONG)


async def test_what_is_from_before_chunks_is_read_and_goes_on(home: Installation) -> None:
    async with stock_saver(home) as stock:
        await put(stock, said(LONG))
    async with open_saver(home) as saver:
        assert await history(saver) == said(LONG)
        await put(saver, [*said(LONG), AIMessage("and on", id="on")])
        assert (await history(saver))[-1].text == "and on"


async def test_a_checkpoint_is_not_stored_without_its_chunks(home: Installation) -> None:
    async with open_saver(home) as saver:
        await put(saver, said(CHUNK))
        await refuse(saver, "INSERT", "circadian_chunks")
        with pytest.raises(Exception, match="refused"):
            await put(saver, said(2 * CHUNK))
        assert await history(saver) == said(CHUNK)
        assert await rows(saver, "checkpoints") == 1


async def test_an_older_program_says_that_it_cannot_read_the_history(home: Installation) -> None:
    async with open_saver(home) as saver:
        await put(saver, said(CHUNK))
    async with stock_saver(home) as stock:
        with pytest.raises(NotImplementedError, match="chunks"):
            await history(stock)
