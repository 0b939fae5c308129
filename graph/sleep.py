"""The sleep subgraph: compacting batch by batch, then dreaming."""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph

from memory.settings import Settings
from memory.state import State
from nodes.apply_operations import apply_operations
from nodes.begin_night import begin_night, next_in_night
from nodes.compact import compact
from nodes.consolidate import consolidate
from nodes.extract_facts import after_extraction, extract_facts
from nodes.hand_back import hand_back
from nodes.record_night import record_night
from nodes.score_importance import score_importance

STEPS = ["score_importance", "consolidate", "apply_operations", "extract_facts", "record_night"]

builder = StateGraph(State, context_schema=Settings)
builder.add_node(begin_night)
builder.add_node(score_importance)
builder.add_node(consolidate)
builder.add_node(apply_operations)
builder.add_node(extract_facts)
builder.add_node(compact)
builder.add_node(record_night)
builder.add_node(hand_back)
builder.add_edge(START, "begin_night")
builder.add_conditional_edges("begin_night", next_in_night, [*STEPS, "hand_back"])
builder.add_conditional_edges(
    "score_importance", next_in_night, ["score_importance", "consolidate", "apply_operations"]
)
builder.add_conditional_edges("consolidate", next_in_night, ["consolidate", "apply_operations"])
builder.add_conditional_edges(
    "apply_operations", next_in_night, ["extract_facts", "apply_operations", "record_night"]
)
builder.add_conditional_edges("extract_facts", after_extraction)
builder.add_conditional_edges("compact", next_in_night, ["apply_operations"])
builder.add_edge("record_night", "hand_back")
builder.add_edge("hand_back", END)

sleep = builder.compile(name="sleep")
