"""The sleep subgraph: compacting batch by batch, then dreaming."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

from graph.blocking import run_both_ways
from memory.settings import Settings
from memory.state import State
from nodes.compaction import after_extraction, compact, extract_facts
from nodes.hand_back import hand_back, lent, returned
from nodes.night import (
    apply_operations,
    begin_night,
    consolidate,
    consolidate_entities,
    dream,
    next_in_night,
    prune,
    prune_links,
    record_night,
    reflect,
    score_importance,
    weigh_night,
    write_pages,
)

COMPACTING = ["score_importance", "consolidate"]
DREAMING = [
    *("dream", "prune_links", "consolidate_entities", "write_pages", "reflect", "prune"),
    "extract_facts",
]
ENDING = ["weigh_night", "apply_operations", "record_night"]

builder = StateGraph(State, context_schema=Settings)

builder.add_node(begin_night)
builder.add_node(score_importance)
builder.add_node(consolidate)
builder.add_node(apply_operations)
builder.add_node(dream)
builder.add_node(prune_links)
builder.add_node(consolidate_entities)
builder.add_node(write_pages)
builder.add_node(reflect)
builder.add_node(prune)
builder.add_node(extract_facts)
builder.add_node(compact)
builder.add_node(weigh_night)
builder.add_node(record_night)
builder.add_node(hand_back)
builder.add_edge(START, "begin_night")
builder.add_conditional_edges(
    "begin_night", next_in_night, [*COMPACTING, *DREAMING, *ENDING, "hand_back"]
)
builder.add_conditional_edges("score_importance", next_in_night, [*COMPACTING, "apply_operations"])
builder.add_conditional_edges("consolidate", next_in_night, ["consolidate", "apply_operations"])
builder.add_conditional_edges("apply_operations", next_in_night, [*DREAMING, *ENDING])

for place, step in enumerate(DREAMING[:-1]):
    builder.add_conditional_edges(step, next_in_night, [*DREAMING[place:], *ENDING[:2]])

builder.add_conditional_edges("extract_facts", after_extraction)
builder.add_conditional_edges("compact", next_in_night, ENDING[:2])
builder.add_conditional_edges("weigh_night", next_in_night, ENDING[1:])
builder.add_edge("record_night", "hand_back")
builder.add_edge("hand_back", END)

run_both_ways(builder)
sleep = builder.compile(name="sleep")


async def night(state: State, config: RunnableConfig) -> dict[str, Any]:
    """One night, or one phase of it. Every step is stored."""
    return returned(state, await sleep.ainvoke(lent(state), config))


def night_blocking(state: State, config: RunnableConfig) -> dict[str, Any]:
    """`night`, in a blocking call."""
    return returned(state, sleep.invoke(lent(state), config))
