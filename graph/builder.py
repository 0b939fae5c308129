"""The agent's graph: intake, then a tick or a night, then intake again while something is pending.

The loop over events is in the parent graph, one event per tick, so that a crash costs one tick at
most. A tick, a night and a sub-agent are subgraphs.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph._branch import BranchSpec

from graph.blocking import shared_loop
from memory.models import costing
from memory.settings import Settings
from memory.state import AgentInput, AgentOutput, State, lent, returned
from nodes.compaction import after_extraction, compact, extract_facts
from nodes.delegate import (
    DelegateOutput,
    DelegateState,
    after_answer,
    ask_delegate,
    brief_delegate,
    report_result,
    use_delegate_tools,
)
from nodes.intake import intake, next_turn, refuse
from nodes.night import (
    apply_operations,
    begin_night,
    consolidate,
    consolidate_entities,
    dream,
    next_in_night,
    night_failed,
    prune,
    prune_links,
    record_night,
    reflect,
    score_importance,
    weigh_night,
    write_pages,
)
from nodes.tick import (
    act,
    after_assessment,
    after_begin,
    assemble_context,
    assess_task,
    begin_tick,
    confirm,
    draft_plan,
    hand_back,
    onward,
    park,
    record,
    return_event,
    use_tools,
)

P = ParamSpec("P")
T = TypeVar("T")


def run_both_ways(builder: StateGraph[Any, Any, Any, Any], **blocking: Callable[..., Any]) -> None:
    """Let the nodes and routers of `builder` run in blocking calls, too.

    They are asynchronous: a blocking call runs each in the shared loop. `blocking` names nodes that
    have a blocking function of their own, such as one that calls another graph.
    """
    for name, spec in builder.nodes.items():
        # A compiled graph runs both ways by itself.
        if getattr(runnable := cast(Any, spec.runnable), "afunc", None) is not None:
            runnable.func = blocking.get(name) or _in_shared_loop(runnable.afunc)
    for branches in builder.branches.values():
        for name, branch in branches.items():
            branches[name] = _Branch(*branch)
            path = cast(Any, branch.path)
            path.func = _in_shared_loop(path.afunc)
            # Tracing adds a task and three callbacks, which cost more than the routing itself.
            path.trace = False


class _Written(Mapping[str, Any]):
    """The state after a node, read key by key, because most routers look at a single key.

    LangGraph's own reader copies all channels, and merges all that the node wrote once more.
    """

    def __init__(self, read: Any, keys: Sequence[str]) -> None:
        self._read, self._keys = read, keys

    def __getitem__(self, key: str) -> Any:
        scratchpad, channels, managed, task = self._read.args
        channel = {key: channels[key]}
        return self._read.func(scratchpad, channel, managed, task, [key], True)[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read(list(self._keys), True))

    def __len__(self) -> int:
        return len([*self])


class _Branch(BranchSpec):
    """A branch that calls its router directly, and not as a runnable with callbacks of its own."""

    async def _aroute(self, input: Any, config: RunnableConfig, *, reader: Any, writer: Any) -> Any:
        read = config["configurable"]["__pregel_read"]
        # Another version of LangGraph may read in another way: then its own reader is used.
        known = len(getattr(read, "args", ())) == 4 and "select" in reader.keywords
        state = _Written(read, reader.keywords["select"]) if known else reader(config)
        return self._finish(writer, input, await cast(Any, self.path).afunc(state), config)


def _in_shared_loop(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return shared_loop().call(function(*args, **kwargs))

    return call


# A sub-agent works on one task, with messages of its own.
delegating = StateGraph(DelegateState, context_schema=Settings, output_schema=DelegateOutput)

for node in (brief_delegate, ask_delegate, use_delegate_tools, report_result):
    delegating.add_node(node)
delegating.add_edge(START, "brief_delegate")
delegating.add_edge("brief_delegate", "ask_delegate")
delegating.add_conditional_edges("ask_delegate", after_answer)
delegating.add_edge("use_delegate_tools", "ask_delegate")
delegating.add_edge("report_result", END)

run_both_ways(delegating)
delegate = delegating.compile(name="delegate")

# Each pass is one tick, on one event or on the goals.
ticking = StateGraph(State, context_schema=Settings)

for node in (
    begin_tick,
    extract_facts,
    compact,
    assemble_context,
    assess_task,
    draft_plan,
    act,
    use_tools,
    park,
    confirm,
    record,
    hand_back,
):
    ticking.add_node(node)
ticking.add_node("delegate", delegate)
ticking.add_edge(START, "begin_tick")
ticking.add_conditional_edges("begin_tick", after_begin)
ticking.add_conditional_edges("extract_facts", after_extraction)
ticking.add_edge("compact", "assemble_context")
ticking.add_conditional_edges("assemble_context", after_assessment)
ticking.add_conditional_edges("assess_task", after_assessment, ["draft_plan", "act"])
ticking.add_edge("draft_plan", "use_tools")
ticking.add_conditional_edges(
    "act", onward, ["use_tools", "delegate", "park", "extract_facts", "record"]
)
ticking.add_conditional_edges("use_tools", onward, ["act", "delegate", "park", "record"])
ticking.add_conditional_edges("confirm", onward, ["act", "use_tools", "delegate", "record"])
ticking.add_edge("delegate", "use_tools")
ticking.add_edge("park", "hand_back")
ticking.add_edge("record", END)
ticking.add_edge("hand_back", END)

run_both_ways(ticking)
awake = ticking.compile(name="awake")


async def tick(state: State, config: RunnableConfig) -> dict[str, Any]:
    """One tick. Its steps are stored only if it asks a person, fails or is stopped.

    The parent stores a tick that ends, once. A tick that a crash interrupts begins anew: its event
    is still in the inbox, and what it wrote has ids that come from the event.
    """
    # Version 2 streams the values alone: nobody reads the updates.
    with costing():
        ended = await awake.ainvoke(lent(state), config, durability="exit", version="v2")
    return returned(state, ended.value)


def tick_blocking(state: State, config: RunnableConfig) -> dict[str, Any]:
    """`tick`, in a blocking call."""
    with costing():
        ended = awake.invoke(lent(state), config, durability="exit", version="v2")
    return returned(state, ended.value)


# A night compacts batch by batch, then dreams.
COMPACTING = ["score_importance", "consolidate"]
DREAMING = [
    *("dream", "prune_links", "consolidate_entities", "write_pages", "reflect", "prune"),
    "extract_facts",
]
ENDING = ["weigh_night", "apply_operations", "record_night"]

sleeping = StateGraph(State, context_schema=Settings)

for node in (
    begin_night,
    score_importance,
    consolidate,
    apply_operations,
    dream,
    prune_links,
    consolidate_entities,
    write_pages,
    reflect,
    prune,
    extract_facts,
    compact,
    weigh_night,
    record_night,
    hand_back,
):
    sleeping.add_node(node)
sleeping.add_edge(START, "begin_night")
sleeping.add_conditional_edges(
    "begin_night", next_in_night, [*COMPACTING, *DREAMING, *ENDING, "hand_back"]
)
sleeping.add_conditional_edges("score_importance", next_in_night, [*COMPACTING, "apply_operations"])
sleeping.add_conditional_edges("consolidate", next_in_night, ["consolidate", "apply_operations"])
sleeping.add_conditional_edges("apply_operations", next_in_night, [*DREAMING, *ENDING])

for place, step in enumerate(DREAMING[:-1]):
    # A step may be repeated; the night never goes back to an earlier one.
    sleeping.add_conditional_edges(step, next_in_night, [*DREAMING[place:], *ENDING[:2]])

sleeping.add_conditional_edges("extract_facts", after_extraction)
sleeping.add_conditional_edges("compact", next_in_night, ENDING[:2])
sleeping.add_conditional_edges("weigh_night", next_in_night, ENDING[1:])
sleeping.add_edge("record_night", "hand_back")
sleeping.add_edge("hand_back", END)

run_both_ways(sleeping)
sleep = sleeping.compile(name="sleep")


async def night(state: State, config: RunnableConfig) -> dict[str, Any]:
    """One night, or one phase of it. Every step is stored."""
    return returned(state, await sleep.ainvoke(lent(state), config))


def night_blocking(state: State, config: RunnableConfig) -> dict[str, Any]:
    """`night`, in a blocking call."""
    return returned(state, sleep.invoke(lent(state), config))


builder = StateGraph(
    State, context_schema=Settings, input_schema=AgentInput, output_schema=AgentOutput
)

builder.add_node(intake)
builder.add_node("awake", tick, error_handler=return_event)
builder.add_node("sleep", night, error_handler=night_failed)
builder.add_node(refuse)
builder.add_edge(START, "intake")
builder.add_conditional_edges("intake", next_turn)
builder.add_edge("awake", "intake")
builder.add_edge("sleep", "intake")
builder.add_edge("refuse", END)

run_both_ways(builder, awake=tick_blocking, sleep=night_blocking)
