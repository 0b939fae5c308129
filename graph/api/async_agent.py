"""The agent: one object whose methods are the use cases, and the same for blocking callers."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import aclosing
from functools import wraps
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore

from graph.blocking import BackgroundLoop
from graph.use_cases import (
    AgentContext,
    Input,
    approve,
    correct,
    export_memory,
    forget,
    forget_entry,
    forget_fact,
    import_memory,
    list_memories,
    post,
    recall,
    refuse,
    rollback,
    run,
    stream,
)
from graph.use_cases import nights as _nights
from memory.errors import InputError
from memory.records import Scope
from memory.runtime import Resources
from memory.settings import Settings
from memory.state import State

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import StateSnapshot

P = ParamSpec("P")
R = TypeVar("R")


def _method(
    use_case: Callable[Concatenate[AgentContext, P], R],
) -> Callable[Concatenate[AsyncAgent, P], R]:
    """A use case as a method, with its docstring."""

    @wraps(use_case)
    def call(self: AsyncAgent, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return use_case(self.context, *args, **kwargs)

    return call


def _streaming(
    use_case: Callable[Concatenate[AgentContext, P], AsyncGenerator[R]],
) -> Callable[Concatenate[AsyncAgent, P], AsyncGenerator[R]]:
    """A use case that yields, as a method; closing the agent closes its unfinished streams."""

    @wraps(use_case)
    def call(self: AsyncAgent, /, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[R]:
        return self.streams.kept(use_case(self.context, *args, **kwargs))

    return call


class Streams:
    """The unfinished streams, to be closed before the graph and the store that they use."""

    def __init__(self) -> None:
        self._begun: dict[asyncio.Event, weakref.ref[AsyncGeneratorType[Any, None]]] = {}

    def kept(self, parts: AsyncGenerator[R]) -> AsyncGenerator[R]:
        """`parts`, registered here from the first part to the end."""
        ended = asyncio.Event()

        async def read() -> AsyncGenerator[R]:
            self._begun[ended] = own
            try:
                async with aclosing(parts):
                    async for part in parts:
                        yield part
            finally:
                del self._begun[ended]
                ended.set()

        reading = read()
        own = weakref.ref(cast(AsyncGeneratorType[R, None], reading))
        return reading

    async def close(self) -> None:
        """Close the streams whose readers left, and wait for those that Python is closing."""
        for ended, known in list(self._begun.items()):
            reading = known()
            if reading is None:
                await ended.wait()
            elif not reading.ag_running:
                await reading.aclose()


class AsyncAgent:
    """One agent of one data folder or database. Made by `open_agent` and `open_agents`."""

    def __init__(self, context: AgentContext, streams: Streams) -> None:
        self.context = context
        """What the use cases take."""
        self.streams = streams

    @property
    def graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """The compiled graph, with its checkpointer and store."""
        return self.context.graph

    @property
    def store(self) -> BaseStore:
        """Journal, profiles, links, inbox, nights and audit log."""
        return self.context.store

    @property
    def resources(self) -> Resources:
        """Models, semantic memory and clock."""
        return self.context.resources

    @property
    def settings(self) -> Settings:
        """How the agent behaves."""
        return self.context.settings

    @property
    def scope(self) -> Scope:
        """The agent's user and thread, with which every key begins."""
        return self.context.scope

    config = _method(AgentContext.config)

    # Running

    ainvoke = _method(run)
    astream = _streaming(stream)
    post = _method(post)
    approve = _method(approve)
    refuse = _method(refuse)

    # State

    aget_state = _method(AgentContext.snapshot)

    async def aget_state_history(
        self, /, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[StateSnapshot]:
        """The checkpoints that are kept, newest first."""
        async for snapshot in self.graph.aget_state_history(self.config(config), **options):
            yield snapshot

    async def aupdate_state(
        self,
        /,
        config: RunnableConfig | None,
        values: Mapping[str, Any] | None,
        as_node: str | None = None,
        task_id: str | None = None,
    ) -> RunnableConfig:
        """Edit the state by hand; arguments as LangGraph's. None is this agent's own config.

        A bad edit is one clear error at the next run.

        Raises:
            BusyError: another process holds the agent.
            InputError: `config` is not a config, or belongs to another agent; or there is no such
                key in the state, which LangGraph would ignore.
        """
        if unknown := set(config or {}) - RunnableConfig.__annotations__.keys():
            raise InputError(
                f"update_state(config, values, as_node): a config has no {min(unknown)!r:.80}; put "
                "None, or the config of a snapshot, in front of the values"
            )
        if unknown := set(values or {}) - State.__annotations__.keys():
            raise InputError(f"the state has no {min(unknown)!r:.80}")
        async with self.context.lock:
            bound = self.config(config)
            if as_node is None and not (await self.graph.aget_state(bound)).values:
                as_node = "intake"
            edit = None if values is None else dict(values)
            return await self.graph.aupdate_state(bound, edit, as_node=as_node, task_id=task_id)

    rollback_prompt = _method(rollback)

    # Memory

    recall = _method(recall)
    everything = _method(list_memories)
    correct = _method(correct)
    forget = _method(forget)
    forget_fact = _method(forget_fact)
    forget_entry = _method(forget_entry)
    export_memory = _method(export_memory)
    import_memory = _method(import_memory)

    # Nights

    nights = _method(_nights.list_nights)
    night = _method(_nights.night_report)
    sleep = _method(_nights.sleep)
    apply_night = _method(_nights.apply_night)
    discard_night = _method(_nights.discard_night)
    undo_night = _method(_nights.undo_night)


def _blocking(
    method: Callable[Concatenate[AsyncAgent, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Agent, P], R]:
    """The same method for blocking callers."""

    @wraps(method)
    def call(self: Agent, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.call(method(self.handle, *args, **kwargs))

    return call


def _collecting(
    method: Callable[Concatenate[AsyncAgent, P], AsyncIterator[R]],
) -> Callable[Concatenate[Agent, P], Iterator[R]]:
    """The same method for blocking callers; all items are read before the first is returned."""

    @wraps(method)
    def call(self: Agent, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        async def every() -> list[R]:
            return [item async for item in method(self.handle, *args, **kwargs)]

        return iter(self.call(every()))

    return call


class Agent:
    """One agent of one data folder or database, for blocking use.

    Made by `open_agent` and `open_agents`.
    """

    def __init__(self, loop: BackgroundLoop, handle: AsyncAgent) -> None:
        self._loop, self._handle = loop, handle

    @property
    def handle(self) -> AsyncAgent:
        """The asynchronous agent behind this one. Raises InputError once it is closed."""
        if not self._loop.is_open:
            raise InputError("the agent is closed: open it again")
        return self._handle

    def close(self) -> None:
        """Close the agent, and all others that were opened with it. Idempotent."""
        self._loop.close()

    def call(self, work: Coroutine[Any, Any, R]) -> R:
        """Run `work` in the agent's event loop and wait for it; Ctrl-C cancels it."""
        return self._loop.call(work)

    def stream(
        self, input: Input = None, config: RunnableConfig | None = None, **options: Any
    ) -> Iterator[Any]:
        """As `invoke`, yielding LangGraph's stream; a failure is raised at its end.

        The next run resumes a run whose stream was left early.
        """
        yield from self._loop.stream(self.handle.astream(input, config, **options))

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
