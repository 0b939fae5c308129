"""The asynchronous agent: what a Python program calls, each method one use case."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot

from graph import corrections, decisions, everything, forgetting, nights, prompt, runs, transfer
from graph.context import AgentContext
from graph.forgetting import Forgotten
from graph.nights import NightLine
from graph.transfer import Imported
from memory.inbox import Posted
from memory.recall import recall
from memory.records import Fact, RecallHit
from memory.reports import NightReport
from memory.resources import Resources
from memory.scope import Scope
from memory.settings import Settings
from memory.state import AssistantPrompt


class AsyncAgent:
    """One agent of one data folder or database. Made by `open_agent` and `open_agents`."""

    def __init__(self, context: AgentContext) -> None:
        self.context = context
        """What the use cases take."""

    # What the agent is made of

    @property
    def graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """The compiled graph, with its checkpointer and store."""
        return self.context.graph

    @property
    def store(self) -> BaseStore:
        """Journal, profiles, links, inbox, nights and audit log."""
        return self.context.store

    @property
    def resources(self) -> Resources:
        """Models, semantic memory and clock."""
        return self.context.resources

    @property
    def settings(self) -> Settings:
        """How the agent behaves."""
        return self.context.settings

    @property
    def scope(self) -> Scope:
        """The agent's user and thread, with which every key begins."""
        return self.context.scope

    def config(self, config: RunnableConfig | None = None) -> RunnableConfig:
        """`config` with this agent's thread and resources.

        Raises:
            InputError: it names another thread, which is another agent.
        """
        return self.context.config(config)

    # Running

    async def ainvoke(
        self, /, input: runs.Input = None, config: RunnableConfig | None = None, **options: Any
    ) -> dict[str, Any]:
        """Run until nothing is pending; return `messages`, `mode` and `report`.

        New input is in the inbox before anything else happens. Work that an earlier run left
        unfinished is done first; the report covers it.

        Raises:
            InputError: the input is malformed; nothing was taken.
            BusyError: another process holds the agent; the input waits in the inbox.
        """
        return await runs.run(self.context, input, config, options)

    async def astream(
        self, input: runs.Input = None, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncGenerator[Any]:
        """As `ainvoke`, yielding LangGraph's stream. The next run resumes one left early."""
        async with aclosing(runs.stream(self.context, input, config, options)) as parts:
            async for part in parts:
                yield part

    async def post(self, events: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Posted:
        """Put events into the inbox; takes no lock, so it works while a run holds the agent.

        Each has `text`, and may have `id`, `at` (ISO 8601), `sender`, `channel`, `addressed`.

        Raises:
            InputError: an event is malformed; none was taken.
        """
        return await runs.post(self.context, events)

    async def approve(
        self,
        /,
        question: str,
        args: Mapping[str, Any] | None = None,
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Let the dangerous tool of a question run, with `args` in place of its own if given.

        The answer is stored first; then the tick goes on. Returns as `ainvoke`.

        Raises:
            InputError: no such question waits, or the arguments do not fit the tool.
        """
        decision = {"decision": "approve"} if args is None else {"decision": "edit", "args": args}
        await decisions.decide(self.context, question, decision)
        return await self.ainvoke(None, config, **options)

    async def refuse(
        self,
        /,
        question: str,
        reason: str | None = None,
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Answer a question with no; the model is told, and the tick goes on. See `approve`."""
        await decisions.decide(self.context, question, {"decision": "refuse", "reason": reason})
        return await self.ainvoke(None, config, **options)

    # State

    async def aget_state(
        self, config: RunnableConfig | None = None, *, subgraphs: bool = False
    ) -> StateSnapshot:
        """The thread's last checkpoint; takes no lock."""
        return await self.context.snapshot(config, subgraphs=subgraphs)

    async def aget_state_history(
        self, /, config: RunnableConfig | None = None, **options: Any
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
        """Edit the state by hand. A bad edit is one clear error at the next run.

        Raises:
            BusyError: another process holds the agent.
        """
        async with self.context.lock:
            bound = self.config(config)
            if as_node is None and not (await self.graph.aget_state(bound)).values:
                as_node = "intake"
            return await self.graph.aupdate_state(bound, dict(values), as_node=as_node)

    async def rollback_prompt(self, version: int) -> AssistantPrompt:
        """Put an earlier version of the assistant's own prompt in force again.

        Raises:
            InputError: no such version is kept.
            BusyError: another process holds the agent.
        """
        return await prompt.rollback(self.context, version)

    # Memory

    async def recall(
        self, query: str, limit: int = 10, *, include_superseded: bool = False
    ) -> list[RecallHit]:
        """What long-term memory holds about `query`, best first, each hit with its score parts."""
        return await recall(
            query,
            scope=self.scope,
            now=self.context.now(),
            semantic=self.context.semantic,
            store=self.store,
            settings=self.settings,
            limit=limit,
            include_superseded=include_superseded,
            used_by_agent=False,
        )

    async def everything(self, query: str | None = None) -> list[dict[str, Any]]:
        """All that long-term memory holds, newest first, or what has all words of `query`."""
        return await everything.everything(self.context, query)

    async def correct(self, fact_id: str, text: str, by: str | None = None) -> Fact:
        """Put `text` in a fact's place, as said by `by` (default the owner); returns the new fact.

        Raises:
            InputError: no such fact, one that is superseded, or a text that is no fact.
            BusyError: another process holds the agent.
        """
        return await corrections.correct(self.context, fact_id, text, by)

    async def forget(self, entity: str, *, dry_run: bool = False) -> Forgotten:
        """Erase a person and everything derived from them; `dry_run` only counts it.

        Raises:
            InputError: memory knows nobody of that name.
            BusyError: another process holds the agent.
        """
        return await forgetting.forget(self.context, entity, dry_run=dry_run)

    async def forget_fact(self, fact_id: str) -> Forgotten:
        """Erase one fact and what was built on it; raises as `forget`."""
        return await forgetting.forget_fact(self.context, fact_id)

    def export_memory(self) -> AsyncIterator[dict[str, Any]]:
        """The whole memory, one record at a time; `memory.transfer.line_of` makes a line of it."""
        return transfer.export_memory(self.context)

    async def import_memory(self, lines: Iterable[str]) -> Imported:
        """Take in an exported memory; the agent must be empty.

        Raises:
            InputError: a line is wrong (the error names it), or the agent is not empty.
            BusyError: another process holds the agent.
        """
        return await transfer.import_memory(self.context, lines)

    # Nights. No method below calls a model, except those that go through a night.

    async def nights(self) -> list[NightLine]:
        """Every night, oldest first."""
        return await nights.nights(self.context)

    async def night(self, night_id: str) -> NightReport:
        """A night with its operations; the id may be shortened, `last` names the newest.

        Raises:
            InputError: there is no such night, or several ids begin so.
        """
        return await nights.night_report(self.context, night_id)

    async def sleep(self, *, dry_run: bool = False) -> NightReport:
        """Go through a night; with `dry_run` apply nothing, so that memory stays as it is.

        Without it this is a run with `request: sleep`, whose own report says more.

        Raises:
            InputError: `dry_run`, and a night is open.
            BusyError: another process holds the agent.
            CircadianError: the emergency stop stands, or a step failed; what was done is kept.
        """
        if dry_run:
            return await nights.preview(self.context)
        return nights.of_run(await self.ainvoke({"request": "sleep"}))

    @asynccontextmanager
    async def previewing(self) -> AsyncIterator[AsyncAgent]:
        """Hold the agent for a preview; yields an agent whose next run makes it.

        For callers that follow the run; `sleep(dry_run=True)` is the same in one call.
        """
        async with nights.previewing(self.context) as context:
            yield AsyncAgent(context)

    async def apply_night(self, night_id: str) -> NightReport:
        """Apply a preview, or a night that was held back; no model is called.

        Raises:
            InputError: there is no such night, it is neither, or another night is open.
            ConflictError: memory has changed since, so that it cannot be applied.
            BusyError: another process holds the agent.
        """
        return await nights.apply_night(self.context, night_id)

    @asynccontextmanager
    async def applying(self, night_id: str) -> AsyncIterator[AsyncAgent]:
        """Hold the agent to apply a night; yields an agent whose next run does it.

        For callers that follow the run; `apply_night` is the same in one call, and raises the same.
        """
        async with nights.applying(self.context, night_id) as context:
            yield AsyncAgent(context)

    async def discard_night(self, night_id: str) -> NightReport:
        """Discard a preview, or a night that was held back.

        Raises:
            InputError: there is no such night, or it is neither.
            BusyError: another process holds the agent.
        """
        return await nights.discard_night(self.context, night_id)

    async def undo_night(self, night_id: str) -> NightReport:
        """Restore memory as it was before a night.

        Raises:
            InputError: there is no such night, or nothing of it was applied.
            ConflictError: memory has changed since, so that it cannot be restored.
            BusyError: another process holds the agent.
        """
        return await nights.undo_night(self.context, night_id)
