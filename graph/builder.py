"""The agent's graph: intake, then a tick or a night, then intake again while something is pending.

The loop over events is in this parent graph, one event per tick, so that a crash costs one tick at
most.
"""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph

from graph.awake import tick, tick_blocking
from graph.blocking import run_both_ways
from graph.sleep import night, night_blocking
from memory.settings import Settings
from memory.state import AgentInput, AgentOutput, State
from nodes.intake import intake, next_turn
from nodes.night import night_failed
from nodes.refuse import refuse
from nodes.tick import return_event

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
