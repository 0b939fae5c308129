"""Opening agents from Python: one with `open_agent`, many at once with `open_agents`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from graph.api.async_agent import AsyncAgent
from graph.api.blocking import Agent
from graph.builder import builder
from graph.persistence import open_saver, open_store
from graph.use_cases import AgentContext
from memory.installation import CheckedLock, Installation, open_installation
from memory.models import breakers_of, checked_model, choose_model, model_name
from memory.prompt import PromptComponent
from memory.recall import repair
from memory.records import LOCAL_USER, Scope, thread_id
from memory.runtime import Resources, utc_now
from memory.settings import Configuration, Deployment, Settings, configured, environment_only
from tools.extensions import extra

log = logging.getLogger("circadian")


@dataclass(frozen=True)
class Agents:
    """The agents of one data folder or database, which share its connections and one graph."""

    home: Installation
    graph: CompiledStateGraph[Any, Any, Any, Any]
    store: BaseStore
    resources: Resources
    settings: Settings
    lock_timeout: float
    """Seconds to wait for an agent that another process holds."""
    usual: str = "default"
    """The name of an agent that is not named."""
    _queues: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    """Thread -> where the callers of this process wait for their turn."""

    def agent(self, name: str, *, user: str = LOCAL_USER) -> AsyncAgent:
        """The agent called `name` that belongs to `user`, cheap to make whenever it is needed.

        Its owner is `user`, unless the settings name owners.
        """
        scope, settings = Scope(user, thread_id(user, name)), self.settings
        if settings.owners == [LOCAL_USER]:
            settings = settings.model_copy(update={"owners": [user]})
        resources = replace(self.resources, user=user)
        lock = self.home.agent_lock(scope.thread, timeout=self.lock_timeout)
        queue = self._queues.setdefault(scope.thread, asyncio.Lock())
        checked = CheckedLock(lock, self.home.check, queue)
        return AsyncAgent(
            AgentContext(self.graph, self.store, resources, settings, scope, checked, name)
        )


@asynccontextmanager
async def open_agents(
    data: str | Path | None = None,
    model: str | BaseChatModel | None = None,
    embedder: str | Embeddings | None = None,
    settings: Settings | Configuration | None = None,
    tools: Sequence[BaseTool] = (),
    *,
    components: Sequence[PromptComponent] = (),
    folder: str | Path | None = None,
    mcp: bool = True,
    clock: Callable[[], datetime] = utc_now,
) -> AsyncIterator[Agents]:
    """Open a data folder or a database for many agents of many users; arguments as `open_agent`.

    `async with open_agents() as agents: await agents.agent("default", user="ada").ainvoke(...)`.
    Raises as `open_agent`.
    """
    path = Path(data) if data is not None else None
    found = await asyncio.to_thread(_configuration, path, settings)
    deployment, kept = _with_arguments(found.deployment, folder, mcp=mcp), found.settings
    chat_model = _chat_model(model, deployment)
    added = await extra(
        deployment, data=path or deployment.data, tools=tuple(tools), components=tuple(components)
    )
    home = await asyncio.to_thread(
        open_installation,
        deployment,
        data=path,
        embedder=embedder if isinstance(embedder, str) else None,
        embeddings=embedder if isinstance(embedder, Embeddings) else None,
    )
    log.info("model %s, embedder %s, data %s", model_name(chat_model), home.embedder, home.name)
    try:
        async with open_saver(home, keep=kept.checkpoints_kept) as saver, open_store(home) as store:
            resources = Resources(
                chat_model=chat_model,
                semantic=home.semantic(),
                clock=clock,
                tools=added.tools,
                components=added.components,
                breakers=breakers_of(deployment),
                synced=True,
            )
            graph = builder.compile(checkpointer=saver, store=store, name="agent")
            yield Agents(
                home, graph, store, resources, kept, deployment.lock_timeout, deployment.agent
            )
    finally:
        home.close()


class open_agent:
    """Open one agent of one data folder or database; blocking agents are also closed at exit.

    Args:
        data: the data folder; default the database of CIRCADIAN_DATABASE_URL, else the folder
            CIRCADIAN_DATA, else `./.circadian`.
        agent: the agent's name; default CIRCADIAN_AGENT, else `default`.
        model: a name (`offline`, `openai:...`) or any LangChain chat model.
        embedder: a name or any LangChain embeddings; fixed once the data folder or database is
            made.
        settings: how the agent behaves. A `Configuration` (`memory.settings.configured`) says where
            and with what, too. Default: the settings file, and the CIRCADIAN_ variables before it;
            `Settings` are taken as they are, and no file is read.
        tools: LangChain tools in addition to the built-in ones and those of CIRCADIAN_EXTENSIONS
            and CIRCADIAN_MCP; declare them with `tools.registry.registered`.
        components: prompt components in addition to the built-in ones and those of
            CIRCADIAN_EXTENSIONS; make them with `memory.prompt.components.component`.
        folder: a working folder, whose files the agent reads, and changes after a person approved;
            default CIRCADIAN_FOLDER, else none.
        mcp: False starts none of the servers that CIRCADIAN_MCP names, for looking only.
        clock: gives the time, UTC; default the wall clock.

    Raises:
        FolderError: the data folder, or the database, cannot be used as asked.
        DatabaseDown: the database cannot be reached.
        InputError: an unknown model name, a missing key, a model that cannot call tools, or an
            extension that cannot be loaded.
    """

    def __init__(
        self,
        data: str | Path | None = None,
        agent: str | None = None,
        model: str | BaseChatModel | None = None,
        embedder: str | Embeddings | None = None,
        settings: Settings | Configuration | None = None,
        tools: Sequence[BaseTool] = (),
        *,
        components: Sequence[PromptComponent] = (),
        folder: str | Path | None = None,
        mcp: bool = True,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._agent = agent
        self._agents = open_agents(
            data,
            model,
            embedder,
            settings,
            tools,
            components=components,
            folder=folder,
            mcp=mcp,
            clock=clock,
        )
        self._stack = AsyncExitStack()
        self._blocking: Agent | None = None

    async def __aenter__(self) -> AsyncAgent:
        agents = await self._stack.enter_async_context(self._agents)
        agent = agents.agent(self._agent or agents.usual)
        # For entries that a crash left unindexed.
        await repair(agent.store, agent.resources.semantic, agent.scope)
        return agent

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    def __enter__(self) -> Agent:
        self._blocking = Agent(self)
        return self._blocking.open()

    def __exit__(self, *error: object) -> None:
        if self._blocking is not None:
            self._blocking.close()


def _chat_model(given: str | BaseChatModel | None, deployment: Deployment) -> BaseChatModel:
    if given is None or isinstance(given, str):
        given = choose_model(given or deployment.model, offline=deployment.offline)
    return checked_model(given)


def _configuration(data: Path | None, given: Settings | Configuration | None) -> Configuration:
    """What is in force: as given, or found beside the data. Blocking."""
    if isinstance(given, Configuration):
        return given
    return configured(data) if given is None else Configuration(given, environment_only())


def _with_arguments(deployment: Deployment, folder: str | Path | None, *, mcp: bool) -> Deployment:
    given: dict[str, Path | None] = {} if folder is None else {"folder": Path(folder)}
    return deployment.model_copy(update=given if mcp else {**given, "mcp": None})
