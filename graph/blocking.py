"""Asynchronous work for blocking callers: an event loop in a thread of its own.

Each blocking agent has a loop of its own. All nodes of a process share another, so that
`graph.invoke` works as `graph.ainvoke` does, even if the checkpointer has only one of the two.
`Streams` holds the streams that an agent has to close before it closes.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import queue
import threading
import weakref
from collections.abc import AsyncGenerator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, aclosing
from functools import lru_cache
from types import AsyncGeneratorType
from typing import Any, TypeVar, cast

T = TypeVar("T")
_DONE = object()


def spare_collections() -> None:
    """Exempt the objects made so far from garbage collection, and collect others less often.

    A server calls this once it is loaded. Each full collection of a small process takes 100 ms;
    with 100 agents at work, collections took a twelfth of the processor time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)  # most objects of a tick are gone by then, not yet by Python's 700


class BackgroundLoop:
    """An event loop in a background thread; callers hand it work and wait for the result."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._executor = ThreadPoolExecutor(thread_name_prefix="circadian")
        """Our own, so that its threads end together with the loop."""
        self._loop.set_default_executor(self._executor)
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="circadian", daemon=True
        )
        self._opened: AbstractAsyncContextManager[Any] | None = None
        self._running: set[asyncio.Task[Any]] = set()

    @property
    def is_open(self) -> bool:
        """Whether the context manager that `open` entered is still open."""
        return self._opened is not None

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def open(self, opening: AbstractAsyncContextManager[T]) -> T:
        """Start the thread and enter `opening`; `close`, or the process's end, leaves `opening`."""
        self.start()
        try:
            entered = self.call(opening.__aenter__())
        except BaseException:
            try:
                self.call(self._end_calls())
            finally:
                self._stop()
            raise
        self._opened = opening
        atexit.register(self.close)
        return entered

    def close(self) -> None:
        """Leave the context manager that `open` entered, and end the thread. Idempotent."""
        if self._opened is None:
            return
        opened, self._opened = self._opened, None
        atexit.unregister(self.close)
        try:
            self.call(self._leave(opened))
        finally:
            self._stop()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the loop and wait for it; Ctrl-C cancels it."""
        future = asyncio.run_coroutine_threadsafe(self._tracked(work), self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def stream(self, source: AsyncGenerator[T]) -> Iterator[T]:
        """Yield the items of `source` as they come; a reader that leaves early closes `source`."""
        parts: queue.SimpleQueue[Any] = queue.SimpleQueue()
        future = asyncio.run_coroutine_threadsafe(self._tracked(_pour(source, parts)), self._loop)
        try:
            while (part := parts.get()) is not _DONE:
                yield part
            future.result()
        finally:
            future.cancel()

    async def _tracked(self, work: Coroutine[Any, Any, T]) -> T:
        task = cast(asyncio.Task[Any], asyncio.current_task())
        self._running.add(task)
        try:
            return await work
        finally:
            self._running.discard(task)

    async def _leave(self, opened: AbstractAsyncContextManager[Any]) -> None:
        """End the calls, then leave `opened`, which ends the tasks of pools and locks."""
        await self._end_calls()
        await opened.__aexit__(None, None, None)
        await self._loop.shutdown_asyncgens()

    async def _end_calls(self) -> None:
        """Cancel the calls that still run, and wait for them.

        A call that Ctrl-C has cancelled is not cancelled again, so that its cleanup finishes.
        """
        calls = self._running - {asyncio.current_task()}
        for call in calls:
            if not call.cancelling():
                call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._executor.shutdown()
        self._loop.close()


async def _pour(source: AsyncGenerator[T], parts: queue.SimpleQueue[Any]) -> None:
    try:
        async with aclosing(source):
            async for part in source:
                parts.put(part)
    finally:
        parts.put(_DONE)


@lru_cache(maxsize=1)
def shared_loop() -> BackgroundLoop:
    """The process's loop for nodes that are called without an event loop."""
    loop = BackgroundLoop()
    loop.start()
    return loop


class Streams:
    """The unfinished streams, to be closed before the graph and the store that they use."""

    def __init__(self) -> None:
        self._begun: dict[asyncio.Event, weakref.ref[AsyncGeneratorType[Any, None]]] = {}

    def kept(self, parts: AsyncGenerator[T]) -> AsyncGenerator[T]:
        """`parts`, among the unfinished streams from the first part to the end."""
        ended = asyncio.Event()

        async def read() -> AsyncGenerator[T]:
            self._begun[ended] = own
            try:
                async with aclosing(parts):
                    async for part in parts:
                        yield part
            finally:
                del self._begun[ended]
                ended.set()

        reading = read()
        own = weakref.ref(cast(AsyncGeneratorType[T, None], reading))
        return reading

    async def close(self) -> None:
        """Close the streams whose readers left, and wait for those that Python is closing."""
        for ended, known in list(self._begun.items()):
            reading = known()
            if reading is None:
                await ended.wait()
            elif not reading.ag_running:
                await reading.aclose()
