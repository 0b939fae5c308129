"""What a run depends on: the clock, the models and the semantic memory of an installation.

`open_agent` passes its own in the run's config. On a server the config is the client's, so the
process has one set, made from the environment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from pydantic import BaseModel, ValidationError

from memory.errors import InputError
from memory.facts import SemanticMemory
from memory.models import Answer, Breakers, ask, ask_for, breakers_of, load_chat_model
from memory.prompt import Extensions, PromptComponent
from memory.records import LOCAL_USER, HandledMark, Report, Scope, Usage
from memory.settings import Settings, configured

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.prebuilt import ToolRuntime
    from langgraph.runtime import Runtime
    from langgraph.store.base import BaseStore

    from memory.events import inbox
    from memory.installation import Installation

Form = TypeVar("Form", bound=BaseModel)

KEY = "circadian"
"""Key of `config["configurable"]` for a run's Resources. Not a primitive, so not checkpointed."""

SERVED_USER = "langgraph_auth_user_id"
"""Key under which LangGraph Server puts the authenticated user; clients may not set it."""

RESUMED = "circadian_resumed"
"""Key for the report of an unfinished run that was just resumed."""

UNDONE = "circadian_undone"
"""Key for the id of a night whose interrupted undo was just finished."""


IGNORED = "circadian_ignored"
"""Key of a server run's metadata: what of its input was ignored, by the run's id."""


def utc_now() -> datetime:
    """The wall clock, UTC."""
    return datetime.now(UTC)


class Bounds(NamedTuple):
    """What bounds an agent of a server, whatever its users write into its state."""

    room: Callable[[Scope], Awaitable[inbox.Room]]
    """How many events a run may take in."""
    spent: Callable[[Scope], Awaitable[int]]
    """The model tokens that its ticks used on this day (UTC)."""


@dataclass(frozen=True)
class Resources:
    """An installation's models, memory and clock."""

    model: Callable[[], BaseChatModel]
    semantic: SemanticMemory
    clock: Callable[[], datetime] = utc_now
    user: str = LOCAL_USER
    tools: tuple[BaseTool, ...] = ()
    """Tools that the user adds to the built-in ones."""
    components: tuple[PromptComponent, ...] = ()
    """Prompt components that the user adds to the built-in ones."""
    breakers: Breakers = field(default_factory=Breakers.of)
    served: bool = False
    """On a server: owners never come from input or context."""
    night_only: bool = False
    """A run that previews or applies a night only; waiting events keep waiting."""
    bounds: Bounds | None = None
    """What a server's operator allows."""
    load_model: Callable[[str], BaseChatModel] = load_chat_model
    """Loads a model by the name in a setting, such as compact_model."""

    def __post_init__(self) -> None:
        # The memory's files and embedder are behind the same breakers.
        self.semantic.breakers = self.breakers

    @property
    def chat_model(self) -> BaseChatModel:
        """The model that answers."""
        return self.model()

    async def ask(
        self,
        messages: Sequence[BaseMessage],
        settings: Settings,
        config: RunnableConfig,
        **more: Any,
    ) -> Answer:
        """Ask the chat model, behind its breaker; see `memory.models.ask`, also for `more`."""
        model, guard = self.chat_model, self.breakers.model
        return await ask(model, messages, settings, config=config, breaker=guard, **more)

    async def ask_for(
        self,
        messages: Sequence[BaseMessage],
        form: type[Form],
        settings: Settings,
        config: RunnableConfig,
    ) -> tuple[Form, Usage]:
        """Ask the chat model for an answer of this form; see `memory.models.ask_for`."""
        model, guard = self.chat_model, self.breakers.model
        return await ask_for(model, messages, form, settings, config=config, breaker=guard)


def resources_of(config: RunnableConfig) -> Resources:
    """The run's resources: from its config if `open_agent` put them there, or the process's."""
    configurable = config.get("configurable", {})
    given = configurable.get(KEY)
    if isinstance(given, Resources):
        return given
    ours, user = process_now().resources, configurable.get(SERVED_USER)
    return replace(ours, user=str(user)) if user and user != ours.user else ours


def ignored_by(metadata: Mapping[str, Any]) -> list[str]:
    """Notes on what a server ignored of the run's input."""
    ignored = metadata.get(IGNORED)  # which a client may have set as well
    found = ignored.get(metadata.get("run_id")) if isinstance(ignored, dict) else None
    return [f"Ignored: {one}." for one in found] if isinstance(found, list) else []


async def marks_elsewhere(config: RunnableConfig) -> list[HandledMark]:
    """Of a run from a checkpoint that it names, the events that other branches answered."""
    saver = config["configurable"].get("__pregel_checkpointer")
    if saver is None or "checkpoint_id" not in config.get("metadata", {}):
        return []
    place = {"thread_id": config["configurable"]["thread_id"], "checkpoint_ns": ""}
    try:
        kept = [one async for one in saver.alist({"configurable": place})]
    except NotImplementedError:  # a saver for blocking calls only
        kept = list(saver.list({"configurable": place}))
    states = [one.checkpoint["channel_values"] for one in kept]
    return [mark for one in states for mark in one.get("handled") or []]


def resumed_report(config: RunnableConfig) -> Report | None:
    """The report under RESUMED. A server's client cannot set it: its config has no Resources."""
    given = config.get("configurable", {})
    ours = isinstance(given.get(KEY), Resources)
    return cast(Report | None, given.get(RESUMED)) if ours else None


def undo_looked_for(config: RunnableConfig) -> bool:
    """Whether `open_agent` looked for an interrupted undo before this run."""
    given = config.get("configurable", {})
    return isinstance(given.get(KEY), Resources) and UNDONE in given


def undone_night(config: RunnableConfig) -> str | None:
    """The night whose interrupted undo was finished before this run; None if there was none."""
    return cast(str | None, config["configurable"][UNDONE])


@asynccontextmanager
async def process_resources(
    extra: Callable[[], Awaitable[Extensions]] | None = None,
) -> AsyncIterator[Resources]:
    """The process's resources, from before its first run to its end.

    Creating them reads files, which no node of a server may do. `extra` loads the user's
    extensions. Raises as `open_installation`, `choose_model` and `extra` do.
    """
    process = await asyncio.to_thread(process_now)
    try:
        if extra is not None:
            added = await extra()
            process.resources = replace(
                process.resources, tools=added.tools, components=added.components
            )
        yield process.resources
    finally:
        process_now.cache_clear()
        await asyncio.to_thread(process.home.close)


def scope_of(config: RunnableConfig) -> Scope:
    """The user and thread of a run. The user never comes from input or context."""
    configurable: Mapping[str, Any] = config.get("configurable", {})
    return Scope(resources_of(config).user, str(configurable["thread_id"]))


def store_of(runtime: Runtime[Settings] | ToolRuntime[Any, Any]) -> BaseStore:
    """The store of a node's or a tool's run."""
    return present(runtime.store)


def present(store: BaseStore | None) -> BaseStore:
    """`store`. Raises RuntimeError if the graph was compiled without one."""
    if store is None:
        raise RuntimeError(
            "the graph was compiled without a store: give compile a store, or use open_agent"
        )
    return store


def settings_of(context: Settings | Mapping[str, Any] | None) -> Settings:
    """The run's settings. LangGraph passes None if the caller gave no context.

    On a server, what a context leaves out is as the operator has it; what only the operator may
    choose raises InputError.
    """
    settings = context if isinstance(context, Settings) else None
    if settings is None:
        settings = Settings.model_validate(context or {})
    if not process_now.cache_info().currsize:  # no server
        return settings
    process = process_now()
    usual = process.given
    _check_chosen(settings, usual, process.users_may_set)
    left = usual.keys() - settings.model_fields_set
    return settings.model_copy(update={name: usual[name] for name in left}) if left else settings


def _check_chosen(settings: Settings, usual: Mapping[str, Any], may: frozenset[str] | None) -> None:
    """Refuse what the border let through earlier, such as the settings of an older assistant."""
    if may is None:
        return
    others = [
        name
        for name in sorted(settings.model_fields_set - may)
        if getattr(settings, name) != usual.get(name, Settings.model_fields[name].default)
    ]
    if others:
        raise InputError(
            f"the operator of this server decides on {', '.join(others)}: take that out of the "
            "assistant, the schedule or the run"
        )


def checked_settings(given: Settings | Mapping[str, Any] | None) -> Settings:
    """What a caller gave as settings. Raises InputError for a name or value that is none."""
    if isinstance(given, Settings):
        return given
    try:
        return Settings.model_validate({} if given is None else given)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
    raise InputError(
        f"settings: {name or 'give Settings or an object'}: {first['msg']}; got "
        f"{first['input']!r:.80}"
    )


@dataclass
class Process:
    """Process-wide resources, for runs that bring none of their own."""

    home: Installation
    resources: Resources
    store: BaseStore | None = None
    """The server's, while it is open."""
    saver: BaseCheckpointSaver[str] | None = None
    """The server's, while it is open."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """The operator's settings, as far as they are no defaults."""
    users_may_set: frozenset[str] | None = None
    """Settings that a run's context may have. None: all."""
    folders: Path | None = None
    """Where each agent of each user has a working folder of its own."""

    @property
    def served_store(self) -> BaseStore:
        """The server's store. Raises RuntimeError if none is open."""
        return present(self.store)


@lru_cache(maxsize=1)
def process_now() -> Process:
    """Process-wide resources, created at the first call, which blocks.

    A server uses them beside its runs. Raises as `open_installation`.
    """
    from memory.installation import open_installation
    from memory.models import choose_model

    found = configured()
    deployment = found.deployment
    home = open_installation(deployment)
    model = choose_model(deployment.model, offline=deployment.offline)
    return Process(
        home,
        Resources(
            model=lambda: model,
            semantic=home.semantic,
            breakers=breakers_of(deployment),
            served=True,
        ),
        given=found.given,
    )
