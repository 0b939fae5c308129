"""Execution: what becomes of a model answer's tool calls, running them, and their results."""

from tools.execution.calls import (
    OfferedTool,
    misfit,
    offered,
    routed,
    storable,
    what_becomes_of,
    with_calls,
)
from tools.execution.execute import Executed, as_answered, error_text, execute, innermost, refuse

__all__ = [
    "Executed",
    "OfferedTool",
    "as_answered",
    "error_text",
    "execute",
    "innermost",
    "misfit",
    "offered",
    "refuse",
    "routed",
    "storable",
    "what_becomes_of",
    "with_calls",
]
