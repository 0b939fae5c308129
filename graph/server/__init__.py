"""What LangGraph Server runs beside the graph: who may do what, and routes of our own."""

from graph.server.settings import GRAPH, serving, serving_variables, token_for

__all__ = ["GRAPH", "serving", "serving_variables", "token_for"]
