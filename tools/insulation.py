"""Which of its requester's tools a sub-agent is given."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.tools import BaseTool

from memory.delegation import DelegateState, Insulation
from memory.resources import Resources
from tools.contexts import CONTEXTS
from tools.registry import BUILT_IN, ToolCategory, kind_of, tools_for

READING = ("recall_memories", "review_journal", "list_projects")
"""The built-in tools that read the requester's memory and write nothing."""


def tools_for_delegate(offered: Sequence[BaseTool], insulation: Insulation) -> list[BaseTool]:
    """Of the tools that its requester was offered: the user's own that chain freely, and READING.

    READING only without insulation: memory read by a tool is told as much as memory in the
    briefing, and a journal says more of the assistant than its goals do.
    """
    return [tool for tool in offered if _given(tool, insulation)]


def delegate_tools(
    state: DelegateState, resources: Resources, insulation: Insulation
) -> list[BaseTool]:
    """The tools of the sub-agent in hand."""
    context = CONTEXTS[state["context_type"]]
    return tools_for_delegate(tools_for(context, state["pattern"], resources.tools), insulation)


def _given(tool: BaseTool, insulation: Insulation) -> bool:
    if tool.name in BUILT_IN:
        return insulation == "none" and tool.name in READING
    kind = kind_of(tool)
    return kind.category == ToolCategory.SAFE_CHAIN and not kind.always_ask
