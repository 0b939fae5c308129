"""Graceful shutdown: steps in hand are finished, none begins, and clients are disconnected."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from graph.server.app import GracefulApp, Shutdown
from memory.errors import InputError
from memory.state.validation import SETTLE, STEPS, Steps

SCOPE: dict[str, Any] = {
    "type": "http",
    "method": "POST",
    "path": "/",
    "root_path": "",
    "query_string": b"",
    "headers": [],
}


@pytest.fixture(autouse=True)
def steps_begin_again() -> Iterator[None]:
    """A real process ends with its server; here other tests follow."""
    yield
    STEPS.start()


class Client:
    def __init__(self, app: GracefulApp) -> None:
        self.says: asyncio.Queue[Any] = asyncio.Queue()
        self.heard: list[Any] = []
        self.served = asyncio.create_task(app({**SCOPE, "app": app}, self.says.get, self._hear))

    async def _hear(self, message: Any) -> None:
        self.heard.append(message)


def app_of(serve: Any) -> GracefulApp:
    app = GracefulApp(routes=[Route("/", serve, methods=["POST"])])
    app.state.shutdown = Shutdown()
    return app


async def test_an_error_of_ours_at_the_start_is_one_line() -> None:
    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        raise InputError("the working folder gone does not exist")
        yield

    heard: list[Any] = []

    async def hear(message: Any) -> None:
        heard.append(message)

    says: asyncio.Queue[Any] = asyncio.Queue()
    says.put_nowait({"type": "lifespan.startup"})
    app = GracefulApp(lifespan=lifespan)
    with pytest.raises(InputError):
        await app({"type": "lifespan", "app": app}, says.get, hear)
    (failed,) = heard
    assert failed["message"] == "circadian: the working folder gone does not exist"


async def test_a_request_is_answered_and_a_disconnected_client_is_noticed() -> None:
    looked = asyncio.Event()

    async def serve(request: Request) -> Response:
        body = await request.body()
        while not await request.is_disconnected():
            await asyncio.sleep(0)
            looked.set()
        return PlainTextResponse(body)

    client = Client(app_of(serve))
    for part, more in ((b"a", True), (b"b", False)):
        client.says.put_nowait({"type": "http.request", "body": part, "more_body": more})
    await asyncio.wait_for(looked.wait(), 10)
    client.says.put_nowait({"type": "http.disconnect"})
    await asyncio.wait_for(client.served, 10)
    assert client.heard[-1]["body"] == b"ab"


async def test_waiting_clients_are_disconnected_without_an_answer() -> None:
    async def serve(request: Request) -> Response:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        return PlainTextResponse("This would pass for the answer.")

    app = app_of(serve)
    client = Client(app)
    client.says.put_nowait({"type": "http.request", "body": b""})
    await asyncio.sleep(0.05)
    assert not client.served.done()
    app.state.shutdown.over.set()
    await asyncio.wait_for(client.served, 10)
    assert client.heard == []


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


async def test_the_step_in_hand_is_finished_and_its_run_resumes_after_a_restart() -> None:
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
    # The first step is checkpointed; the run waits before the second until it is cancelled.
    state = await graph.aget_state(config)  # type: ignore[arg-type]
    assert (state.values, state.next, run.done()) == ({"done": 1}, ("second",), False)
    run.cancel()
    await asyncio.wait({run})
    steps.start()
    assert (await graph.ainvoke(None, config))["done"] == 2  # type: ignore[call-overload]


async def test_a_step_over_the_time_limit_is_counted_as_left() -> None:
    steps, going, go = Steps(), asyncio.Event(), asyncio.Event()
    graph = two_steps(steps, going, go).compile()
    run = asyncio.create_task(graph.ainvoke({"done": 0}))
    await going.wait()
    assert await asyncio.wait_for(steps.stop(0.1), 0.1 + SETTLE) == 1
    run.cancel()
    await asyncio.wait({run})


async def test_stopping_without_steps_returns_at_once() -> None:
    assert await asyncio.wait_for(Steps().stop(30), 1) == 0


async def test_a_run_that_ends_with_its_last_step_does_not_delay_the_stop() -> None:
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
