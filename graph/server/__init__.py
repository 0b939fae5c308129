"""What LangGraph Server runs beside the graph: who may do what, and routes of our own."""

from graph.server.crons import Scheduled, schedule_of
from graph.server.settings import serving_variables
from graph.server.tokens import token_for

__all__ = [
    "Scheduled",
    "schedule_of",
    "serving_variables",
    "token_for",
]
