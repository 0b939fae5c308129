"""The awake subgraph: one visit is one tick, on one event or on the goals."""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph

from memory.settings import Settings
from memory.state import State
from nodes.act import act, after_act
from nodes.assemble_context import assemble_context
from nodes.assess_task import assess_task
from nodes.begin_tick import begin_tick, emergency
from nodes.compact import compact
from nodes.extract_facts import after_extraction, extract_facts
from nodes.hand_back import hand_back
from nodes.record import record
from nodes.use_tools import use_tools

builder = StateGraph(State, context_schema=Settings)
builder.add_node(begin_tick)
builder.add_node(extract_facts)
builder.add_node(compact)
builder.add_node(assemble_context)
builder.add_node(assess_task)
builder.add_node(act)
builder.add_node(use_tools)
builder.add_node(record)
builder.add_node(hand_back)
builder.add_edge(START, "begin_tick")
builder.add_conditional_edges("begin_tick", emergency)
builder.add_conditional_edges("extract_facts", after_extraction)
builder.add_edge("compact", "assemble_context")
builder.add_edge("assemble_context", "assess_task")
builder.add_edge("assess_task", "act")
builder.add_conditional_edges("act", after_act)
builder.add_edge("use_tools", "act")
builder.add_edge("record", "hand_back")
builder.add_edge("hand_back", END)

awake = builder.compile(name="awake")
