"""The open agent, asynchronous and blocking."""

from graph.api.async_agent import Agent, AsyncAgent
from graph.api.open import Agents, BlockingAgents, make_graph, open_agent, open_agents

__all__ = [
    "Agent",
    "Agents",
    "AsyncAgent",
    "BlockingAgents",
    "make_graph",
    "open_agent",
    "open_agents",
]
