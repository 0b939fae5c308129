"""The public module: the agent in the three ways it is used.

`graph` is for LangGraph Server and Studio, which bring their own persistence. `open_agent` is for
Python: the same graph with persistence in a data folder or database. `builder` is for compiling the
graph yourself.
"""

from __future__ import annotations

from graph.api import Agents, open_agent, open_agents
from graph.builder import builder

graph = builder.compile(name="agent")
__all__ = ["Agents", "builder", "graph", "open_agent", "open_agents"]
