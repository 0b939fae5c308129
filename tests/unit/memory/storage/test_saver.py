"""The checkpointer's retention: what is kept, what goes, and how large the file gets."""

from pathlib import Path

import pytest

from graph.persistence import open_saver
from memory.installation.opening import Installation
from tests.support.homes import fetch, folder_in, rows
from tests.support.homes import home as home
from tests.support.saver_graph import DURABILITIES, Durability, Story, ask, pragma, thread

SUBGRAPH = "checkpoint_ns > ''"
ROOT_GRAPH = "checkpoint_ns = ''"


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_the_newest_checkpoints_of_a_thread_are_kept(
    home: Installation, durability: Durability
) -> None:
    async with open_saver(home, keep=7) as saver:
        graph = Story().compile(saver)
        for _ in range(9):
            await graph.ainvoke({}, thread(), durability=durability)
        assert await rows(saver, "checkpoints", ROOT_GRAPH) == 7
        kept = [item async for item in saver.alist(thread())]
        writes = {item.config["configurable"]["checkpoint_id"] for item in kept}
        found = await fetch(saver, "SELECT checkpoint_id FROM writes")
        assert {row[0] for row in found} <= writes


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_finished_run_leaves_no_subgraph_checkpoints(
    home: Installation, durability: Durability
) -> None:
    async with open_saver(home) as saver:
        graph = Story().compile(saver)
        for _ in range(3):
            await graph.ainvoke({}, thread(), durability=durability)
        assert await rows(saver, "checkpoints", SUBGRAPH) == 0
        assert await rows(saver, "writes", SUBGRAPH) == 0


async def test_a_thread_is_pruned_without_touching_another(home: Installation) -> None:
    async with open_saver(home, keep=2) as saver:
        waiting = Story(ask).compile(saver)
        await waiting.ainvoke({}, thread("other"))
        before = [item async for item in saver.alist(thread("other"))]
        graph = Story().compile(saver)
        for _ in range(3):
            await graph.ainvoke({}, thread("t"))
        assert [item async for item in saver.alist(thread("other"))] == before


async def test_a_stateful_subgraph_keeps_its_state(home: Installation) -> None:
    async with open_saver(home, keep=1) as saver:
        graph = Story().compile(saver, stateful=True)
        for _ in range(3):
            await graph.ainvoke({}, thread())
        assert await rows(saver, "checkpoints", "checkpoint_ns = 'awake'") > 0


@pytest.mark.parametrize("home", ["database"], indirect=True)
@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_value_is_deleted_with_the_last_checkpoint_that_refers_to_it(
    home: Installation, durability: Durability
) -> None:
    async with open_saver(home, keep=4) as saver:
        graph = Story().compile(saver)
        await graph.ainvoke({"kept": ["from the first run"]}, thread(), durability=durability)
        for run in range(6):
            await graph.ainvoke({"listed": [run]}, thread(), durability=durability)
        stored = await fetch(saver, "SELECT checkpoint_ns, channel, version FROM checkpoint_blobs")
        referred = await fetch(
            saver,
            "SELECT checkpoint_ns, version.key, version.value FROM checkpoints,"
            " jsonb_each_text(checkpoint -> 'channel_versions') AS version",
        )
        assert set(stored) <= set(referred)
        assert {channel for _, channel, _ in stored} >= {"kept", "listed"}
        kept = [item async for item in saver.alist(thread())]
        assert [one.checkpoint["channel_values"]["kept"] for one in kept] == (
            [["from the first run"]] * len(kept)
        )
        assert kept[0].checkpoint["channel_values"]["listed"] == [5]


async def test_the_file_does_not_grow_over_many_runs(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)

    async def run(times: int) -> int:
        async with open_saver(folder, keep=10) as saver:
            graph = Story().compile(saver)
            for _ in range(times):
                await graph.ainvoke({"blob": "x" * 5_000}, thread())
        return folder.checkpoints_db.stat().st_size  # its log is gone once it is closed

    after_20 = await run(20)
    after_80 = await run(60)
    assert after_80 <= 1.5 * after_20


async def test_a_large_file_shrinks_again(tmp_path: Path) -> None:
    async with open_saver(folder_in(tmp_path), keep=3) as saver:
        graph = Story().compile(saver)
        await graph.ainvoke({"blob": "x" * 2_000_000}, thread())
        large = await pragma(saver, "page_count")
        for _ in range(4):
            await graph.ainvoke({"blob": ""}, thread())
        assert await pragma(saver, "page_count") < large / 5
