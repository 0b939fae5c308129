"""An open agent: the compiled graph with its persistence, its inbox and its memory."""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphRecursionError
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Command, StateSnapshot

from graph.decisions import decide
from graph.input import an_event, checked_input, for_what_stands, human_messages, named
from graph.memories import Memories
from graph.prompt import rollback
from memory import inbox, journal, night_undo, tracing
from memory.chat import event_of, with_kind
from memory.consequences import accepting
from memory.emergency import ask_for_stop
from memory.errors import CircadianError, InputError, StateError
from memory.home import WriterLock
from memory.inbox import Posted, completed, valid_event
from memory.owners import owner_of
from memory.recall import recall
from memory.records import Event, RecallHit
from memory.resources import KEY, RESUMED, UNDONE, Resources
from memory.scope import Scope
from memory.settings import Settings
from memory.state import AssistantPrompt
from memory.store_access import count_items

log = logging.getLogger("circadian")
STEPS = 10_000
"""Super-steps of a run beside those for the work at hand."""


class AsyncAgent(Memories):
    """One agent of one data folder, for asynchronous use. Made by `open_agent`."""

    def __init__(
        self,
        graph: CompiledStateGraph[Any, Any, Any, Any],
        store: BaseStore,
        resources: Resources,
        settings: Settings,
        scope: Scope,
        lock: WriterLock,
    ) -> None:
        self.graph = graph
        self.store = store
        self.resources = resources
        self.settings = settings
        self.scope = scope
        self._lock = lock

    async def ainvoke(
        self,
        input: Mapping[str, Any] | Command[Any] | None = None,
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Run until nothing is pending; return `messages`, `mode` and `report`.

        New input is in the inbox before anything else happens, and work that an earlier run left
        unfinished is done first: the report covers it.

        Raises:
            InputError: the input is malformed; nothing was taken.
            BusyError: another process holds the agent; the input waits in the inbox.
        """
        with accepting():
            prepared = await self._accept(input)
        options = self._options(options)
        async with self._run(config, options) as bound:
            async with aclosing(self._resume(bound, options)) as earlier:
                async for _ in earlier:
                    pass
            with tracing.invoke_agent(self.scope.thread):
                output = await self.graph.ainvoke(prepared, bound, **options)
        return cast(dict[str, Any], output)

    async def astream(
        self,
        input: Mapping[str, Any] | Command[Any] | None = None,
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> AsyncGenerator[Any]:
        """As `ainvoke`, yielding what LangGraph yields. Left early, the next run goes on."""
        with accepting():
            prepared = await self._accept(input)
        options = self._options(options)
        # Closed here and not by the garbage collector: no step may outlive the lock.
        async with self._run(config, options) as bound:
            async with aclosing(self._resume(bound, options)) as earlier:
                async for part in earlier:
                    yield part
            async with aclosing(_stream(self.graph, prepared, bound, options)) as parts:
                async for part in parts:
                    yield part

    async def aget_state(
        self, config: RunnableConfig | None = None, *, subgraphs: bool = False
    ) -> StateSnapshot:
        """The thread's state; waits for nobody."""
        return await self.graph.aget_state(self.config(config), subgraphs=subgraphs)

    async def aget_state_history(
        self, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[StateSnapshot]:
        """The checkpoints that are kept, newest first."""
        async for snapshot in self.graph.aget_state_history(self.config(config), **options):
            yield snapshot

    async def aupdate_state(
        self,
        values: Mapping[str, Any],
        as_node: str | None = None,
        config: RunnableConfig | None = None,
    ) -> RunnableConfig:
        """Edit the state by hand. A bad edit is one clear error at the next run."""
        async with self._lock:
            bound = self.config(config)
            if as_node is None and not (await self.graph.aget_state(bound)).values:
                as_node = "intake"
            return await self.graph.aupdate_state(bound, dict(values), as_node=as_node)

    async def post(self, events: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Posted:
        """Put events into the inbox; takes no lock, so it works while a run holds the agent.

        Each has `text`, and may have `id`, `at` (ISO 8601), `sender`, `channel`, `addressed`.
        """
        given = [events] if isinstance(events, Mapping) else list(events)
        return await self._post([self._event(one) for one in given])

    async def approve(
        self,
        question: str,
        args: Mapping[str, Any] | None = None,
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Let the dangerous tool of a question run, with other arguments where `args` are given.

        The answer is written down first; then the tick goes on. Returns as `ainvoke`.

        Raises:
            InputError: no such question waits, or the arguments do not fit the tool.
        """
        decision = {"decision": "approve"} if args is None else {"decision": "edit", "args": args}
        await decide(self, question, decision)
        return await self.ainvoke(None, config, **options)

    async def refuse(
        self,
        question: str,
        reason: str | None = None,
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Answer a question with no; the model is told, and the tick goes on. See `approve`."""
        await decide(self, question, {"decision": "refuse", "reason": reason})
        return await self.ainvoke(None, config, **options)

    async def rollback_prompt(self, version: int) -> AssistantPrompt:
        """Put an earlier version of the assistant's own prompt in force; see `graph.prompt`."""
        return await rollback(self, version)

    async def recall(
        self, query: str, limit: int = 10, *, include_superseded: bool = False
    ) -> list[RecallHit]:
        """What long-term memory holds about `query`, best first, each hit with its score parts."""
        return await recall(
            query,
            scope=self.scope,
            now=self.resources.clock(),
            semantic=self.resources.semantic,
            store=self.store,
            settings=self.settings,
            limit=limit,
            include_superseded=include_superseded,
        )

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
        return cast(RunnableConfig, {**given, "configurable": configurable})

    async def _accept(self, input: Mapping[str, Any] | Command[Any] | None) -> Any:
        """Check the input and put it into the inbox, before any lock is taken."""
        if isinstance(input, Command):
            return for_what_stands(input, await self.aget_state())
        given = checked_input(input)
        messages = await self._human(given.get("messages") or [])
        now, owner = self.resources.clock(), self._owner()
        spoken = [event_of(message, owner=owner, now=now) for message in messages]
        said = [
            with_kind(valid_event(event), message)
            for event, message in zip(spoken, messages, strict=True)
            if event["text"].strip()
        ]
        events = [self._event(one) for one in given.get("events") or []]
        await self._post([*said, *events])
        if given.get("request") == "stop":
            await ask_for_stop(self.store, self.scope, at=now, by=self.scope.user)
        return {"messages": messages, "events": events, "request": given.get("request")}

    async def _human(self, given: Any) -> list[HumanMessage]:
        """The messages of an input. Raises InputError where one has the id of an answer."""
        messages = human_messages(given)
        if not any(message.id for message in messages):
            return [named(message) for message in messages]
        known = (await self.aget_state()).values.get("messages", [])
        answers = {one.id for one in known if not isinstance(one, HumanMessage)}
        for message in messages:
            if message.id in answers:
                raise InputError(
                    f"messages: the id {message.id!r:.80} is that of an answer; leave the id out"
                )
        return [named(message) for message in messages]

    def _owner(self) -> str:
        """Whom a message without a name is from."""
        resources = self.resources
        return owner_of(self.settings, user=resources.user, served=resources.served)

    async def _post(self, events: Sequence[Event]) -> Posted:
        return await inbox.post(self.store, self.scope, events, now=self.resources.clock())

    def _event(self, raw: Mapping[str, Any]) -> Event:
        """An event with what its sender may leave out filled in."""
        now, owner = self.resources.clock(), self._owner()
        return valid_event(completed(an_event(raw), id_=str(uuid.uuid4()), owner=owner, now=now))

    @asynccontextmanager
    async def _run(
        self, config: RunnableConfig | None, options: Mapping[str, Any]
    ) -> AsyncIterator[RunnableConfig]:
        """Hold the agent for one run. An undo that was broken off is finished before all else."""
        async with self._lock:
            bound = self.config(config)
            undone = await night_undo.finish(self.store, self.resources.semantic, self.scope)
            bound["configurable"][UNDONE] = undone
            bound.setdefault("recursion_limit", await self._steps())
            if options["durability"] != "sync":
                bound["configurable"][KEY] = replace(self.resources, synced=False)
            try:
                yield bound
            except GraphRecursionError as error:
                raise CircadianError(
                    f"the run ended at its limit of {bound['recursion_limit']} steps; nothing is "
                    "lost: run again, and it goes on"
                ) from error

    async def _resume(
        self, bound: RunnableConfig, options: Mapping[str, Any]
    ) -> AsyncGenerator[Any]:
        """Finish an unfinished run, told by its tasks: `next` can be empty while work waits.

        Its report is put into `bound`, for the run that follows to go on with.
        """
        tasks = (await self.graph.aget_state(bound)).tasks
        if not tasks or any(task.interrupts for task in tasks):
            return
        log.info("going on with the unfinished run at %s", ", ".join(t.name for t in tasks))
        try:
            async with aclosing(_stream(self.graph, None, bound, options)) as parts:
                async for part in parts:
                    yield part
        except StateError:
            raise
        except InputError as error:
            log.warning("an earlier input was malformed and is dropped: %s", error)
        else:
            done = await self.graph.aget_state(bound)
            bound["configurable"][RESUMED] = done.values.get("report")

    def _options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {"context": self.settings, "durability": "sync", **given}

    async def _steps(self) -> int:
        """The recursion limit: a guard against loops only, as events may come while a run goes on.

        It counts super-steps per graph level; an event takes two.
        """
        events = await count_items(self.store, self.scope.namespace(inbox.INBOX))
        entries = await count_items(self.store, self.scope.namespace(journal.PENDING)) + events
        settings = self.settings
        batches = math.ceil(entries / settings.score_batch_size)
        batches += math.ceil(entries / settings.consolidate_batch_size) * (
            settings.max_iterations_sleep + 1
        )
        return STEPS + 2 * events + batches


def _stream(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    input: Any,
    config: RunnableConfig,
    options: Mapping[str, Any],
) -> AsyncGenerator[Any]:
    """LangGraph's stream, typed as what it is: a generator, which can be closed."""
    parts = cast(AsyncGenerator[Any], graph.astream(input, config, **options))
    return tracing.invoke_agent_stream(str(config["configurable"]["thread_id"]), parts)
