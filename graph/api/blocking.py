"""The blocking agent: `AsyncAgent` for callers without an event loop, or inside a running one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from langchain_core.runnables import RunnableConfig

from graph.api.async_agent import AsyncAgent
from graph.blocking import BackgroundLoop
from graph.use_cases import Input

P = ParamSpec("P")
T = TypeVar("T")


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
    """One agent of one data folder or database, for blocking use.

    Made by `open_agent` and `open_agents`.
    """

    def __init__(self, loop: BackgroundLoop, handle: AsyncAgent) -> None:
        self._loop, self._handle = loop, handle

    @property
    def handle(self) -> AsyncAgent:
        """The asynchronous agent behind this one. Raises RuntimeError once it is closed."""
        if not self._loop.is_open:
            raise RuntimeError("the agent is closed")
        return self._handle

    def close(self) -> None:
        """Close the agent, and all others that were opened with it. Idempotent."""
        self._loop.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the agent's event loop and wait for it; Ctrl-C cancels it."""
        return self._loop.call(work)

    def stream(
        self, input: Input = None, config: RunnableConfig | None = None, **options: Any
    ) -> Iterator[Any]:
        """As `invoke`, yielding LangGraph's stream; a failure is raised at its end.

        The next run resumes one left early.
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


async def _all(source: AsyncIterator[T]) -> list[T]:
    return [item async for item in source]
