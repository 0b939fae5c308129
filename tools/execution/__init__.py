"""Execution: the tool calls of a model answer, run in order, and their results."""

from tools.execution.calls import Known, misfit, offered, routed, sound, what_becomes_of
from tools.execution.execute import Executed, as_answered, execute, refuse
from tools.execution.results import error_text, innermost

__all__ = [
    "Executed",
    "Known",
    "as_answered",
    "error_text",
    "execute",
    "innermost",
    "misfit",
    "offered",
    "refuse",
    "routed",
    "sound",
    "what_becomes_of",
]
