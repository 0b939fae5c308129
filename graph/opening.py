"""Opening an agent from Python: `async with open_agent(...)` or `with open_agent(...)`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from graph.blocking import Agent
from graph.builder import builder
from graph.handle import AsyncAgent
from graph.persistence import open_saver, open_store
from memory.breaker import breakers_of
from memory.components import PromptComponent
from memory.home import Home, open_home
from memory.models.seam import choose_model, model_name
from memory.resources import Resources, utc_now
from memory.scope import LOCAL_USER, Scope, thread_id
from memory.settings import Deployment, Settings
from tools.extra import extra

log = logging.getLogger("circadian")


class open_agent:
    """One agent of one data folder, or of one database; closes also at exit.

    Args:
        data: the data folder, also where CIRCADIAN_DATABASE_URL is set; default that database, else
            CIRCADIAN_DATA, else `./.circadian`.
        agent: the agent's name; default CIRCADIAN_AGENT, else `default`.
        model: a name (`offline`, `openai:...`) or any LangChain chat model.
        embedder: a name or any LangChain embeddings; fixed when the data folder or the database is
            begun.
        settings: how the agent behaves.
        tools: LangChain tools beside the built-in ones; `tools.registry.registered` says in one
            line what the agent has to know of one. Those that CIRCADIAN_EXTENSIONS and
            CIRCADIAN_MCP name are there too.
        components: prompt components beside the built-in ones, `memory.components.component`;
            those of CIRCADIAN_EXTENSIONS are there too.
        folder: a working folder, whose files the agent reads, and changes where a person approves;
            default CIRCADIAN_FOLDER, else none.
        mcp: False starts none of the servers that CIRCADIAN_MCP names, as to look and not to run.
        clock: gives the time (UTC); default the wall clock.

    Raises:
        FolderError: the data folder, or the database, cannot be used as asked.
        DatabaseDown: the database cannot be reached.
        InputError: an unknown model name, a missing key, or what the user adds cannot be had.
    """

    def __init__(
        self,
        data: str | Path | None = None,
        agent: str | None = None,
        model: str | BaseChatModel | None = None,
        embedder: str | Embeddings | None = None,
        settings: Settings | None = None,
        tools: Sequence[BaseTool] = (),
        *,
        components: Sequence[PromptComponent] = (),
        folder: str | Path | None = None,
        mcp: bool = True,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._deployment = _deployment(folder, mcp=mcp)
        self._data = Path(data) if data is not None else None
        self._agent = agent or self._deployment.agent
        self._model, self._embedder = model, embedder
        self._settings = settings or Settings()
        self._tools, self._components, self._clock = tuple(tools), tuple(components), clock
        self._stack = AsyncExitStack()
        self._blocking: Agent | None = None

    async def __aenter__(self) -> AsyncAgent:
        try:
            return await self._open()
        except BaseException:
            await self._stack.aclose()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    def __enter__(self) -> Agent:
        self._blocking = Agent(self)
        return self._blocking.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._blocking is not None:
            self._blocking.close()

    async def _open(self) -> AsyncAgent:
        deployment = self._deployment
        model = self._chat_model()
        added = await extra(
            deployment,
            data=self._data or deployment.data,
            tools=self._tools,
            components=self._components,
        )
        home = await asyncio.to_thread(self._open_home)
        self._stack.callback(home.close)
        log.info("model %s, embedder %s, data %s", model_name(model), home.embedder, home.name)
        saver = await self._stack.enter_async_context(
            open_saver(home, keep=self._settings.checkpoints_kept)
        )
        store = await self._stack.enter_async_context(open_store(home))
        resources = Resources(
            chat_model=model,
            semantic=home.semantic(),
            clock=self._clock,
            tools=added.tools,
            components=added.components,
            breakers=breakers_of(deployment),
            synced=True,
        )
        scope = Scope(LOCAL_USER, thread_id(LOCAL_USER, self._agent))
        return AsyncAgent(
            builder.compile(checkpointer=saver, store=store, name="agent"),
            store,
            resources,
            self._settings,
            scope,
            home.agent_lock(scope.thread, timeout=deployment.lock_timeout),
        )

    def _open_home(self) -> Home:
        given = self._embedder
        return open_home(
            self._deployment,
            data=self._data,
            embedder=given if isinstance(given, str) else None,
            embeddings=given if isinstance(given, Embeddings) else None,
        )

    def _chat_model(self) -> BaseChatModel:
        if isinstance(self._model, BaseChatModel):
            return self._model
        return choose_model(self._model or self._deployment.model, offline=self._deployment.offline)


def _deployment(folder: str | Path | None, *, mcp: bool) -> Deployment:
    """The environment's variables, but for what the caller says."""
    said: dict[str, Path | None] = {} if folder is None else {"folder": Path(folder)}
    return Deployment().model_copy(update=said if mcp else {**said, "mcp": None})
