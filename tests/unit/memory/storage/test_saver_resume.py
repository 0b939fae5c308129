"""Unfinished work goes on as if nothing were ever deleted: compared with LangGraph's own saver."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command, StateSnapshot

from graph.persistence import open_saver
from memory.installation.opening import Installation
from tests.support.homes import folder_in
from tests.support.homes import home as home
from tests.support.saver_graph import (
    DURABILITIES,
    Durability,
    Graph,
    Story,
    answer,
    ask,
    ask_twice,
    stock_saver,
    thread,
)

Step = Callable[[Graph, Story, Durability], Awaitable[Any]]


async def resume(graph: Graph, story: Story, durability: Durability) -> Any:
    return await graph.ainvoke(Command(resume="yes"), thread(durability), durability=durability)


async def edit(graph: Graph, story: Story, durability: Durability) -> None:
    await graph.aupdate_state(thread(durability), {"blob": "by hand"})


async def edit_then_resume_before_it(graph: Graph, story: Story, durability: Durability) -> Any:
    before = (await graph.aget_state(thread(durability))).config
    await edit(graph, story, durability)
    return await graph.ainvoke(Command(resume="yes"), before, durability=durability)


async def new_input(graph: Graph, story: Story, durability: Durability) -> Any:
    return await graph.ainvoke({"blob": "new"}, thread(durability), durability=durability)


async def go_on(graph: Graph, story: Story, durability: Durability) -> Any:
    return await graph.ainvoke(None, thread(durability), durability=durability)


async def stop_asking(graph: Graph, story: Story, durability: Durability) -> None:
    story.act = answer


async def be_asked_twice(graph: Graph, story: Story, durability: Durability) -> Any:
    story.act = ask_twice
    return await new_input(graph, story, durability)


async def break_down(graph: Graph, story: Story, durability: Durability) -> Any:
    async def fail() -> str:
        raise ConnectionError("gone")

    story.act = fail
    with pytest.raises(ConnectionError):
        await graph.ainvoke({"blob": "new"}, thread(durability), durability=durability)


async def be_cancelled(graph: Graph, story: Story, durability: Durability) -> None:
    started = asyncio.Event()

    async def hang() -> str:
        started.set()
        await asyncio.sleep(60)
        return "never"

    story.act = hang
    run = asyncio.ensure_future(new_input(graph, story, durability))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def look(graph: Graph, story: Story, durability: Durability) -> Any:
    state = await graph.aget_state(thread(durability), subgraphs=True)
    inner = [task.state.next for task in state.tasks if isinstance(task.state, StateSnapshot)]
    return state.values, state.next, [i.value for i in state.interrupts], inner


SCENARIOS: dict[str, list[Step]] = {
    "answered": [look, resume],
    "edited, then answered": [edit, look, resume],
    "edited, then answered where it was asked": [edit_then_resume_before_it],
    "edited twice, then gone on with": [edit, edit, go_on],
    "two questions": [be_asked_twice, resume, look, resume, look],
    "left for a new input": [new_input, look, resume],
    "asked again, then answered": [go_on, look, resume],
    "answered, then a new run": [resume, new_input, resume],
    "answered, then broken, then gone on with": [resume, break_down, look, stop_asking, go_on],
    "broken, edited, gone on with": [break_down, edit, stop_asking, go_on],
    "cancelled, then gone on with": [be_cancelled, look, stop_asking, go_on],
    "cancelled, then a new input": [be_cancelled, stop_asking, new_input],
}


async def play(
    saver: Any, steps: list[Step], durability: Durability
) -> tuple[list[Any], list[str]]:
    """What each step gives, and which nodes ran, after two runs and one that asks a question.

    Each durability has a thread of its own.
    """
    story = Story()
    graph = story.compile(saver)
    for _ in range(2):
        await new_input(graph, story, durability)
    story.act = ask
    told = [await new_input(graph, story, durability)]
    for step in steps:
        told.append(await step(graph, story, durability))
    for result in told:
        if isinstance(result, dict) and "__interrupt__" in result:
            result["__interrupt__"] = [asked.value for asked in result["__interrupt__"]]
    return told, story.log


EXPECTED: dict[str, list[Any]] = {}
"""What LangGraph's own saver gives for a scenario, for each durability: whatever the home is."""


@pytest.mark.parametrize("name", SCENARIOS)
async def test_unfinished_work_resumes_as_if_nothing_were_pruned(
    home: Installation, tmp_path: Path, name: str
) -> None:
    if name not in EXPECTED:
        async with stock_saver(folder_in(tmp_path / "stock")) as saver:
            EXPECTED[name] = [await play(saver, SCENARIOS[name], one) for one in DURABILITIES]
    async with open_saver(home, keep=1) as saver:
        for durability, expected in zip(DURABILITIES, EXPECTED[name], strict=True):
            assert await play(saver, SCENARIOS[name], durability) == expected, durability
