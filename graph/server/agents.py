"""The agent of a request, found by user and name; held while a request changes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from functools import lru_cache, partial
from shutil import rmtree
from typing import Annotated, Any

import httpx
from fastapi import Depends, Path, Request
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError
from langgraph_sdk.errors import NotFoundError as ThreadNotFound
from starlette.exceptions import HTTPException

from graph.builder import builder
from graph.server.settings import AGENT, GRAPH, HELD, INTERNAL_HOST
from graph.use_cases import AgentContext, forget_agent
from memory.errors import BusyError, CircadianError
from memory.records import LOCAL_USER, Scope, thread_id
from memory.runtime import Process, process_now, settings_of
from memory.storage import PAGE, count_items
from tools.extensions import folder_of

QUEUED: Any = {"multitask_strategy": "enqueue", "durability": "sync"}
"""Options of our own runs: they begin after the runs that are under way."""

OWNER = "owner"
"""The metadata key of a resource's owner."""

Search = Callable[..., Awaitable[Any]]
"""A client's search for resources of one kind."""

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


async def agent_threads(request: Request) -> list[tuple[str, dict[str, Any]]]:
    """The name and the thread of each of the caller's agents, sorted by name; copies have none."""
    user, found = user_of(request), await every(client_of(request).threads.search)
    named = [(own_name(user, str(one["thread_id"]), one.get("metadata")), one) for one in found]
    return sorted([(name, one) for name, one in named if name], key=lambda line: line[0])


async def every(search: Search, **asked: Any) -> list[dict[str, Any]]:
    """All that a search finds, page by page."""
    found: list[dict[str, Any]] = []
    while True:
        page = await search(**asked, limit=PAGE, offset=len(found))
        found += page
        if len(page) < PAGE:
            return found


async def every_own(user: str, search: Search) -> list[dict[str, Any]]:
    """The user's own resources in a search. Those that were made without tokens are `local`'s."""
    found = await every(search, metadata=None if user == LOCAL_USER else {OWNER: user})
    return [one for one in found if (one.get("metadata") or {}).get(OWNER, LOCAL_USER) == user]


def own_name(user: str, thread: str, metadata: Mapping[str, Any] | None) -> str | None:
    """The agent's name in a thread's metadata, if the thread's id derives from user and name."""
    name = (metadata or {}).get(AGENT)
    return name if isinstance(name, str) and thread == thread_id(user, name) else None


def checked_name(name: Annotated[str, Path(description="The agent's name.")]) -> str:
    """The agent's name in the path."""
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise HTTPException(422, f"an agent's name has 1 to {LONGEST_NAME} printable characters")
    return name


AgentName = Annotated[str, Depends(checked_name)]


class ServedAgent:
    """One agent of the caller."""

    def __init__(self, request: Request, name: AgentName) -> None:
        user = user_of(request)
        self.name, self.client = name, client_of(request)
        self.scope = Scope(user, thread_id(user, name))
        self.context = context_of(
            self.scope, partial(held, self.scope.thread, repr(name), self.client)
        )

    async def thread(self) -> str:
        """The id of the agent's thread; makes the thread if the server has none."""
        await self.client.threads.create(
            thread_id=self.scope.thread,
            if_exists="do_nothing",
            graph_id=GRAPH,
            metadata={AGENT: self.name},
        )
        return self.scope.thread

    async def run(self, given: dict[str, Any]) -> str:
        """Begin a run, after those that are under way; returns its id."""
        run = await self.client.runs.create(await self.thread(), GRAPH, input=given, **QUEUED)
        return str(run["run_id"])

    async def follow(self, given: dict[str, Any]) -> AsyncGenerator[Any]:
        """Begin a run, after those that are under way, and wait for its end; yields its events."""
        parts = self.client.runs.stream(
            await self.thread(),
            GRAPH,
            input=given,
            stream_mode="custom",
            stream_subgraphs=True,
            on_disconnect="continue",
            **QUEUED,
        )
        try:
            async for part in parts:
                if part.event == "error":
                    raise CircadianError(f"the run failed: {part.data}")
                if part.event.startswith("custom"):
                    yield part.data
        except APIStatusError as error:
            raise CircadianError(f"the server refuses the run: {error.message}") from error

    async def erase_thread(self) -> None:
        """Delete the agent's files, and its schedules and thread on the server."""
        await erase_files(process_now(), self.scope)
        thread = self.scope.thread
        for cron in await self.client.crons.search(thread_id=thread, limit=PAGE):
            await self.client.crons.delete(cron["cron_id"])
        with suppress(ThreadNotFound):
            await self.client.threads.delete(thread)

    async def refresh(self, at_rest: str | None = None) -> None:
        """Let the server show the thread's last checkpoint; `at_rest`: as written by this node."""
        with suppress(ThreadNotFound):
            await self.client.threads.update_state(self.scope.thread, None, as_node=at_rest)


@asynccontextmanager
async def held(thread: str, shown: str, client: LangGraphClient) -> AsyncIterator[None]:
    """Hold an agent for a change: none of its runs is under way, and none begins meanwhile.

    `graph.server.auth` refuses runs of held threads. The thread is marked before its runs are
    listed: when a run and a change begin at once, at least one of the two sees the other.
    """
    if thread in HELD:
        raise BusyError(f"the agent {shown} is being changed: try again")
    HELD.add(thread)
    try:
        if await is_running(client, thread):
            raise BusyError(f"the agent {shown} is running: try again after it, or cancel the run")
        yield
    finally:
        HELD.discard(thread)


async def is_running(client: LangGraphClient, thread: str) -> bool:
    """Whether a run of the thread is under way, or waits."""
    for status in ("pending", "running"):
        try:
            if await client.runs.list(thread, status=status, limit=1):
                return True
        except ThreadNotFound:
            return False
    return False


def context_of(scope: Scope, hold: Callable[[], AbstractAsyncContextManager[Any]]) -> AgentContext:
    """What the use cases work with, for one agent of this server."""
    process = process_now()
    assert process.saver is not None
    saver, store = process.saver, process.served_store
    return AgentContext(
        lambda: compiled(saver, store),
        saver,
        store,
        replace(process.resources, user=scope.user),
        settings_of(None),
        scope,
        hold,
    )


async def erase_agent(scope: Scope) -> None:
    """Erase the memory and the files of an agent, if there are any. The caller holds the agent."""
    process = process_now()
    facts = await process.resources.semantic.count(scope)
    if facts or await count_items(process.served_store, scope.namespace()):
        await forget_agent(context_of(scope, nullcontext))
    await erase_files(process, scope)


async def erase_files(process: Process, scope: Scope) -> None:
    """Delete an agent's working folder; without a thread those of all agents of the user."""
    if process.folders is not None:
        await asyncio.to_thread(rmtree, folder_of(process.folders, scope), ignore_errors=True)


@lru_cache(maxsize=1)
def compiled(
    saver: BaseCheckpointSaver[str], store: BaseStore
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph over the server's own checkpoints and store."""
    return builder.compile(checkpointer=saver, store=store, name="agent")


Agent = Annotated[ServedAgent, Depends(ServedAgent)]
