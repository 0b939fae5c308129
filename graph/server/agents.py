"""The agent that a request is about: chosen by its user and the name in its path, and held."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from types import TracebackType
from typing import Annotated, Any

import httpx
from fastapi import Depends, Path, Request
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError as ThreadNotFound
from starlette.exceptions import HTTPException

from graph.builder import builder
from graph.server.settings import AGENT, GRAPH, HELD, INTERNAL_HOST
from graph.use_cases import AgentContext
from memory.errors import BusyError
from memory.records import Scope, thread_id
from memory.runtime import process_now, settings_of
from memory.storage import PAGE

LONGEST_NAME = 200
"""Characters of an agent's name."""


def user_of(request: Request) -> str:
    """The authenticated user."""
    return str(request.user.identity)


def client_of(request: Request) -> LangGraphClient:
    """A client of this server, in this process, that sends its requests as the caller.

    Not `get_client()`, which bypasses authentication when it has no URL.
    """
    names = ("authorization", "x-api-key")
    headers = {name: request.headers[name] for name in names if name in request.headers}
    transport = httpx.ASGITransport(app=request.app, client=(INTERNAL_HOST, 0))
    return LangGraphClient(
        httpx.AsyncClient(transport=transport, base_url="http://server", headers=headers)
    )


def checked_name(name: Annotated[str, Path(description="The agent's name.")]) -> str:
    """The agent's name in the path."""
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise HTTPException(422, f"an agent's name has 1 to {LONGEST_NAME} printable characters")
    return name


AgentName = Annotated[str, Depends(checked_name)]


class ServedAgent:
    """One agent of the caller."""

    def __init__(self, request: Request, name: str) -> None:
        process, user = process_now(), user_of(request)
        assert process.saver is not None
        self.name, self.client = name, client_of(request)
        self.scope = Scope(user, thread_id(user, name))
        resources = replace(process.resources, user=user)
        graph = compiled(process.saver, process.served_store)
        self.context = AgentContext(
            graph, process.served_store, resources, settings_of(None), self.scope, Hold(self)
        )

    async def thread(self) -> str:
        """The agent's thread, made if the server knows none."""
        await self.client.threads.create(
            thread_id=self.scope.thread,
            if_exists="do_nothing",
            graph_id=GRAPH,
            metadata={AGENT: self.name},
        )
        return self.scope.thread

    async def run(self, given: dict[str, Any]) -> str:
        """Begin a run, after those that are under way; returns its id."""
        run = await self.client.runs.create(
            await self.thread(),
            GRAPH,
            input=given,
            multitask_strategy="enqueue",
            durability="sync",
        )
        return str(run["run_id"])

    async def is_running(self) -> bool:
        """Whether a run is under way, or waits."""
        for status in ("pending", "running"):
            try:
                if await self.client.runs.list(self.scope.thread, status=status, limit=1):
                    return True
            except ThreadNotFound:
                return False
        return False

    async def erase_thread(self) -> None:
        """Delete the agent's schedules and its thread as the server knows them."""
        thread = self.scope.thread
        for cron in await self.client.crons.search(thread_id=thread, limit=PAGE):
            await self.client.crons.delete(cron["cron_id"])
        try:
            await self.client.threads.delete(thread)
        except ThreadNotFound:
            return

    @property
    def embedder(self) -> str:
        """The name of the installation's embedder."""
        return process_now().home.embedder

    async def refresh(self) -> None:
        """Let the server show the thread as its last checkpoint has it."""
        try:
            await self.client.threads.update_state(self.scope.thread, None)
        except ThreadNotFound:
            return


class Hold:
    """The right to change an agent: none of its runs is under way, and none begins meanwhile.

    `graph.server.auth` refuses runs of held threads. The mark comes before the look at the runs, so
    that of a run and a change that begin at once at least one sees the other.
    """

    def __init__(self, agent: ServedAgent) -> None:
        self._agent = agent

    async def __aenter__(self) -> Hold:
        thread = self._agent.scope.thread
        if thread in HELD:
            raise BusyError(f"the agent {self._agent.name!r} is being changed: try again")
        HELD.add(thread)
        try:
            if await self._agent.is_running():
                raise BusyError(f"the agent {self._agent.name!r} is running: try again after it")
        except BaseException:
            HELD.discard(thread)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        HELD.discard(self._agent.scope.thread)


@lru_cache(maxsize=1)
def compiled(
    saver: BaseCheckpointSaver[str], store: BaseStore
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph over the server's own checkpoints and store."""
    return builder.compile(checkpointer=saver, store=store, name="agent")


def served_agent(request: Request, name: AgentName) -> ServedAgent:
    """The caller's agent with the name in the path."""
    return ServedAgent(request, name)


Agent = Annotated[ServedAgent, Depends(served_agent)]
