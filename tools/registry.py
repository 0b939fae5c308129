"""Which tools there are, of which category, and which of them a call is given."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from langchain_core.tools import BaseTool

from memory.errors import InputError
from memory.tick import PatternState
from tools.contexts import ContextConfig
from tools.facts import store_memory
from tools.goals import add_goal, decompose_goal, update_goal
from tools.journal import add_journal_entry, review_journal
from tools.noop import noop
from tools.projects import create_project, list_projects, swap_project, update_project
from tools.recall import recall_memories
from tools.session_memory import add_session_memory, compact_session_memory
from tools.status import get_system_status


class ToolCategory(StrEnum):
    """How freely a tool may be used (architecture-context-system, section 1)."""

    SAFE_CHAIN = "safe_chain"
    """Low risk: chains freely."""
    TERMINAL = "terminal"
    """Speaks to someone: ends the loop, to wait for the answer."""
    DANGEROUS = "dangerous"
    """Changes what cannot easily be changed back: one a tick, may need confirmation."""
    ASYNC_REQUIRED = "async_required"
    """Calls a model or an outside store."""


BUILT_IN: dict[str, tuple[BaseTool, ToolCategory]] = {
    tool.name: (tool, category)
    for category, tools in {
        ToolCategory.SAFE_CHAIN: (
            create_project,
            list_projects,
            swap_project,
            update_project,
            add_goal,
            update_goal,
            add_session_memory,
            compact_session_memory,
            add_journal_entry,
            review_journal,
            recall_memories,
            get_system_status,
            noop,
        ),
        ToolCategory.ASYNC_REQUIRED: (decompose_goal, store_memory),
    }.items()
    for tool in tools
}
"""The built-in tools by name, each with its category."""


def tools_for(
    context: ContextConfig, pattern: PatternState, extra: Sequence[BaseTool]
) -> list[BaseTool]:
    """The tools of one call: built-in ones and the user's, through the context's two filters.

    Raises:
        InputError: one of the user's tools has the name of a built-in one, or no such category.
    """
    offered = dict(BUILT_IN)
    for tool in extra:
        if tool.name in BUILT_IN:
            raise InputError(f"the tool {tool.name!r} has the name of a built-in tool; rename it")
        offered[tool.name] = (tool, category_of(tool))
    categories = pattern["allowed_categories"]
    return [
        tool
        for name, (tool, category) in offered.items()
        if (context.tool_filter is None or name in context.tool_filter)
        and (categories is None or category in categories)
    ]


def category_of(tool: BaseTool) -> ToolCategory:
    """The category of a user's tool: its metadata's `category`, else SAFE_CHAIN."""
    given = (tool.metadata or {}).get("category", ToolCategory.SAFE_CHAIN)
    try:
        return ToolCategory(given)
    except ValueError:
        known = ", ".join(ToolCategory)
        raise InputError(
            f"the tool {tool.name!r} has the category {given!r}; it must be one of {known}"
        ) from None
