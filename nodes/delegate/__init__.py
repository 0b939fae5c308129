"""The nodes of a sub-agent."""

from nodes.delegate.ask_delegate import after_answer, ask_delegate
from nodes.delegate.brief_delegate import brief_delegate, fan_out
from nodes.delegate.report_result import report_result
from nodes.delegate.use_delegate_tools import use_delegate_tools

__all__ = [
    "after_answer",
    "ask_delegate",
    "brief_delegate",
    "fan_out",
    "report_result",
    "use_delegate_tools",
]
