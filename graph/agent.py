"""The public module: the ways to get the agent.

`graph` is for LangGraph Server and Studio, which bring their own persistence. `open_agent` is for
Python: the same graph with persistence in a data folder or database; `open_agents` opens many.
`make_graph` gives the graph with a checkpointer and a store of your own. `builder` is the graph
before it is compiled; models and other resources of its runs come from the environment.
"""

from __future__ import annotations

from graph.api import Agents, BlockingAgents, make_graph, open_agent, open_agents
from graph.builder import builder

graph = builder.compile(name="agent")
__all__ = [
    "Agents",
    "BlockingAgents",
    "builder",
    "graph",
    "make_graph",
    "open_agent",
    "open_agents",
]
