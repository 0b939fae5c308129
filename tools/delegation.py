"""Sub-agents: their state, tools and result. Pure.

The assistant that delegates a task is the requester. The setting `personality_insulation` decides
what a sub-agent learns about it, beside the task:

- none: open goals, newest messages, state of the system;
- delegate: the first three goals;
- orchestrator: nothing.

No sub-agent learns the persona.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import BaseTool
from langgraph.channels import EphemeralValue
from typing_extensions import TypedDict

from memory.records import CallRecord, DelegateResult, Goal, PatternState, Projects, Usage
from memory.runtime import Resources
from memory.settings import Audience
from memory.state import Mode
from tools.builtin import assistant
from tools.policy import CONTEXTS
from tools.registry import BUILT_IN, ToolCategory, kind_of, tools_for

Insulation = Literal["none", "orchestrator", "delegate"]


class Requester(TypedDict):
    """The part of the requester's state that a briefing may show."""

    mode: Mode
    used: int
    """Tokens of the requester's prompt, calibrated."""
    calibration: float
    goals: dict[str, Goal]
    projects: Projects
    recent: list[str]
    """The newest messages, oldest first: `NAME: TEXT`."""


class DelegateState(TypedDict, total=False):
    """One sub-agent's state. Only `delegated` reaches the requester."""

    call_id: str
    """Id of the call of `delegate_task` that the sub-agent answers."""
    args: dict[str, Any]
    """Arguments of that call, as the model gave them."""
    tick: int
    now: str
    """The requester's time of the tick."""
    context_type: str
    pattern: PatternState
    """The requester's pattern: a sub-agent may do nothing that its requester may not."""
    heard_by: tuple[Audience, str | None]
    """Audience and channel of the requester's answer: a sub-agent's tools tell them no more."""
    shared_channels: dict[str, str]
    requester: Annotated[Requester, EphemeralValue]
    """Gone after the briefing: the state keeps nothing that the sub-agent is not told."""
    projects: Projects
    """Projects that its tools may read."""
    messages: list[AnyMessage]
    """The sub-agent's own messages, the briefing first."""
    began: str
    """Time of the briefing, ISO 8601."""
    calls: list[CallRecord]
    """Calls of its tools."""
    usage: Usage
    delegated: dict[str, DelegateResult]
    """The result by call id, once there is one."""


class DelegateOutput(TypedDict):
    """The part of a sub-agent's state that its requester gets."""

    delegated: dict[str, DelegateResult]


def iterations(messages: Sequence[AnyMessage]) -> int:
    """Number of the sub-agent's answers so far that asked for tools."""
    return sum(isinstance(one, AIMessage) and bool(one.tool_calls) for one in messages)


def one_call_only(pattern: PatternState) -> bool:
    """Whether requester and sub-agent may make only one tool call."""
    return pattern["mode"] == "single_action" or not pattern["multi_tool_enabled"]


def succeeded(
    state: DelegateState, text: str, *, summarised: bool, usage: Usage, now: datetime
) -> DelegateState:
    """The result as JSON for the requester's model, with the total cost."""
    content = {
        "success": True,
        "result": text,
        "iterations": iterations(state["messages"]),
        "tools_used": [call["name"] for call in state["calls"]],
        "summarised": summarised,
    }
    return _handed_back(state, content, usage, now)


def failed(
    state: DelegateState, error: str, suggestion: str, *, usage: Usage, now: datetime
) -> DelegateState:
    """The failure as JSON for the requester's model; its tick goes on."""
    content = {"success": False, "error": error, "suggestion": suggestion}
    return _handed_back(state, content, usage, now)


def _handed_back(
    state: DelegateState, content: dict[str, Any], usage: Usage, now: datetime
) -> DelegateState:
    took = now - datetime.fromisoformat(state.get("began", now.isoformat()))
    reasoning = state["args"].get("reasoning")
    own: CallRecord = {
        "name": assistant.delegate_task.name,
        "args": {key: value for key, value in state["args"].items() if key != "reasoning"},
        "reasoning": reasoning if isinstance(reasoning, str) else None,
        "ok": content["success"],
        "error": content.get("error"),
        "duration_ms": round(took.total_seconds() * 1000),
        "cached": False,
    }
    result: DelegateResult = {
        "call_id": state["call_id"],
        "content": json.dumps(content, ensure_ascii=False),
        "ok": content["success"],
        "usage": usage,
        "calls": [own, *state.get("calls", [])],
    }
    return {"delegated": {state["call_id"]: result}}


READING = ("recall_memories", "review_journal", "list_projects")
"""The built-in tools that read the requester's memory and write nothing."""


def delegate_tools(
    state: DelegateState, resources: Resources, insulation: Insulation
) -> list[BaseTool]:
    """The requester's tools that this sub-agent gets: the user's safe ones, and READING.

    Only a sub-agent without insulation gets READING: the journal says more about the requester
    than its goals do.
    """
    offered = tools_for(CONTEXTS[state["context_type"]], state["pattern"], resources.tools)
    return [tool for tool in offered if _given(tool, insulation)]


def _given(tool: BaseTool, insulation: Insulation) -> bool:
    if tool.name in BUILT_IN:
        return insulation == "none" and tool.name in READING
    kind = kind_of(tool)
    return kind.category == ToolCategory.SAFE_CHAIN and not kind.always_ask
