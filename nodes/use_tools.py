"""Run the tools that the model asked for."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory.chat import MARK
from memory.resources import resources_of, settings_of
from memory.settings import Settings
from memory.state import State
from memory.state_check import checked
from memory.tick import PatternState
from memory.usage import charged
from tools.contexts import CONTEXTS
from tools.execute import execute, refuse
from tools.registry import tools_for


@checked
async def use_tools(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Answer every call of the last model answer; a failing tool answers the model."""
    context, pattern, loop = state["context"], state["pattern"], state["loop"]
    assert context is not None
    assert pattern is not None
    assert loop is not None
    last = state["messages"][-1]
    assert isinstance(last, AIMessage)
    tools = tools_for(CONTEXTS[context["context_type"]], pattern, resources_of(config).tools)
    allowed, excess = _within(last.tool_calls, pattern)
    limit = settings_of(runtime.context).tool_timeout
    done = await execute(allowed, tools, state, config, seconds=limit)
    refused = refuse(excess, "one tool call only in this tick", "Answer now; ask again later.")
    outcomes = [*done.outcomes, *refused.outcomes]
    metrics = state["metrics"]
    ok = sum(outcome["ok"] for outcome in outcomes)
    mark = {MARK: {"tick": state["tick"]}}
    return {
        **done.update,
        "messages": [
            message.model_copy(update={"additional_kwargs": mark})
            for message in (*done.messages, *refused.messages)
        ],
        "loop": {
            **charged(loop, done.usage),
            "tools": [*loop["tools"], *outcomes],
            "written": [*loop["written"], *done.written],
        },
        "metrics": {
            **metrics,
            "total_tool_calls": metrics["total_tool_calls"] + len(outcomes),
            "successful_calls": metrics["successful_calls"] + ok,
            "failed_calls": metrics["failed_calls"] + len(outcomes) - ok,
        },
    }


def _within(calls: list[ToolCall], pattern: PatternState) -> tuple[list[ToolCall], list[ToolCall]]:
    """(run, refused): all of them, or the first alone where one tool is the limit (ruling 5)."""
    if pattern["mode"] == "single_action" or not pattern["multi_tool_enabled"]:
        return calls[:1], calls[1:]
    return list(calls), []
