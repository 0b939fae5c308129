"""The tools of the model call in hand, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from memory.resources import resources_of
from memory.settings import Settings
from memory.state import State
from tools.calls import Known
from tools.contexts import CONTEXTS
from tools.registry import kind_of, tools_for


def offered(state: State, config: RunnableConfig, settings: Settings) -> dict[str, Known]:
    """What the context, the pattern and the user's own tools give."""
    context, pattern = state["context"], state["pattern"]
    assert context is not None
    assert pattern is not None
    tools = tools_for(CONTEXTS[context["context_type"]], pattern, resources_of(config).tools)
    return {
        tool.name: Known(tool, kind_of(tool), _refuses(tool, state, config, settings))
        for tool in tools
    }


def _refuses(
    tool: BaseTool, state: State, config: RunnableConfig, settings: Settings
) -> Callable[[Mapping[str, Any]], bool]:
    """By the tool's own `why_not`, where its metadata has one."""
    why_not = (tool.metadata or {}).get("why_not")
    if why_not is None:
        return lambda args: False
    return lambda args: why_not(state, config, settings, args) is not None
