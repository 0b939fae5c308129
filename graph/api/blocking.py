"""The blocking agent: `AsyncAgent` for callers without an event loop, or inside a running one.

A background thread runs an event loop of its own; each call is handed to it and waited for.
"""

from __future__ import annotations

import asyncio
import atexit
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, aclosing
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

from langchain_core.runnables import RunnableConfig

from graph.api.async_agent import AsyncAgent
from graph.use_cases import Input

P = ParamSpec("P")
T = TypeVar("T")
_DONE = object()


def _blocking(
    method: Callable[Concatenate[AsyncAgent, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Agent, P], T]:
    """The same method for blocking callers."""

    @wraps(method)
    def call(self: Agent, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.call(method(self.handle, *args, **kwargs))

    return call


def _collecting(
    method: Callable[Concatenate[AsyncAgent, P], AsyncIterator[T]],
) -> Callable[Concatenate[Agent, P], Iterator[T]]:
    """The same method for blocking callers; everything is read before the first item is given."""

    @wraps(method)
    def call(self: Agent, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return iter(self.call(_all(method(self.handle, *args, **kwargs))))

    return call


class Agent:
    """One agent of one data folder or database, for blocking use. Made by `open_agent`."""

    def __init__(self, opening: AbstractAsyncContextManager[AsyncAgent]) -> None:
        self._opening = opening
        self._loop = asyncio.new_event_loop()
        self._executor = ThreadPoolExecutor(thread_name_prefix="circadian")
        """Our own, so that its threads end together with the agent."""
        self._loop.set_default_executor(self._executor)
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="circadian", daemon=True
        )
        self._agent: AsyncAgent | None = None
        self._running: set[asyncio.Task[Any]] = set()

    @property
    def handle(self) -> AsyncAgent:
        """The asynchronous agent behind this one. Raises RuntimeError once it is closed."""
        if self._agent is None:
            raise RuntimeError("the agent is closed")
        return self._agent

    def open(self) -> Self:
        """Start the thread and open the agent in it; it is closed at exit at the latest."""
        self._thread.start()
        try:
            self._agent = self.call(self._opening.__aenter__())
        except BaseException:
            self._stop()
            raise
        atexit.register(self.close)
        return self

    def close(self) -> None:
        """Close the agent and end the thread. Idempotent."""
        if self._agent is None:
            return
        self._agent = None
        atexit.unregister(self.close)
        try:
            self.call(self._drain())
        finally:
            self._stop()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the agent's event loop and wait for it; Ctrl-C cancels it."""
        future = asyncio.run_coroutine_threadsafe(self._tracked(work), self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def stream(
        self, input: Input = None, config: RunnableConfig | None = None, **options: Any
    ) -> Iterator[Any]:
        """As `invoke`, yielding LangGraph's stream; a failure is raised at its end.

        The next run resumes one left early.
        """
        parts: queue.SimpleQueue[Any] = queue.SimpleQueue()
        source = self.handle.astream(input, config, **options)
        future = asyncio.run_coroutine_threadsafe(self._tracked(_pour(source, parts)), self._loop)
        try:
            while (part := parts.get()) is not _DONE:
                yield part
            future.result()
        finally:
            future.cancel()

    invoke = _blocking(AsyncAgent.ainvoke)
    post = _blocking(AsyncAgent.post)
    approve = _blocking(AsyncAgent.approve)
    refuse = _blocking(AsyncAgent.refuse)

    get_state = _blocking(AsyncAgent.aget_state)
    get_state_history = _collecting(AsyncAgent.aget_state_history)
    update_state = _blocking(AsyncAgent.aupdate_state)
    rollback_prompt = _blocking(AsyncAgent.rollback_prompt)

    recall = _blocking(AsyncAgent.recall)
    everything = _blocking(AsyncAgent.everything)
    correct = _blocking(AsyncAgent.correct)
    forget = _blocking(AsyncAgent.forget)
    forget_fact = _blocking(AsyncAgent.forget_fact)
    forget_entry = _blocking(AsyncAgent.forget_entry)
    export_memory = _collecting(AsyncAgent.export_memory)
    import_memory = _blocking(AsyncAgent.import_memory)

    nights = _blocking(AsyncAgent.nights)
    night = _blocking(AsyncAgent.night)
    sleep = _blocking(AsyncAgent.sleep)
    apply_night = _blocking(AsyncAgent.apply_night)
    discard_night = _blocking(AsyncAgent.discard_night)
    undo_night = _blocking(AsyncAgent.undo_night)

    async def _tracked(self, work: Coroutine[Any, Any, T]) -> T:
        task = cast(asyncio.Task[Any], asyncio.current_task())
        self._running.add(task)
        try:
            return await work
        finally:
            self._running.discard(task)

    async def _drain(self) -> None:
        """Cancel the calls that still run and wait for them, then close the agent.

        Tasks of pools and locks are left alone: closing the agent ends them.
        """
        calls = self._running - {asyncio.current_task()}
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await self._opening.__aexit__(None, None, None)
        await self._loop.shutdown_asyncgens()

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


async def _all(source: AsyncIterator[T]) -> list[T]:
    return [item async for item in source]
