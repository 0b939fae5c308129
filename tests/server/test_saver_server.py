"""What a server asks of a checkpointer: rolling runs back, copying and pruning threads."""

from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.serde.types import RESUME
from langgraph.types import Command

from graph.persistence import open_saver
from memory.installation.opening import Installation
from memory.storage.postgres.saver import CircadianPostgresSaver
from memory.storage.sqlite.saver import CircadianSqliteSaver
from tests.support.homes import home as home
from tests.support.homes import rows
from tests.support.saver_graph import DURABILITIES, Durability, Graph, Story, answer, ask, thread

OPTIONAL = ["adelete_thread", "adelete_for_runs", "acopy_thread", "aprune"]


async def state(graph: Graph, name: str = "t") -> Any:
    found = await graph.aget_state(thread(name), subgraphs=True)
    return found.values, found.next, [asked.value for asked in found.interrupts]


@pytest.mark.parametrize("saver", [CircadianSqliteSaver, CircadianPostgresSaver])
@pytest.mark.parametrize("method", OPTIONAL)
def test_the_savers_have_every_method_that_a_server_uses(
    saver: type[BaseCheckpointSaver[str]], method: str
) -> None:
    # It compares with the base class, and does without where they are the same.
    assert getattr(saver, method) is not getattr(BaseCheckpointSaver, method)


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("keep", [1, 50])
async def test_a_run_rolled_back_leaves_the_thread_as_it_was(
    home: Installation, keep: int, durability: Durability
) -> None:
    async with open_saver(home, keep=keep) as saver:
        graph = Story().compile(saver)
        await graph.ainvoke({"blob": "a"}, thread(run_id="a"), durability=durability)
        before = await state(graph)
        await graph.ainvoke({"blob": "b"}, thread(run_id="b"), durability=durability)
        assert await state(graph) != before
        await saver.adelete_for_runs(["b"])
        assert await state(graph) == before
        assert await rows(saver, "writes", "checkpoint_ns > ''") == 0


async def test_a_first_run_rolled_back_leaves_an_empty_thread(home: Installation) -> None:
    async with open_saver(home) as saver:
        await Story(ask).compile(saver).ainvoke({}, thread(run_id="a"))
        await saver.adelete_for_runs(["other", "a"])
        assert await rows(saver, "checkpoints") == await rows(saver, "writes") == 0


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("answered", [True, False])
async def test_a_question_is_open_again_after_a_later_run_is_rolled_back(
    home: Installation, durability: Durability, answered: bool
) -> None:
    async with open_saver(home, keep=1) as saver:
        story = Story(ask)
        graph = story.compile(saver)
        await graph.ainvoke({}, thread(run_id="a"), durability=durability)
        before = await state(graph)
        story.act = ask if answered else answer
        later: Any = Command(resume="yes") if answered else {}
        await graph.ainvoke(later, thread(run_id="b"), durability=durability)
        await saver.adelete_for_runs(["b"])
        assert await state(graph) == before
        story.act, story.log = ask, []
        result = await graph.ainvoke(Command(resume="no"), thread(run_id="c"))
        assert result == {"count": 111, "answer": "no"}
        assert story.log == ["act", "last", "close"]


async def test_rolling_back_one_thread_leaves_the_others(home: Installation) -> None:
    async with open_saver(home) as saver:
        graph = Story().compile(saver)
        await graph.ainvoke({}, thread("kept", "a"))
        kept = await rows(saver, "checkpoints")
        await graph.ainvoke({}, thread("t", "b"))
        await saver.adelete_for_runs(["b"])
        assert await rows(saver, "checkpoints") == kept


async def test_a_write_belongs_to_its_last_run(home: Installation) -> None:
    async with open_saver(home) as saver:
        place: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        stored: Any = await saver.aput(place, empty_checkpoint(), {"source": "loop"}, {})
        for run in ("a", "b"):
            bound: Any = {**stored, "metadata": {"run_id": run}}
            await saver.aput_writes(bound, [(RESUME, run)], "answered again")
            await saver.aput_writes(bound, [("blob", run)], "done once")

        async def written() -> list[tuple[str, Any]]:
            found = await saver.aget_tuple(stored)
            assert found is not None
            return sorted((channel, value) for _, channel, value in found.pending_writes or [])

        assert await written() == [(RESUME, "b"), ("blob", "a")]
        await saver.adelete_for_runs(["b"])
        assert await written() == [("blob", "a")]


async def test_a_copied_thread_is_independent(home: Installation) -> None:
    async with open_saver(home) as saver:
        graph = Story(ask).compile(saver)
        await graph.ainvoke({}, thread(run_id="a"))
        before = await state(graph)
        await saver.acopy_thread("t", "copy")
        assert await state(graph, "copy") == before
        await graph.ainvoke(Command(resume="yes"), thread("copy", "b"))
        assert await state(graph) == before
        assert (await state(graph, "copy"))[0] == {"count": 111, "answer": "yes"}


async def test_metadata_of_a_copy_name_its_own_thread(home: Installation) -> None:
    async with open_saver(home) as saver:
        place: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        described: Any = {"source": "input", "thread_id": "t"}
        await saver.aput(place, empty_checkpoint(), described, {})
        await saver.acopy_thread("t", "copy")
        copy = await saver.aget_tuple(thread("copy"))
        assert copy is not None
        assert copy.metadata == {"source": "input", "thread_id": "copy"}


async def test_rolling_back_a_run_keeps_copies_of_its_thread(home: Installation) -> None:
    async with open_saver(home) as saver:
        graph = Story().compile(saver)
        await graph.ainvoke({}, thread(run_id="a"))
        before = await state(graph)
        await saver.acopy_thread("t", "copy")
        await saver.adelete_for_runs(["a"])
        assert await state(graph, "copy") == before


async def test_a_thread_cannot_be_copied_onto_another(home: Installation) -> None:
    async with open_saver(home) as saver:
        graph = Story().compile(saver)
        await graph.ainvoke({}, thread("t"))
        await graph.ainvoke({"blob": "own"}, thread("other"))
        before = await state(graph, "other")
        with pytest.raises(ValueError, match="other has checkpoints"):
            await saver.acopy_thread("t", "other")
        assert await state(graph, "other") == before


@pytest.mark.parametrize("stateful", [False, True])
async def test_pruning_to_the_latest_keeps_what_can_be_resumed(
    home: Installation, stateful: bool
) -> None:
    async with open_saver(home) as saver:
        story = Story()
        graph = story.compile(saver, stateful=stateful)
        for _ in range(3):
            await graph.ainvoke({}, thread())
        story.act = ask
        await graph.ainvoke({}, thread())
        before = await state(graph)
        await saver.aprune(["t", "no such thread"], strategy="keep_latest")
        assert await rows(saver, "checkpoints") == 2
        assert await state(graph) == before
        story.log.clear()
        await graph.ainvoke(Command(resume="yes"), thread())
        assert story.log == ["act", "last", "close"]


async def test_pruning_to_the_latest_deletes_abandoned_work(home: Installation) -> None:
    async with open_saver(home) as saver:
        story = Story(ask)
        graph = story.compile(saver)
        await graph.ainvoke({}, thread())
        story.act = answer
        await graph.ainvoke({}, thread())
        await saver.aprune(["t"], strategy="keep_latest")
        assert await rows(saver, "checkpoints") == 1
        assert await rows(saver, "writes", "checkpoint_ns > ''") == 0


@pytest.mark.parametrize("strategy", ["delete", "delete_all"])
async def test_deleting_by_pruning_leaves_other_threads(home: Installation, strategy: str) -> None:
    async with open_saver(home) as saver:
        graph = Story(ask).compile(saver)
        await graph.ainvoke({}, thread("t"))
        await graph.ainvoke({}, thread("other"))
        await saver.aprune(["t"], strategy=strategy)
        for table in ("checkpoints", "writes"):
            assert await rows(saver, table, "thread_id = 't'") == 0
            assert await rows(saver, table, "thread_id = 'other'") > 0


async def test_an_unknown_prune_strategy_deletes_nothing(home: Installation) -> None:
    async with open_saver(home) as saver:
        await Story().compile(saver).ainvoke({}, thread())
        before = await rows(saver, "checkpoints")
        with pytest.raises(ValueError, match="Unknown prune strategy: 'oldest'"):
            await saver.aprune(["t"], strategy="oldest")
        assert await rows(saver, "checkpoints") == before
