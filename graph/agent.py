"""The agent, in the three ways it is used.

`graph` is for LangGraph Server and Studio, which bring their own persistence. `open_agent` is for
Python: the same graph with persistence under one data folder. `builder` is for your own.
"""

from graph.builder import builder
from graph.opening import Agents, open_agent, open_agents

graph = builder.compile(name="agent")

__all__ = ["Agents", "builder", "graph", "open_agent", "open_agents"]
