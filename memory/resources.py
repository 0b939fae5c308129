"""What a run works with: the clock, the models and the semantic memory of one installation.

`open_agent` hands its own through the run's config; on a server, where the config is the
client's, the process has one set made from the environment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from memory.breaker import Breakers, breakers_of
from memory.components import PromptComponent
from memory.extensions import Extensions
from memory.reports import Report
from memory.scope import LOCAL_USER, Scope
from memory.semantic import SemanticMemory
from memory.settings import Deployment, Settings

if TYPE_CHECKING:
    from memory.home import Home

KEY = "circadian"
"""Where `config["configurable"]` carries a run's Resources. Never checkpointed: not a primitive."""


SERVED_USER = "langgraph_auth_user_id"
"""Where LangGraph Server puts the authenticated user; it refuses a client that names it itself."""

RESUMED = "circadian_resumed"
"""Where it carries the report of an unfinished run that was just finished."""

UNDONE = "circadian_undone"
"""Where it carries the id of a night whose undo had been broken off, and was just finished."""


def utc_now() -> datetime:
    """The wall clock, UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Resources:
    """One installation's models, memory and clock."""

    chat_model: BaseChatModel
    semantic: SemanticMemory
    clock: Callable[[], datetime] = utc_now
    user: str = LOCAL_USER
    tools: tuple[BaseTool, ...] = ()
    """Tools that the user adds to the built-in ones."""
    components: tuple[PromptComponent, ...] = ()
    """Prompt components that the user adds to the built-in ones."""
    breakers: Breakers = field(default_factory=Breakers.of)
    served: bool = False
    """A server's: who is an owner never comes from input or context there."""
    synced: bool = False
    """Every checkpoint is on disk before the next step starts (`durability="sync"`)."""
    night_only: bool = False
    """A run to try a night out, or to apply one: whatever else waits goes on waiting."""
    load_model: Callable[[str], BaseChatModel] = field(default=lambda name: _load(name))
    """Resolves a model name in a setting, such as compact_model."""

    def __post_init__(self) -> None:
        # Its files and its embedder are left alone by the same breakers.
        self.semantic.breakers = self.breakers


def resources_of(config: RunnableConfig) -> Resources:
    """The run's resources: those that `open_agent` put into its config, else the process's own."""
    configurable = config.get("configurable", {})
    given = configurable.get(KEY)
    if isinstance(given, Resources):
        return given
    ours, user = _process().resources, configurable.get(SERVED_USER)
    return replace(ours, user=str(user)) if user and user != ours.user else ours


def resumed_report(config: RunnableConfig) -> Report | None:
    """What `open_agent` left there. A server's client cannot: its config holds no Resources."""
    given = config.get("configurable", {})
    ours = isinstance(given.get(KEY), Resources)
    return cast(Report | None, given.get(RESUMED)) if ours else None


def undo_looked_for(config: RunnableConfig) -> bool:
    """Whether `open_agent` finished any undo before the run. As with `resumed_report`."""
    given = config.get("configurable", {})
    return isinstance(given.get(KEY), Resources) and UNDONE in given


def undone_night(config: RunnableConfig) -> str | None:
    """The night whose undo that was; None where there was none to finish."""
    return cast(str | None, config["configurable"][UNDONE])


def process_now() -> Process:
    """What the process has, made where it is not. Blocking the first time. Raises as `open_home`.

    For what a server does beside its runs.
    """
    return _process()


@asynccontextmanager
async def process_resources(
    extra: Callable[[], Awaitable[Extensions]] | None = None,
) -> AsyncIterator[Resources]:
    """The process's own resources, from before its first run to its end.

    To make them reads files, and a node that did so would hold up every run of a server. `extra`
    gives what the user adds; without this, as where a graph is compiled by hand, there is nothing.

    Raises:
        FolderError: the data folder, or the database, cannot be used as asked.
        DatabaseDown: the database cannot be reached.
        InputError: an unknown model name, a missing key, or what `extra` raises.
    """
    process = await asyncio.to_thread(_process)
    try:
        if extra is not None:
            added = await extra()
            process.resources = replace(
                process.resources, tools=added.tools, components=added.components
            )
        yield process.resources
    finally:
        _process.cache_clear()
        await asyncio.to_thread(process.home.close)


def scope_of(config: RunnableConfig) -> Scope:
    """Whose run this is. The user never comes from input or context."""
    configurable: Mapping[str, Any] = config.get("configurable", {})
    return Scope(resources_of(config).user, str(configurable["thread_id"]))


def store_of(runtime: Runtime[Settings] | ToolRuntime[Any, Any]) -> BaseStore:
    """The store of a node's or a tool's run."""
    return present(runtime.store)


def present(store: BaseStore | None) -> BaseStore:
    """`store`. Raises RuntimeError where the graph was compiled without one."""
    if store is None:
        raise RuntimeError("the graph was compiled without a store; open it with open_agent")
    return store


def settings_of(context: Settings | Mapping[str, Any] | None) -> Settings:
    """The run's settings. LangGraph leaves the context None where a caller passes none."""
    if isinstance(context, Settings):
        return context
    return Settings.model_validate(context or {})


def _load(name: str) -> BaseChatModel:
    from memory.models.seam import load_chat_model

    return load_chat_model(name)


@dataclass
class Process:
    """What the process has, where no run brings its own."""

    home: Home
    resources: Resources
    store: BaseStore | None = None
    """A server's, while it is open."""
    saver: BaseCheckpointSaver[str] | None = None
    """A server's, while it is open."""

    @property
    def served_store(self) -> BaseStore:
        """The server's store. Raises RuntimeError where none is open."""
        return present(self.store)


@lru_cache(maxsize=1)
def _process() -> Process:
    from memory.home import open_home
    from memory.models.seam import choose_model

    deployment = Deployment()
    home = open_home(deployment)
    return Process(
        home,
        Resources(
            chat_model=choose_model(deployment.model, offline=deployment.offline),
            semantic=home.semantic(),
            breakers=breakers_of(deployment),
            served=True,
        ),
    )
