"""The same open agent for blocking callers, also from inside a running event loop.

A background thread runs one event loop; every call is handed to it and waited for.
"""

from __future__ import annotations

import asyncio
import atexit
import queue
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot

from graph.forgetting import Forgotten
from graph.handle import AsyncAgent
from graph.nights import NightLine
from graph.transfer import Imported
from memory.inbox import Posted
from memory.records import Fact, RecallHit
from memory.reports import NightReport
from memory.state import AssistantPrompt

T = TypeVar("T")
_DONE = object()


class Agent:
    """One agent of one data folder, for blocking use. Made by `open_agent`."""

    def __init__(self, opening: AbstractAsyncContextManager[AsyncAgent]) -> None:
        self._opening = opening
        self._loop = asyncio.new_event_loop()
        self._executor = ThreadPoolExecutor(thread_name_prefix="circadian")
        """Ours, so that its threads end with the agent and not some time later."""
        self._loop.set_default_executor(self._executor)
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="circadian", daemon=True
        )
        self._agent: AsyncAgent | None = None

    @property
    def handle(self) -> AsyncAgent:
        """The asynchronous agent behind this one. Raises RuntimeError once it is closed."""
        if self._agent is None:
            raise RuntimeError("the agent is closed")
        return self._agent

    def open(self) -> Self:
        """Start the thread and open the agent on it."""
        self._thread.start()
        try:
            self._agent = self.call(self._opening.__aenter__())
        except BaseException:
            self._stop()
            raise
        atexit.register(self.close)
        return self

    def close(self) -> None:
        """Close the agent and end the thread. Twice is the same as once."""
        if self._agent is None:
            return
        self._agent = None
        atexit.unregister(self.close)
        try:
            self.call(self._drain())
        finally:
            self._stop()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the agent's loop and wait for it; Ctrl-C cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def invoke(
        self,
        input: Mapping[str, Any] | Command[Any] | None = None,
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """See `AsyncAgent.ainvoke`."""
        return self.call(self.handle.ainvoke(input, config, **options))

    def stream(
        self,
        input: Mapping[str, Any] | Command[Any] | None = None,
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> Iterator[Any]:
        """See `AsyncAgent.astream`."""
        parts: queue.SimpleQueue[Any] = queue.SimpleQueue()
        source = self.handle.astream(input, config, **options)
        future = asyncio.run_coroutine_threadsafe(_pour(source, parts), self._loop)
        try:
            while (part := parts.get()) is not _DONE:
                yield part
            future.result()
        finally:
            future.cancel()

    def get_state(
        self, config: RunnableConfig | None = None, *, subgraphs: bool = False
    ) -> StateSnapshot:
        """See `AsyncAgent.aget_state`."""
        return self.call(self.handle.aget_state(config, subgraphs=subgraphs))

    def get_state_history(
        self, config: RunnableConfig | None = None, **options: Any
    ) -> Iterator[StateSnapshot]:
        """See `AsyncAgent.aget_state_history`."""
        return iter(self.call(_all(self.handle.aget_state_history(config, **options))))

    def update_state(
        self,
        values: Mapping[str, Any],
        as_node: str | None = None,
        config: RunnableConfig | None = None,
    ) -> RunnableConfig:
        """See `AsyncAgent.aupdate_state`."""
        return self.call(self.handle.aupdate_state(values, as_node, config))

    def post(self, events: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Posted:
        """See `AsyncAgent.post`."""
        return self.call(self.handle.post(events))

    def approve(
        self, question: str, args: Mapping[str, Any] | None = None, **options: Any
    ) -> dict[str, Any]:
        """See `AsyncAgent.approve`."""
        return self.call(self.handle.approve(question, args, **options))

    def refuse(self, question: str, reason: str | None = None, **options: Any) -> dict[str, Any]:
        """See `AsyncAgent.refuse`."""
        return self.call(self.handle.refuse(question, reason, **options))

    def rollback_prompt(self, version: int) -> AssistantPrompt:
        """See `AsyncAgent.rollback_prompt`."""
        return self.call(self.handle.rollback_prompt(version))

    def recall(
        self, query: str, limit: int = 10, *, include_superseded: bool = False
    ) -> list[RecallHit]:
        """See `AsyncAgent.recall`."""
        return self.call(self.handle.recall(query, limit, include_superseded=include_superseded))

    def everything(self, query: str | None = None) -> list[dict[str, Any]]:
        """See `AsyncAgent.everything`."""
        return self.call(self.handle.everything(query))

    def correct(self, fact_id: str, text: str, by: str | None = None) -> Fact:
        """See `AsyncAgent.correct`."""
        return self.call(self.handle.correct(fact_id, text, by))

    def forget(self, entity: str, *, dry_run: bool = False) -> Forgotten:
        """See `AsyncAgent.forget`."""
        return self.call(self.handle.forget(entity, dry_run=dry_run))

    def forget_fact(self, fact_id: str) -> Forgotten:
        """See `AsyncAgent.forget_fact`."""
        return self.call(self.handle.forget_fact(fact_id))

    def export_memory(self) -> Iterator[dict[str, Any]]:
        """See `AsyncAgent.export_memory`."""
        return iter(self.call(_all(self.handle.export_memory())))

    def import_memory(self, lines: Iterable[str]) -> Imported:
        """See `AsyncAgent.import_memory`."""
        return self.call(self.handle.import_memory(lines))

    def nights(self) -> list[NightLine]:
        """See `AsyncAgent.nights`."""
        return self.call(self.handle.nights())

    def night(self, night_id: str) -> NightReport:
        """See `AsyncAgent.night`."""
        return self.call(self.handle.night(night_id))

    def sleep(self, *, dry_run: bool = False) -> NightReport:
        """See `AsyncAgent.sleep`."""
        return self.call(self.handle.sleep(dry_run=dry_run))

    def apply_night(self, night_id: str) -> NightReport:
        """See `AsyncAgent.apply_night`."""
        return self.call(self.handle.apply_night(night_id))

    def discard_night(self, night_id: str) -> NightReport:
        """See `AsyncAgent.discard_night`."""
        return self.call(self.handle.discard_night(night_id))

    def undo_night(self, night_id: str) -> NightReport:
        """See `AsyncAgent.undo_night`."""
        return self.call(self.handle.undo_night(night_id))

    async def _drain(self) -> None:
        """Let what still runs end, then close."""
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
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
    return [one async for one in source]
