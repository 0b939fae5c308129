"""A process that stops finishes the steps in hand and begins none."""

from __future__ import annotations

import asyncio
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from memory.stopping import SETTLE, Steps


class Count(TypedDict):
    done: int


def two_steps(steps: Steps, going: asyncio.Event, go: asyncio.Event) -> StateGraph[Count]:
    """A graph of two nodes, the first of which waits for `go`."""
    builder = StateGraph(Count)

    async def first(state: Count) -> Count:
        async with steps.step():
            going.set()
            await go.wait()
            return {"done": 1}

    async def second(state: Count) -> Count:
        async with steps.step():
            return {"done": 2}

    builder.add_node(first)
    builder.add_node(second)
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    builder.add_edge("second", END)
    return builder


async def test_the_step_in_hand_ends_its_run_is_kept_there_and_goes_on_after_a_start() -> None:
    steps, going, go = Steps(), asyncio.Event(), asyncio.Event()
    graph = two_steps(steps, going, go).compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    run = asyncio.create_task(graph.ainvoke({"done": 0}, config))  # type: ignore[call-overload]
    await going.wait()
    stopping = asyncio.create_task(steps.stop(30))
    await asyncio.sleep(0.1)
    assert not stopping.done()
    go.set()
    assert await stopping == 0
    # What it gave is written: the run stands before the second, and waits to be cancelled.
    state = await graph.aget_state(config)  # type: ignore[arg-type]
    assert (state.values, state.next, run.done()) == ({"done": 1}, ("second",), False)
    run.cancel()
    await asyncio.wait({run})
    steps.start()
    assert (await graph.ainvoke(None, config))["done"] == 2  # type: ignore[call-overload]


async def test_a_step_that_takes_too_long_is_counted_and_not_waited_for() -> None:
    steps, going, go = Steps(), asyncio.Event(), asyncio.Event()
    graph = two_steps(steps, going, go).compile()
    run = asyncio.create_task(graph.ainvoke({"done": 0}))
    await going.wait()
    assert await asyncio.wait_for(steps.stop(0.1), 0.1 + SETTLE) == 1
    run.cancel()
    await asyncio.wait({run})


async def test_where_nothing_is_in_hand_it_stops_at_once() -> None:
    assert await asyncio.wait_for(Steps().stop(30), 1) == 0


async def test_a_run_whose_last_step_ends_is_not_waited_for_long() -> None:
    steps, going, go = Steps(), asyncio.Event(), asyncio.Event()
    go.set()

    async def last() -> None:
        async with steps.step():
            going.set()
            await asyncio.sleep(0.1)

    task = asyncio.create_task(last())
    await going.wait()
    assert await asyncio.wait_for(steps.stop(30), SETTLE + 2) == 0
    await task
