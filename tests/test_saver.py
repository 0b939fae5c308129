"""The checkpointer's retention: what is kept, what goes, and how large the file gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.persistence import open_saver
from tests.saver_graph import DURABILITIES, Durability, Story, ask, pragma, rows, thread

SUBGRAPH = "checkpoint_ns > ''"
ROOT_GRAPH = "checkpoint_ns = ''"


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_the_newest_checkpoints_of_a_thread_are_kept(
    tmp_path: Path, durability: Durability
) -> None:
    async with open_saver(tmp_path / "c.db", keep=7) as saver:
        graph = Story().compile(saver)
        for _ in range(9):
            await graph.ainvoke({}, thread(), durability=durability)
        assert await rows(saver, "checkpoints", ROOT_GRAPH) == 7
        kept = [item async for item in saver.alist(thread())]
        writes = {item.config["configurable"]["checkpoint_id"] for item in kept}
        found = await saver.conn.execute_fetchall("SELECT checkpoint_id FROM writes")
        assert {row[0] for row in found} <= writes


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_finished_run_leaves_nothing_of_its_subgraphs(
    tmp_path: Path, durability: Durability
) -> None:
    async with open_saver(tmp_path / "c.db") as saver:
        graph = Story().compile(saver)
        for _ in range(3):
            await graph.ainvoke({}, thread(), durability=durability)
        assert await rows(saver, "checkpoints", SUBGRAPH) == 0
        assert await rows(saver, "writes", SUBGRAPH) == 0


async def test_a_thread_is_pruned_without_touching_another(tmp_path: Path) -> None:
    async with open_saver(tmp_path / "c.db", keep=2) as saver:
        waiting = Story(ask).compile(saver)
        await waiting.ainvoke({}, thread("other"))
        before = [item async for item in saver.alist(thread("other"))]
        graph = Story().compile(saver)
        for _ in range(3):
            await graph.ainvoke({}, thread("t"))
        assert [item async for item in saver.alist(thread("other"))] == before


async def test_a_subgraph_with_a_thread_of_its_own_keeps_its_state(tmp_path: Path) -> None:
    async with open_saver(tmp_path / "c.db", keep=1) as saver:
        graph = Story().compile(saver, stateful=True)
        for _ in range(3):
            await graph.ainvoke({}, thread())
        assert await rows(saver, "checkpoints", "checkpoint_ns = 'awake'") > 0


def file_size(path: Path) -> int:
    """Bytes of a closed database: its log is gone then."""
    return path.stat().st_size


async def test_the_file_stays_as_large_over_many_runs(tmp_path: Path) -> None:
    path = tmp_path / "c.db"

    async def run(times: int) -> int:
        async with open_saver(path, keep=10) as saver:
            graph = Story().compile(saver)
            for _ in range(times):
                await graph.ainvoke({"blob": "x" * 5_000}, thread())
        return file_size(path)

    after_50 = await run(50)
    after_200 = await run(150)
    assert after_200 <= 1.5 * after_50


async def test_a_file_that_was_large_once_gets_small_again(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    async with open_saver(path, keep=3) as saver:
        graph = Story().compile(saver)
        await graph.ainvoke({"blob": "x" * 2_000_000}, thread())
        large = await pragma(saver, "page_count")
        for _ in range(4):
            await graph.ainvoke({"blob": ""}, thread())
        assert await pragma(saver, "page_count") < large / 5
