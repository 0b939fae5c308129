"""The agent as one object whose methods are the use cases, asynchronous or blocking; opening it."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, cached_property, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore

from graph import use_cases
from graph.blocking import BackgroundLoop, Streams, shared_loop
from graph.persistence import open_saver, open_store
from graph.use_cases import AgentContext, Input
from memory import models
from memory.errors import InputError
from memory.installation import Installation, WriterLock, open_installation
from memory.prompt import Extensions, PromptComponent
from memory.recall import repair
from memory.records import LOCAL_USER, Scope, thread_id
from memory.runtime import KEY, Resources, checked_settings, utc_now
from memory.settings import Configuration, Deployment, Settings, configured, environment_only
from memory.state import State
from memory.storage import ThreadedStore

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.tools import BaseTool
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import StateSnapshot


log = logging.getLogger("circadian")
P = ParamSpec("P")
R = TypeVar("R")


def _method(
    use_case: Callable[Concatenate[AgentContext, P], R],
) -> Callable[Concatenate[AsyncAgent, P], R]:
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


class AsyncAgent:
    """One agent of one data folder or database. Made by `open_agent` and `open_agents`."""

    def __init__(self, context: AgentContext, streams: Streams) -> None:
        self.context = context
        """Graph, store, memory, settings and lock, as the use cases take them."""
        self.store = context.store
        """Journal, profiles, links, inbox, nights and audit log."""
        self.resources = context.resources
        """Models, semantic memory and clock."""
        self.settings = context.settings
        """How the agent behaves."""
        self.scope = context.scope
        """The agent's user and thread, with which every key begins."""
        self.streams = streams

    @property
    def graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """The compiled graph, with its checkpointer and store."""
        return self.context.graph

    config = _method(AgentContext.config)

    # Running

    ainvoke = _method(use_cases.run)
    astream = _streaming(use_cases.stream)
    post = _method(use_cases.post)
    approve = _method(use_cases.approve)
    refuse = _method(use_cases.refuse)

    # State

    async def aget_state(
        self, /, config: RunnableConfig | None = None, *, subgraphs: bool = False
    ) -> StateSnapshot:
        """The thread's last checkpoint, and what is under way in it; takes no lock.

        The values are copies: the saver shares its message objects, which must not be changed.
        """
        found = await self.context.snapshot(config, subgraphs=subgraphs)
        return found._replace(values=deepcopy(found.values))

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
            InputError: `config` is not a config, or belongs to another agent; or `values` has a key
                that is not in the state, which LangGraph would silently ignore.
        """
        if unknown := set(config or {}) - RunnableConfig.__annotations__.keys():
            raise InputError(
                f"update_state(config, values, as_node): a config has no {min(unknown)!r:.80}; put "
                "None, or the config of a snapshot, in front of the values"
            )
        if unknown := set(values or {}) - State.__annotations__.keys():
            raise InputError(f"the state has no {min(unknown)!r:.80}")
        async with self.context.lock():
            bound = self.config(config)
            if as_node is None and not (await self.graph.aget_state(bound)).values:
                as_node = "intake"  # LangGraph cannot tell who wrote a thread without a state
            edit = None if values is None else dict(values)
            return await self.graph.aupdate_state(bound, edit, as_node=as_node, task_id=task_id)

    rollback_prompt = _method(use_cases.rollback)

    # Memory

    recall = _method(use_cases.recall)
    everything = _method(use_cases.list_memories)
    correct = _method(use_cases.correct)
    forget = _method(use_cases.forget)
    forget_fact = _method(use_cases.forget_fact)
    forget_entry = _method(use_cases.forget_entry)
    export_memory = _method(use_cases.export_memory)
    import_memory = _method(use_cases.import_memory)

    # Nights

    nights = _method(use_cases.nights.list_nights)
    night = _method(use_cases.nights.night_report)
    sleep = _method(use_cases.nights.sleep)
    apply_night = _method(use_cases.nights.apply_night)
    discard_night = _method(use_cases.nights.discard_night)
    undo_night = _method(use_cases.nights.undo_night)


def _blocking(
    method: Callable[Concatenate[AsyncAgent, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Agent, P], R]:
    @wraps(method)
    def call(self: Agent, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.call(method(self.asynchronous, *args, **kwargs))

    return call


def _collecting(
    method: Callable[Concatenate[AsyncAgent, P], AsyncIterator[R]],
) -> Callable[Concatenate[Agent, P], Iterator[R]]:
    @wraps(method)
    def call(self: Agent, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        async def every() -> list[R]:
            return [item async for item in method(self.asynchronous, *args, **kwargs)]

        return iter(self.call(every()))

    return call


class Agent:
    """One agent, for blocking use. Made by `open_agent` and `open_agents`."""

    def __init__(self, loop: BackgroundLoop, asynchronous: AsyncAgent) -> None:
        self._loop, self._asynchronous = loop, asynchronous

    @property
    def asynchronous(self) -> AsyncAgent:
        """The asynchronous agent behind this one. Raises InputError once it is closed."""
        if not self._loop.is_open:
            raise InputError("the agent is closed: open it again")
        return self._asynchronous

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
        yield from self._loop.stream(self.asynchronous.astream(input, config, **options))

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


@dataclass(frozen=True)
class Agents:
    """The agents of one data folder or database, which share its connections and one graph."""

    home: Installation
    saver: BaseCheckpointSaver[str]
    store: BaseStore
    resources: Resources
    settings: Settings
    lock_timeout: float
    """Seconds to wait for an agent that another process holds."""
    default_name: str = "default"
    """The agent that is opened if no name is given."""
    _queues: weakref.WeakValueDictionary[str, asyncio.Lock] = field(
        default_factory=weakref.WeakValueDictionary
    )
    """By thread: the lock for which the callers of this process queue."""
    streams: Streams = field(default_factory=Streams)

    @cached_property
    def graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """The graph of all of them, compiled when it is first needed."""
        return compiled(self.saver, self.store)

    def agent(self, name: str, *, user: str = LOCAL_USER) -> AsyncAgent:
        """The agent called `name` that belongs to `user`, cheap to make whenever it is needed.

        Its owner is `user`, unless the settings name owners.
        """
        scope, settings = Scope(user, thread_id(user, name)), self.settings
        if settings.owners == [LOCAL_USER]:
            settings = settings.model_copy(update={"owners": [user]})
        resources = replace(self.resources, user=user)
        lock = partial(self.home.agent_lock, scope.thread, name=name, timeout=self.lock_timeout)
        queue = self._queues.setdefault(scope.thread, asyncio.Lock())
        turn = partial(_in_turn, queue, lock)
        context = AgentContext(
            lambda: self.graph, self.saver, self.store, resources, settings, scope, turn, name
        )
        return AsyncAgent(context, self.streams)


@asynccontextmanager
async def _in_turn(queue: asyncio.Lock, lock: Callable[[], WriterLock]) -> AsyncIterator[None]:
    """Hold the lock. Callers of this process queue for it, without a time limit."""
    async with queue, lock():
        yield


class BlockingAgents:
    """The agents of one data folder or database, for blocking use. Made by `open_agents`."""

    def __init__(self, loop: BackgroundLoop, agents: Agents) -> None:
        self._loop, self.asynchronous = loop, agents

    def agent(self, name: str, *, user: str = LOCAL_USER) -> Agent:
        """As `Agents.agent`; it is closed together with all others."""
        return Agent(self._loop, self.asynchronous.agent(name, user=user))

    def close(self) -> None:
        """Close all agents. Idempotent."""
        self._loop.close()


class open_agents:
    """Open a folder or database for many agents (a context manager); arguments as `open_agent`.

    `async with open_agents() as agents: await agents.agent("default", user="ada").ainvoke(...)`,
    or without `async` and `await`: then `agent(...)` gives blocking agents. Raises as `open_agent`.
    """

    def __init__(
        self,
        data: str | Path | None = None,
        model: str | BaseChatModel | None = None,
        embedder: str | Embeddings | None = None,
        settings: Settings | Mapping[str, Any] | Configuration | None = None,
        tools: Sequence[BaseTool | Callable[..., Any]] = (),
        *,
        components: Sequence[PromptComponent] = (),
        folder: str | Path | None = None,
        mcp: bool = True,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._data = Path(data) if data is not None else None
        self._folder, self._mcp = folder, mcp
        self._model, self._embedder, self._settings = model, embedder, settings
        self._tools, self._components, self._clock = tuple(tools), tuple(components), clock
        self._stack = AsyncExitStack()
        self._loop: BackgroundLoop | None = None

    async def __aenter__(self) -> Agents:
        found = await asyncio.to_thread(_configuration, self._data, self._settings)
        kept, deployment = found.settings, found.deployment
        async with AsyncExitStack() as stack:
            home, resources = await self.prepare(deployment)
            stack.callback(home.close)
            saver = await stack.enter_async_context(open_saver(home, keep=kept.checkpoints_kept))
            store = await stack.enter_async_context(open_store(home))
            wait, default_name = deployment.lock_timeout, deployment.agent
            agents = Agents(home, saver, store, resources, kept, wait, default_name)
            stack.push_async_callback(agents.streams.close)
            self._stack = stack.pop_all()
        return agents

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    def __enter__(self) -> BlockingAgents:
        self._loop = BackgroundLoop()
        return BlockingAgents(self._loop, self._loop.open(self))

    def __exit__(self, *error: object) -> None:
        if self._loop is not None:
            self._loop.close()

    async def prepare(self, deployment: Deployment) -> tuple[Installation, Resources]:
        """The installation, which the caller closes, and the resources of its runs."""
        if self._folder is not None:
            deployment = deployment.model_copy(update={"folder": Path(self._folder)})
        if not self._mcp:
            deployment = deployment.model_copy(update={"mcp": None})
        embedder = self._embedder
        if not isinstance(embedder, str | Embeddings | None):
            kind = type(embedder).__name__
            raise InputError(f"embedder must be a name or LangChain embeddings; got {kind}")
        model = _chat_model(self._model, deployment)
        added = await self._extensions(deployment)
        home = await asyncio.to_thread(
            open_installation,
            deployment,
            data=self._data,
            embedder=embedder if isinstance(embedder, str) else None,
            embeddings=embedder if isinstance(embedder, Embeddings) else None,
        )
        if log.isEnabledFor(logging.INFO):  # naming the model loads it
            name = models.model_name(model())
            log.info("model %s, embedder %s, data %s", name, home.embedder, home.name)
        resources = Resources(
            model=model,
            semantic=home.semantic,
            clock=self._clock,
            tools=added.tools,
            components=added.components,
            breakers=models.breakers_of(deployment),
        )
        return home, resources

    async def _extensions(self, deployment: Deployment) -> Extensions:
        named = (deployment.extensions, deployment.folder, deployment.mcp)
        if not (self._tools or self._components or any(named)):
            return Extensions()
        from tools.extensions import extra  # tools take long to load

        return await extra(
            deployment,
            data=self._data or deployment.data,
            tools=self._tools,
            components=self._components,
        )


class open_agent:
    """Open one agent (a context manager). A blocking agent still open is closed at exit.

    Args:
        data: the data folder; default the database of CIRCADIAN_DATABASE_URL, else the folder
            CIRCADIAN_DATA, else `./.circadian`.
        agent: the agent's name; default CIRCADIAN_AGENT, else `default`.
        model: a name (`offline`, `openai:...`) or any LangChain chat model.
        embedder: a name or any LangChain embeddings; chosen when the data folder or database is
            created. Later only `circadian reindex` changes it.
        settings: how the agent behaves: `Settings`, or a dict of some of its fields; then no
            settings file is read. A `Configuration` (`memory.settings.configured`) also says where
            the data is and which models are used. Default: the settings file, overridden by the
            CIRCADIAN_ variables.
        tools: tools in addition to the built-in ones and those of CIRCADIAN_EXTENSIONS and
            CIRCADIAN_MCP. A plain function with a docstring and annotated arguments is one; a
            person is asked before it runs. `tools.registry.registered` declares another category.
        components: prompt components in addition to the built-in ones and those of
            CIRCADIAN_EXTENSIONS; make them with `memory.prompt.components.component`.
        folder: a working folder. The agent may read its files, and changes them only with a
            person's approval; default CIRCADIAN_FOLDER, else none.
        mcp: False starts none of the servers of CIRCADIAN_MCP; for callers that only read.
        clock: gives the time, UTC; default the wall clock.

    Raises:
        FolderError: the data folder, or the database, cannot be used as asked.
        DatabaseDown: the database cannot be reached.
        InputError: an unknown model name, a missing key, a model that cannot call tools, an unknown
            setting, or a tool or an extension that cannot be loaded.
    """

    def __init__(
        self,
        data: str | Path | None = None,
        agent: str | None = None,
        model: str | BaseChatModel | None = None,
        embedder: str | Embeddings | None = None,
        settings: Settings | Mapping[str, Any] | Configuration | None = None,
        tools: Sequence[BaseTool | Callable[..., Any]] = (),
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
        self._loop: BackgroundLoop | None = None

    async def __aenter__(self) -> AsyncAgent:
        agents = await self._agents.__aenter__()
        agent = agents.agent(self._agent or agents.default_name)
        try:
            # A crash may have left journal entries unindexed.
            await repair(agent.store, agent.resources.semantic, agent.scope)
        except BaseException:
            await self._agents.__aexit__()
            raise
        return agent

    async def __aexit__(self, *error: object) -> None:
        await self._agents.__aexit__(*error)

    def __enter__(self) -> Agent:
        self._loop = BackgroundLoop()
        return Agent(self._loop, self._loop.open(self))

    def __exit__(self, *error: object) -> None:
        if self._loop is not None:
            self._loop.close()


def make_graph(
    data: str | Path | None = None,
    model: str | BaseChatModel | None = None,
    embedder: str | Embeddings | None = None,
    tools: Sequence[BaseTool | Callable[..., Any]] = (),
    *,
    checkpointer: BaseCheckpointSaver[Any],
    store: BaseStore,
    components: Sequence[PromptComponent] = (),
    folder: str | Path | None = None,
    mcp: bool = True,
    clock: Callable[[], datetime] = utc_now,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The compiled graph over your checkpointer and store, for blocking and asynchronous calls.

    Each thread is an agent. Facts are in `data`, everything else is in the store. A thread's
    settings are the context of a run: `graph.invoke(input, config, context={"persona": "..."})`.
    Unlike `open_agent` it takes no lock: run a thread's runs one after another.
    Other arguments as `open_agent`, and it raises as that does. Blocks.
    """
    opening = open_agents(
        data,
        model,
        embedder,
        tools=tools,
        components=components,
        folder=folder,
        mcp=mcp,
        clock=clock,
    )
    deployment = configured(Path(data) if data is not None else None).deployment
    home, resources = shared_loop().call(opening.prepare(deployment))
    from langgraph.store.sqlite import SqliteStore

    reachable = ThreadedStore(store) if type(store) is SqliteStore else store
    graph = compiled(checkpointer, reachable)
    bound = graph.with_config(configurable={KEY: resources})
    weakref.finalize(bound, home.close)
    return bound


def compiled(
    saver: BaseCheckpointSaver[Any], store: BaseStore
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph over this saver and store. Loads the nodes, which readers do not need."""
    from graph.builder import builder

    return builder.compile(checkpointer=saver, store=store, name="agent")


def _chat_model(
    given: str | BaseChatModel | None, deployment: Deployment
) -> Callable[[], BaseChatModel]:
    """A function that gives the model. The offline model is loaded at first use; any other at once,
    so that a wrong name or key is an error now.
    """
    if given is None or isinstance(given, str):
        given = given or deployment.model
        if given == models.OFFLINE:
            return cache(partial(models.load_chat_model, models.OFFLINE))
        given = models.choose_model(given, offline=deployment.offline)
    model = models.checked_model(given)
    return lambda: model


def _configuration(
    data: Path | None, given: Settings | Mapping[str, Any] | Configuration | None
) -> Configuration:
    """The configuration as given, or as files and variables say. Blocking."""
    if isinstance(given, Configuration):
        return given
    if given is None:
        return configured(data)
    return Configuration(checked_settings(given), environment_only())
