"""Graceful shutdown: steps in hand are finished, no step begins, then clients are disconnected.

A web server waits for its clients before it stops, and a client that waits for a run would block
the stop until a supervisor kills the server in the middle of a step. So shutdown begins at the
signal itself, before the web server reacts. Once the last step is over, waiting clients are
disconnected; they ask the next server.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Any

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.schemas import SchemaGenerator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.server.inspector import SignIn
from graph.server.problems import Problem, Problems
from graph.server.settings import serving
from memory.errors import CircadianError
from memory.state import STEPS

log = logging.getLogger("circadian")
SIGNALS = (signal.SIGTERM, signal.SIGINT)

DISCONNECTED: dict[str, Message] = {
    "http": {"type": "http.disconnect"},
    # 1012: the service restarts (RFC 6455's registry of codes).
    "websocket": {"type": "websocket.disconnect", "code": 1012},
}


class Shutdown:
    """The shutdown of one server."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        """No step is in hand, and none begins any more."""
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin, without waiting; to be called in the server's event loop. Idempotent."""
        if self._task is None:
            self._task = asyncio.create_task(self._stop(), name="shutdown")

    async def finish(self) -> None:
        """Begin if that has not happened yet, and wait for the end."""
        self.begin()
        assert self._task is not None
        await self._task

    async def _stop(self) -> None:
        left = await STEPS.stop(serving().stop_seconds)
        if left:
            log.warning("%d runs were interrupted in a step; the next run repeats it", left)
        self.over.set()


@asynccontextmanager
async def shutting_down(app: Starlette) -> AsyncIterator[None]:
    """Let steps begin until a signal or the end of the block; the server cancels runs later."""
    STEPS.start()
    app.state.shutdown = shutdown = Shutdown()
    with _signals(shutdown):
        try:
            yield
        finally:
            await shutdown.finish()


class GracefulApp(FastAPI):
    """Disconnects clients that still wait for an answer once the shutdown is over.

    Outside of all middleware: some of it would complete a truncated answer as if it were whole.
    """

    def build_middleware_stack(self) -> ASGIApp:
        """The middleware, inside the handler of problems and the sign-in of the pages."""
        return SignIn(Problems(super().build_middleware_stack()))

    def openapi(self) -> dict[str, Any]:
        """FastAPI's document, with those routes of LangGraph Server that its own document lacks."""
        found = super().openapi()
        found["components"]["schemas"]["Problem"] = Problem.model_json_schema()
        own = getattr(sys.modules.get("langgraph_api.api.openapi"), "openapi", {"paths": {}})
        for route in SchemaGenerator({}).get_endpoints(self.routes):
            told = [one["paths"].get(route.path, ()) for one in (own, found)]
            if not any(route.http_method in methods for methods in told):
                shown = {"responses": {"default": {"description": route.func.__name__}}}
                found["paths"].setdefault(route.path, {})[route.http_method] = shown
        return found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or the server's start and end."""
        if scope["type"] == "lifespan":
            await super().__call__(scope, receive, _in_one_line(send))
            return
        shutdown: Shutdown | None = getattr(self.state, "shutdown", None)
        if shutdown is None or scope["type"] not in DISCONNECTED:
            await super().__call__(scope, receive, send)
            return
        connection = _Connection(shutdown.over, DISCONNECTED[scope["type"]], receive, send)
        try:
            await super().__call__(scope, connection.receive, connection.send)
        finally:
            connection.close()


def _in_one_line(send: Send) -> Send:
    """`send`, which reports a CircadianError at startup in one line, without a traceback."""

    async def sending(message: Message) -> None:
        error = sys.exc_info()[1]
        if message["type"] == "lifespan.startup.failed" and isinstance(error, CircadianError):
            message["message"] = f"circadian: {error}"
        await send(message)

    return sending


class _Connection:
    """One request, whose client counts as disconnected once `over` is set."""

    def __init__(
        self, over: asyncio.Event, disconnect: Message, receive: Receive, send: Send
    ) -> None:
        self._over, self._disconnect, self._receive, self._send = over, disconnect, receive, send
        self._disconnected = False
        self._asked: asyncio.Future[Message] | None = None
        """The awaited message; kept when its reader is cancelled, so that no message is lost."""

    async def receive(self) -> Message:
        """The client's next message, or its disconnection."""
        asked = self._asked = self._asked or asyncio.ensure_future(self._receive())
        if not asked.done():
            over = asyncio.ensure_future(self._over.wait())
            both: set[asyncio.Future[Any]] = {asked, over}
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                over.cancel()
        if asked.done():
            if self._asked is asked:
                self._asked = None
            return asked.result()
        self._disconnected = True
        return self._disconnect

    def close(self) -> None:
        """Stop waiting for a message."""
        if self._asked is not None:
            self._asked.cancel()

    async def send(self, message: Message) -> None:
        """Answer, unless disconnected: then the connection breaks, as it should."""
        if not self._disconnected:
            await self._send(message)


@contextmanager
def _signals(shutdown: Shutdown) -> Iterator[None]:
    """Begin the shutdown at a signal, and pass the signal on to the previous handler."""
    loop = asyncio.get_running_loop()
    previous = {number: signal.getsignal(number) for number in SIGNALS}

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(shutdown.begin)
        handler = previous[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    try:
        for number in SIGNALS:
            signal.signal(number, handle)
    except ValueError:  # not in the main thread; the end of the lifespan still shuts down
        yield
        return
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
