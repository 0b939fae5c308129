"""Tool calls as a tick or a night makes them: through `execute`, inside a running graph."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from langchain_core.messages import AnyMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from memory import runtime as resources
from memory.facts.semantic import SemanticMemory
from memory.operations import apply as sink
from memory.planning.goals import Goals, add
from memory.records.records import Event, Fact, FactDraft, Goal, JournalEntry, Priority, Scope
from memory.records.tick import Loop
from memory.runtime import Resources
from memory.settings import Settings
from memory.state.schema import State, fresh_state
from tests.support.night_memories import entry
from tests.support.scripted import ScriptedChatModel, scripted
from tools.execution.execute import Executed, execute
from tools.registry import BUILT_IN

NOW = datetime(2025, 12, 6, 14, 30, tzinfo=UTC)
THREAD = "thread"
SCOPE = Scope("local", THREAD)

EVENT: Event = {
    "id": "message-1",
    "at": "2025-12-06T14:29:00+00:00",
    "sender": "Alice",
    "text": "Can you help me build a tavern?",
    "channel": None,
    "addressed": True,
}


class Shelf:
    """Facts in a dict: what the sink needs of the semantic memory."""

    def __init__(self) -> None:
        self.facts: dict[str, Fact] = {}

    async def file_number(self) -> int:
        return 0

    async def add(self, scope: Scope, drafts: Sequence[FactDraft]) -> list[Fact]:
        assert scope == SCOPE
        for draft in drafts:
            fact = {**draft, "id": f"fact-{len(self.facts)}", "invalid_at": None}
            self.facts.setdefault(draft["op"], cast(Fact, {**fact, "superseded_by": None}))
        return [self.facts[draft["op"]] for draft in drafts]

    async def by_id(self, scope: Scope, ids: Sequence[str]) -> dict[str, Fact]:
        return {one["id"]: one for one in self.facts.values() if one["id"] in ids}

    async def by_op(self, scope: Scope, ops: Sequence[str]) -> dict[str, Fact]:
        assert scope == SCOPE
        return {op: self.facts[op] for op in ops if op in self.facts}

    async def keywords(
        self, scope: Scope, query: str, limit: int, *, include_superseded: bool = False
    ) -> list[tuple[Fact, float]]:
        """Every fact: few are kept here."""
        return [(one, 1.0) for one in self.facts.values()]

    async def run(self, work: Any, *args: Any) -> list[Any]:
        """No entry is indexed here: there is nothing to read."""
        return []

    async def embed(self, texts: Sequence[str]) -> dict[str, Any]:
        """No vectors: nothing is indexed here."""
        return {}

    async def put_episodes(self, scope: Scope, rows: Sequence[Any], vectors: Any) -> None:
        """Index nothing."""

    async def drop_episodes(self, scope: Scope, ids: Sequence[str]) -> None:
        """Nothing is indexed here."""

    async def embed_waiting(self, limit: int, scope: Scope) -> int:
        """Nothing waits."""
        return 0

    async def touch(self, scope: Scope, ids: Sequence[str], at: datetime) -> None:
        """Count nothing."""


@dataclass
class Called:
    message: ToolMessage
    update: dict[str, Any]

    @property
    def result(self) -> dict[str, Any]:
        assert isinstance(self.message.content, str)
        return cast(dict[str, Any], json.loads(self.message.content))


@dataclass
class Bench:
    """An agent's state, store and memory, on which tools are called one after the other."""

    state: State = field(default_factory=lambda: tick_state())
    store: BaseStore = field(default_factory=InMemoryStore)
    shelf: Shelf = field(default_factory=Shelf)
    model: ScriptedChatModel = field(default_factory=scripted)
    settings: Settings = field(default_factory=Settings)
    plan: sink.PlanCollector | None = None
    """The sink of a night's step."""

    async def call(self, name: str, /, **arguments: Any) -> Called:
        """Call a tool; the state then is as the tool left it, and the call counted."""
        done = await self.execute([wanted(name, **arguments)], [BUILT_IN[name][0]])
        self.state = cast(State, {**self.state, **done.update})
        if (loop := self.state["loop"]) is not None:
            self.state["loop"] = {**loop, "tools": [*loop["tools"], *done.outcomes]}
        return Called(done.messages[0], done.update)

    async def execute(
        self,
        calls: Sequence[ToolCall],
        tools: Sequence[BaseTool],
        *,
        seconds: float = 30.0,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> Executed:
        """What `calls` do; the state stays. Raises GraphInterrupt if a tool asks a person."""
        done: list[Executed] = []

        async def use(state: State, config: RunnableConfig) -> dict[str, Any]:
            done.append(
                await execute(calls, tools, self.state, config, seconds=seconds, clock=clock)
            )
            return {}

        builder = StateGraph(State, context_schema=Settings)
        builder.add_node("use", use)
        builder.add_edge(START, "use")
        graph = builder.compile(checkpointer=InMemorySaver(), store=self.store)
        out = await graph.ainvoke({"mode": "awake"}, self.config(), context=self.settings)
        if asked := out.get("__interrupt__"):
            raise GraphInterrupt(asked)
        return done[0]

    def config(self) -> RunnableConfig:
        memory = cast(SemanticMemory, self.shelf)
        given = Resources(model=lambda: self.model, semantic=memory, clock=lambda: NOW)
        configurable: dict[str, Any] = {"thread_id": THREAD, resources.KEY: given}
        if self.plan is not None:
            configurable[sink.KEY] = self.plan
        return {"configurable": configurable}


def wanted(name: str, /, **args: Any) -> ToolCall:
    return ToolCall(name=name, args=args, id=f"call-{name}", type="tool_call")


async def executed(
    calls: Sequence[ToolCall],
    tools: Sequence[BaseTool],
    state: State | None = None,
    **options: Any,
) -> Executed:
    """What `calls` do in the middle of tick 42; see `Bench.execute`."""
    return await Bench(state or tick_state()).execute(calls, tools, **options)


def tick_state(**changes: Any) -> State:
    """The state in the middle of tick 42, on Alice's event."""
    messages: list[AnyMessage] = []
    state: dict[str, Any] = {
        **fresh_state(),
        "messages": messages,
        "tick": 42,
        "event": EVENT,
        "context": {
            "context_type": "tick_event",
            "now": NOW.isoformat(),
            "system": "x" * 400,
            "tokens": {"system_prompt": 100},
        },
        "pattern": {
            "mode": "react_loop",
            "max_iterations": 5,
            "allowed_categories": None,
            "terminal_ends_loop": True,
            "dangerous_requires_confirm": False,
            "multi_tool_enabled": True,
            "sub_agents_enabled": False,
            "source_layers": {},
        },
        "loop": loop_of(iteration=1, llm_calls=1),
    }
    return cast(State, {**state, **changes})


def loop_of(**changes: Any) -> Loop:
    loop: Loop = {
        "iteration": 0,
        "tools": [],
        "written": [],
        "llm_calls": 0,
        "tokens": 0,
        "reply": None,
        "overflowed": False,
        "compaction": "none",
        "next": "act",
        "ended": False,
        "dangerous": None,
        "decision": None,
        "raised": 0,
        "sent": [],
        "delegating": [],
        "prompt": {},
    }
    return cast(Loop, {**loop, **changes})


def goals_of(*given: tuple[str, Priority, str | None]) -> Goals:
    """Goals of (description, priority, parent); their ids are goal_1_0, goal_1_1, ..."""
    goals: Goals = {}
    for index, (description, priority, parent_id) in enumerate(given):
        goals, _ = add(
            goals,
            description=description,
            priority=priority,
            parent_id=parent_id,
            tick=1,
            index=index,
            now=NOW,
        )
    return goals


def goal_of(goal_id: str = "goal_1_0", **changes: Any) -> Goal:
    goal: Goal = {
        "id": goal_id,
        "description": "Mend the fence",
        "priority": "high",
        "status": "active",
        "progress": 0,
        "created": "2026-05-02T08:00:00+00:00",
        "parent_id": None,
        "subtask_ids": [],
        "auto_generated": False,
    }
    return cast(Goal, {**goal, **changes})


def shown_entry(
    entry_id: str, *, sources: list[str], speaker: str | None = "Alice"
) -> JournalEntry:
    """An entry that a batch shows; a longer id is newer and more important."""
    return entry(
        entry_id,
        timestamp=f"2025-12-0{len(entry_id)}T10:00:00+00:00",
        content="text",
        source_entity=speaker,
        importance=5 + len(entry_id),
        scoring_method="llm",
        sources=sources,
    )


def night() -> Bench:
    """A night's consolidation of three entries: e and ee of Alice's, eee of Bob's."""
    shown = {
        "e": shown_entry("e", sources=["m1"]),
        "ee": shown_entry("ee", sources=["m2", "m1"]),
        "eee": shown_entry("eee", sources=["m3"], speaker="Bob"),
    }
    return Bench(state=tick_state(event=None, loop=None), plan=sink.PlanCollector(shown))
