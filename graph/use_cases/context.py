"""What a use case works with: one agent's graph, store, memory, settings and lock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from langgraph.store.base import BaseStore, PutOp

from memory import night, transfer
from memory.errors import InputError, StateError
from memory.events import owners_of
from memory.facts import SemanticMemory
from memory.operations import CORRECTING, BegunCorrection, begun_corrections, carry_out
from memory.planning import session_memory
from memory.records import Fact, Scope, is_reflection
from memory.runtime import KEY, Resources
from memory.settings import Settings
from memory.state import REDUCED_KEYS, State, fresh_state, kept_problem
from memory.storage import list_items, read_ahead

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import PregelTask, StateSnapshot

AGENT, NAME = "agent", "name"
"""Namespace and key of the agent's name in the store: {name}."""

SHOWN = 3
"""Most things that an error names."""

LEAST_PREFIX = 4
"""Characters of an id's beginning that mean the id; as shown, ids are cut to eight."""

_ENOUGH = f"give the whole id, or at least {LEAST_PREFIX} characters of its beginning"


class Standing(NamedTuple):
    """Where a thread stands."""

    values: Mapping[str, Any]
    tasks: Sequence[PregelTask] = ()
    """What is under way; empty at rest."""


@dataclass(frozen=True)
class AgentContext:
    """One agent of one installation."""

    compiled: Callable[[], CompiledStateGraph[Any, Any, Any, Any]] = field(repr=False)
    """The graph with the installation's checkpointer and store. Whoever only reads needs none."""
    saver: BaseCheckpointSaver[str]
    store: BaseStore
    resources: Resources
    settings: Settings
    scope: Scope
    lock: Callable[[], AbstractAsyncContextManager[Any]]
    """Held by whoever changes the agent: one writer at a time, over all processes."""
    name: str | None = None
    """The agent's name, where it is known."""

    @property
    def graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """The graph, compiled when it is first needed."""
        return self.compiled()

    @property
    def semantic(self) -> SemanticMemory:
        """The facts."""
        return self.resources.semantic

    @property
    def owners(self) -> tuple[str, ...]:
        """The ids of the owners, at least one."""
        resources = self.resources
        return owners_of(self.settings, user=resources.user, served=resources.served)

    @property
    def owner(self) -> str:
        """The sender of messages that name none."""
        return self.owners[0]

    def now(self) -> datetime:
        """The time, UTC."""
        return self.resources.clock()

    def config(self, config: RunnableConfig | None = None) -> RunnableConfig:
        """`config` with this agent's thread and resources.

        Raises:
            InputError: it names another thread, which is another agent.
        """
        given = dict(config or {})
        named = cast(dict[str, Any], given.get("configurable", {}))
        if named.get("thread_id", self.scope.thread) != self.scope.thread:
            raise InputError(
                f"thread {named['thread_id']!r} is not this agent's, which is {self.scope.thread}: "
                "leave thread_id out, and open another agent with open_agent(agent=NAME)"
            )
        configurable = {**named, "thread_id": self.scope.thread, KEY: self.resources}
        return cast("RunnableConfig", {**given, "configurable": configurable})

    async def values(self) -> Mapping[str, Any]:
        """The state in the thread's last checkpoint, empty before the first; takes no lock."""
        thread: RunnableConfig = {"configurable": {"thread_id": self.scope.thread}}
        return _kept(await self.saver.aget_tuple(thread))

    async def snapshot(
        self, config: RunnableConfig | None = None, *, subgraphs: bool = False
    ) -> StateSnapshot:
        """The thread's last checkpoint, with what is under way in it; takes no lock."""
        return await self.graph.aget_state(self.config(config), subgraphs=subgraphs)

    async def standing(self, config: RunnableConfig) -> Standing:
        """The state in the thread's last checkpoint, and what is under way in it.

        Nearly all threads are at rest. Only for others LangGraph has to work out the tasks.
        """
        found = await self.saver.aget_tuple(config)
        channels = found.checkpoint["channel_values"] if found is not None else ()
        if any(channel.startswith(("branch:", "__")) for channel in channels):
            now = await self.graph.aget_state(config)
            return Standing(now.values, now.tasks)
        return Standing(_kept(found))

    async def replace_state(self, values: Mapping[str, Any]) -> None:
        """Put `values` in place of the thread's; a reducer would merge them."""
        from langgraph.types import Overwrite

        whole = {
            key: Overwrite(value) if key in REDUCED_KEYS else value for key, value in values.items()
        }
        await self.graph.aupdate_state(self.config(), whole, as_node="intake")

    async def carry_out(self, begun: BegunCorrection) -> Fact:
        """Do what a correction says, in session memory as well; returns the new fact."""
        before = (await self.values()).get("session_memory")
        if before is not None:
            after = session_memory.corrected(before, begun, self.owners)
            if after != before:
                await self.replace_state({"session_memory": after})
        return await carry_out(begun, store=self.store, semantic=self.semantic, scope=self.scope)

    @asynccontextmanager
    async def held(self) -> AsyncIterator[str | None]:
        """Hold the agent, and finish an interrupted correction and an interrupted undo.

        Yields the night that it undid, if any.

        Raises:
            InputError: an import into the agent was interrupted.
        """
        async with self.lock():
            scope, marks = self.scope, (transfer.IMPORTING, CORRECTING, night.OPEN_UNDO)
            names = [scope.namespace(mark) for mark in marks]
            store = await read_ahead(self.store, names)
            undone = None
            if any([await list_items(store, name) for name in names]):
                await transfer.check_whole(store, scope)
                for begun in await begun_corrections(store, scope):
                    await self.carry_out(begun)
                undone = await night.finish(store, self.semantic, scope)
            yield undone

    def for_a_night(self) -> Self:
        """The same agent for runs that go through a night and leave all other work alone.

        The caller holds the lock: these runs take none.
        """
        resources = replace(self.resources, night_only=True)
        return replace(self, resources=resources, lock=nullcontext)


def naming(scope: Scope, name: str | None) -> list[PutOp]:
    """The store writes that keep the agent's name."""
    return [PutOp(scope.namespace(AGENT), NAME, {"name": name})] if name else []


def _kept(found: CheckpointTuple | None) -> dict[str, Any]:
    kept = found.checkpoint["channel_values"] if found is not None else {}
    return {key: value for key, value in kept.items() if key in State.__annotations__}


def is_needless(values: Mapping[str, Any]) -> bool:
    """Whether a checkpoint need not be stored, because the inbox has what its run goes on with.

    A run's first checkpoints are needless, unless the run has a request, which only they hold. The
    checkpoint at a tick's end is needless, because `intake` decides at once what follows, and the
    next checkpoint holds both. The beginning of a tick without a person's event, or beside parked
    ticks, is stored: after a crash, another tick could come first and take its number.
    """
    given = values.get("__start__", values)
    if not isinstance(given, Mapping) or given.get("request") is not None:
        return False
    if values.get("turn") in ("night", "refuse"):
        return False
    if "branch:to:awake" not in values:
        return "__start__" in values or "branch:to:intake" in values
    report, event = values["report"], values["event"]
    done = report["ticks"] or report["failures"] or report["night"]
    return not (done or values["parked"] or event is None or is_reflection(event))


def match_id(given: str, ids: Iterable[str], kind: str) -> str | None:
    """The id that `given` means, None if there is none. Several are an InputError; see `meant`."""
    fits = meant(given, ids, kind)
    if len(fits) > 1:
        raise InputError(f"{len(fits)} {kind} have ids that begin with {given}: {first_few(fits)}")
    return fits[0] if fits else None


def meant(given: str, ids: Iterable[str], kind: str) -> list[str]:
    """The ids that are `given` or begin with it; an entry's kind and day may be left out.

    A beginning of less than LEAST_PREFIX characters is an InputError, which calls the ids `kind`
    (plural): a slip of the finger would erase or approve whatever begins so.
    """
    wanted, ids = given.strip().rstrip("…"), list(ids)
    rests = {id_: {id_, id_.split("_", 1)[-1], id_.split("_", 2)[-1]} for id_ in ids}
    if whole := [id_ for id_ in ids if wanted == id_] or [i for i in ids if wanted in rests[i]]:
        return whole
    fits = [id_ for id_ in ids if any(rest.startswith(wanted) for rest in rests[id_])]
    first = f"{fits[0].partition('_')[0]}_" if fits else ""
    if wanted and fits and len(wanted.removeprefix(first)) < LEAST_PREFIX:
        behind = f", {first} not counted" if wanted.startswith(first) else ""
        raise InputError(f"{wanted!r} is too short for one of the {kind}: {_ENOUGH}{behind}")
    return fits if wanted else []


def first_few(things: Sequence[str]) -> str:
    """The first few, and how many more, for an error."""
    more = f" and {len(things) - SHOWN} more" if len(things) > SHOWN else ""
    return ", ".join(things[:SHOWN]) + more


def complete_state(values: Mapping[str, Any]) -> State:
    """A thread's values as a state, with the defaults of an agent that has never run."""
    if problem := kept_problem(values):
        raise StateError(problem)
    # A key with a reducer is empty, not absent, before the first run.
    known = {key: value for key, value in values.items() if value or key != "projects"}
    return cast(State, {**fresh_state(), "messages": [], **known})
