"""The awake subgraph: each pass is one tick, on one event or on the goals.

Its node `delegate` is a subgraph too: a sub-agent works on one task, with messages of its own.
"""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

from graph.blocking import run_both_ways
from memory.settings import Settings
from memory.state import State
from nodes.compaction import after_extraction, compact, extract_facts
from nodes.delegate import (
    after_answer,
    after_briefing,
    ask_delegate,
    brief_delegate,
    report_result,
    use_delegate_tools,
)
from nodes.hand_back import hand_back, lent, returned
from nodes.tick import (
    act,
    after_assessment,
    after_begin,
    assemble_context,
    assess_task,
    begin_tick,
    confirm,
    draft_plan,
    onward,
    park,
    record,
    use_tools,
)
from tools.delegation import DelegateOutput, DelegateState

delegating = StateGraph(DelegateState, context_schema=Settings, output_schema=DelegateOutput)

delegating.add_node(brief_delegate)
delegating.add_node(ask_delegate)
delegating.add_node(use_delegate_tools)
delegating.add_node(report_result)
delegating.add_edge(START, "brief_delegate")
delegating.add_conditional_edges("brief_delegate", after_briefing)
delegating.add_conditional_edges("ask_delegate", after_answer)
delegating.add_edge("use_delegate_tools", "ask_delegate")
delegating.add_edge("report_result", END)

run_both_ways(delegating)
delegate = delegating.compile(name="delegate")

builder = StateGraph(State, context_schema=Settings)

builder.add_node(begin_tick)
builder.add_node(extract_facts)
builder.add_node(compact)
builder.add_node(assemble_context)
builder.add_node(assess_task)
builder.add_node(draft_plan)
builder.add_node(act)
builder.add_node(use_tools)
builder.add_node("delegate", delegate)
builder.add_node(park)
builder.add_node(confirm)
builder.add_node(record)
builder.add_node(hand_back)
builder.add_edge(START, "begin_tick")
builder.add_conditional_edges("begin_tick", after_begin)
builder.add_conditional_edges("extract_facts", after_extraction)
builder.add_edge("compact", "assemble_context")
builder.add_conditional_edges("assemble_context", after_assessment)
builder.add_conditional_edges("assess_task", after_assessment, ["draft_plan", "act"])
builder.add_edge("draft_plan", "use_tools")
builder.add_conditional_edges(
    "act", onward, ["use_tools", "delegate", "park", "extract_facts", "record"]
)
builder.add_conditional_edges("use_tools", onward, ["act", "delegate", "park", "record"])
builder.add_conditional_edges("confirm", onward, ["act", "use_tools", "delegate", "record"])
builder.add_edge("delegate", "use_tools")
builder.add_edge("park", "hand_back")
builder.add_edge("record", END)
builder.add_edge("hand_back", END)

run_both_ways(builder)
awake = builder.compile(name="awake")


async def tick(state: State, config: RunnableConfig) -> dict[str, Any]:
    """One tick. Its steps are stored only where it does not end: it asks, fails or is stopped.

    A tick that ends is stored by the parent, once. One that a crash interrupts begins anew: its
    event is still in the inbox, and what it wrote has ids that come from the event.
    """
    # Of this version's stream a run reads the values alone; it would make the updates in vain.
    ended = await awake.ainvoke(lent(state), config, durability="exit", version="v2")
    return returned(state, ended.value)


def tick_blocking(state: State, config: RunnableConfig) -> dict[str, Any]:
    """`tick`, in a blocking call."""
    ended = awake.invoke(lent(state), config, durability="exit", version="v2")
    return returned(state, ended.value)
