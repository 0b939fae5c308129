"""Told to end, a server ends between steps: it lets each step in hand go on, then hangs up.

A web server waits for its clients before it ends, and a client that waits for a run would keep it
until a supervisor kills it, in the middle of a step. So the signal itself counts here, before the
web server has heard of it. Whoever waits is hung up on once the last step is over: the client asks
again, of the next server.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Any

from starlette.applications import Starlette
from starlette.types import Message, Receive, Scope, Send

from graph.server.auth import serving
from memory.errors import CircadianError, NewerError
from memory.resources import process_now
from memory.stopping import STEPS

log = logging.getLogger("circadian")

LOOK = 5.0
"""Seconds between two looks at whether a newer version has changed what this one works on."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)
GONE: dict[str, Message] = {
    "http": {"type": "http.disconnect"},
    # The service restarts (RFC 6455's registry of codes).
    "websocket": {"type": "websocket.disconnect", "code": 1012},
}


class Ending:
    """The end of one server."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        """No step is in hand, and none begins any more."""
        self._stopping: asyncio.Task[None] | None = None

    async def come(self) -> None:
        """End: wait for what is in hand. The second time it is the same end."""
        self.tell()
        assert self._stopping is not None
        await self._stopping

    def tell(self) -> None:
        """End, without waiting. In the server's own loop."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(), name="ending")

    async def _stop(self) -> None:
        left = await STEPS.stop(serving().stop_seconds)
        if left:
            log.warning("broken off in a step, which the next run does anew: %d runs", left)
        self.over.set()


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Let steps begin, until a signal or the server's end; it comes before runs are cancelled."""
    STEPS.start()
    app.state.ending = ending = Ending()
    watch = asyncio.create_task(_end_where_outdated(), name="is it still of our form")
    with _signals(ending):
        try:
            yield
        finally:
            await ending.come()
            watch.cancel()
            await asyncio.wait({watch})


async def _end_where_outdated() -> None:
    """End this server, as a signal does, once a newer version has changed what it works on.

    Seen twice: one wrong look is no reason. Whatever else goes wrong is none at all.
    """
    seen = 0
    while seen < 2:
        await asyncio.sleep(LOOK)
        try:
            await asyncio.to_thread(process_now().home.check)
            seen = 0
        except NewerError as error:
            seen += 1
            log.error("%s%s", error, "; this server ends" if seen == 2 else "")
        except CircadianError as error:  # `health` tells operators
            log.debug("not known whether this server is outdated: %s", error)
        except Exception:
            log.exception("not known whether this server is outdated; the next look may tell")
    signal.raise_signal(signal.SIGTERM)


class EndingApp(Starlette):
    """Hangs up, once the server is over, on who still waits for an answer.

    Outside of all middleware: some of it would end an answer that is cut off, as if it were whole.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request until then."""
        ending: Ending | None = getattr(self.state, "ending", None)
        if ending is None or scope["type"] not in GONE:
            await super().__call__(scope, receive, send)
            return
        call = _Call(ending.over, GONE[scope["type"]], receive, send)
        try:
            await super().__call__(scope, call.receive, call.send)
        finally:
            call.close()


class _Call:
    """One request, whose client is gone once `over` is set."""

    def __init__(self, over: asyncio.Event, gone: Message, receive: Receive, send: Send) -> None:
        self._over, self._gone, self._receive, self._send = over, gone, receive, send
        self._hung_up = False
        self._asked: asyncio.Future[Message] | None = None
        """What is listened for. Kept where nobody waits for it any more: nothing is lost."""

    async def receive(self) -> Message:
        """What the client says, or that it is gone."""
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
        self._hung_up = True
        return self._gone

    def close(self) -> None:
        """Listen no more."""
        if self._asked is not None:
            self._asked.cancel()

    async def send(self, message: Message) -> None:
        """Answer, unless the client was said to be gone: the connection breaks, as it should."""
        if not self._hung_up:
            await self._send(message)


@contextmanager
def _signals(ending: Ending) -> Iterator[None]:
    """Hear the signals too, and hand them on to who hears them now."""
    loop = asyncio.get_running_loop()
    before = {one: signal.getsignal(one) for one in SIGNALS}

    def hear(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(ending.tell)
        known = before[signal.Signals(number)]
        if callable(known):
            known(number, frame)

    try:
        for one in SIGNALS:
            signal.signal(one, hear)
    except ValueError:  # not in the main thread: the server's own end is what counts
        yield
        return
    try:
        yield
    finally:
        for one, known in before.items():
            signal.signal(one, known)
