"""Running the tool calls of one model answer: in order, each seeing what the one before it did."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolInvocationError
from langgraph.types import Command

from memory.merging import merge_by_id, merge_projects
from memory.records import Usage
from memory.state import State
from memory.tick import Loop, ToolOutcome
from memory.usage import total
from tools.registry import BUILT_IN, ToolCategory, category_of


@dataclass
class Executed:
    """What the calls answered and changed."""

    messages: list[ToolMessage] = field(default_factory=list)
    update: dict[str, Any] = field(default_factory=dict)
    """State keys that changed, with their full values."""
    outcomes: list[ToolOutcome] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    """Ids of journal entries and facts."""
    usage: Usage = field(default_factory=lambda: Usage(llm_calls=0, tokens=0))
    """Model work that tools did themselves."""


async def execute(
    calls: Sequence[ToolCall],
    tools: Sequence[BaseTool],
    state: State,
    config: RunnableConfig,
    *,
    seconds: float,
) -> Executed:
    """Run `calls` one after the other; every call gets exactly one answer.

    Siblings of one answer are not run side by side: a rollup or a project swap must see what the
    call before it did. A tool that raises, or takes longer than `seconds`, an unknown tool
    and bad arguments answer the model.
    """
    done = Executed()
    node = ToolNode(list(tools), handle_tool_errors=failure)
    limits = {tool.name: limit_of(tool, seconds) for tool in tools}
    working = dict(state)
    for call in calls:
        if call["name"] not in limits:
            known = ", ".join(sorted(limits)) or "none"
            unknown = refuse([call], f"there is no tool {call['name']!r}", f"Tools here: {known}.")
            _take(done, working, unknown.messages[0], {})
            continue
        ask = AIMessage("", tool_calls=[call])
        seen = {**working, "messages": [*state.get("messages", []), ask]}
        try:
            async with asyncio.timeout(limits.get(call["name"], seconds)):
                message, update = _read(await node.ainvoke(seen, config))
        except TimeoutError:
            late = f"{call['name']} did not answer within {seconds:g} s"
            message = refuse([call], late, "Go on without it, or ask for less.").messages[0]
            update = {}
        _take(done, working, message, update)
    return done


def limit_of(tool: BaseTool, seconds: float) -> float | None:
    """Seconds that a call may take. A tool that calls a model or an outside store has none."""
    known = BUILT_IN.get(tool.name)
    category = known[1] if known else category_of(tool)
    return None if category == ToolCategory.ASYNC_REQUIRED else seconds


def refuse(calls: Sequence[ToolCall], error: str, suggestion: str) -> Executed:
    """Answer `calls` without running them."""
    result = json.dumps({"success": False, "error": error, "suggestion": suggestion})
    return Executed(
        messages=[
            ToolMessage(result, tool_call_id=call["id"] or "", name=call["name"], status="error")
            for call in calls
        ],
        outcomes=[ToolOutcome(name=call["name"], ok=False) for call in calls],
    )


def failure(error: Exception) -> str:
    """The answer to a call that raised, or whose arguments do not fit; the run goes on."""
    if isinstance(error, ToolInvocationError):
        wrong = [
            f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}"
            for one in error.filtered_errors or error.source.errors()
        ]
        result = {"error": "; ".join(wrong), "suggestion": "Call it again with these mended."}
    else:
        result = {
            "error": f"{type(error).__name__}: {error}",
            "suggestion": "Nothing is known to have changed. Go on without it, or try once more.",
        }
    return json.dumps({"success": False, **result}, ensure_ascii=False)


def _read(output: Any) -> tuple[ToolMessage, dict[str, Any]]:
    """A ToolNode's output: a list with a Command, or a dict with the message alone."""
    if isinstance(output, dict):
        return cast(ToolMessage, output["messages"][-1]), {}
    first = output[0]
    if isinstance(first, Command):
        update = dict(cast(dict[str, Any], first.update or {}))
        return cast(ToolMessage, update.pop("messages")[-1]), update
    return cast(ToolMessage, first["messages"][-1]), {}


def _take(
    done: Executed, working: dict[str, Any], message: ToolMessage, update: dict[str, Any]
) -> None:
    outcome = ToolOutcome(name=message.name or "", ok=message.status != "error")
    done.messages.append(message)
    done.outcomes.append(outcome)
    told = message.artifact if isinstance(message.artifact, dict) else {}
    done.written += told.get("written", [])
    done.usage = total(done.usage, told.get("usage", {"llm_calls": 0, "tokens": 0}))
    for key, value in update.items():
        working[key] = _merged(key, working.get(key), value)
        done.update[key] = working[key]
    loop = cast(Loop | None, working.get("loop"))
    if loop is not None:
        working["loop"] = {**loop, "tools": [*loop["tools"], outcome]}
    else:
        working["exchange"] = [*(working.get("exchange") or []), message]


def _merged(key: str, old: Any, new: Any) -> Any:
    if key == "goals":
        return merge_by_id(old, new)
    return merge_projects(old, new) if key == "projects" else new
