"""The tool that tells the model about itself: context use, loop, session (section 4).

All of it is computed when the tool is called, from the state of that moment: what earlier calls of
the same answer did is in it. An answer is never kept.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from memory.chat import for_model, is_history
from memory.prompt_health import recommended_action
from memory.resources import settings_of
from memory.state import SessionMetrics
from memory.tokens import advisory, approximate_tokens, calibrated, utilisation
from tools.answers import Answer, Reasoning, Runtime, answer, now_of


@tool
async def get_system_status(runtime: Runtime, reasoning: Reasoning = None) -> Answer:
    """See how full the context is, where the loop stands, and what this session did so far."""
    usage = _token_usage(runtime)
    full = usage["usage_percentage"]
    result = {
        "timestamp": now_of(runtime).isoformat(),
        "token_usage": usage,
        "token_advisory": {**advisory(full), "recommended_action": recommended_action(full)},
        "loop_state": _loop_state(runtime),
        "session_metrics": _session_metrics(runtime),
        "chain_state": _chain_state(runtime),
    }
    return answer(runtime, result)


def _token_usage(runtime: Runtime) -> dict[str, Any]:
    """Tokens of the prompt as it stands now: system message, all messages, the tools' schemas."""
    state = runtime.state
    context = state.get("context")
    system = [SystemMessage(context["system"])] if context else []
    prompt = [*system, *for_model(_messages(runtime))]
    used = calibrated(approximate_tokens(prompt, tools=runtime.tools), state["calibration"])
    limit = settings_of(runtime.context).max_context_tokens
    return {
        "estimated_used": used,
        "model_limit": limit,
        "available": max(0, limit - used),
        "usage_percentage": utilisation(used, limit),
    }


def _loop_state(runtime: Runtime) -> dict[str, Any]:
    loop, pattern = runtime.state["loop"], runtime.state["pattern"]
    names = [outcome["name"] for outcome in loop["tools"]]
    return {
        "iteration": loop["iteration"],
        "max_iterations": pattern["max_iterations"],
        "tools_this_cycle": names,
        "tool_count_this_cycle": len(names),
    }


def _session_metrics(runtime: Runtime) -> SessionMetrics:
    """The session's counters with the calls that they do not count yet.

    Those are the ones whose answers are not part of the history yet.
    """
    metrics: SessionMetrics = runtime.state["metrics"]
    new = [m for m in _messages(runtime) if isinstance(m, ToolMessage) and not is_history(m)]
    failed = sum(message.status == "error" for message in new)
    return {
        "session_start": metrics["session_start"],
        "total_tool_calls": metrics["total_tool_calls"] + len(new),
        "successful_calls": metrics["successful_calls"] + len(new) - failed,
        "failed_calls": metrics["failed_calls"] + failed,
    }


def _chain_state(runtime: Runtime) -> dict[str, Any]:
    """A chain begins with the second model answer that asks for tools; its depth counts from 1."""
    depth = max(0, runtime.state["loop"]["iteration"] - 1)
    return {"in_chain": depth > 0, "chain_depth": depth, "pending_tools": _pending(runtime)}


def _pending(runtime: Runtime) -> list[str]:
    """Tools that the same model answer asked for after this call."""
    asked = next((m for m in reversed(_messages(runtime)) if isinstance(m, AIMessage)), None)
    calls = asked.tool_calls if asked is not None else []
    ids = [call["id"] for call in calls]
    if runtime.tool_call_id not in ids:
        return []
    return [call["name"] for call in calls[ids.index(runtime.tool_call_id) + 1 :]]


def _messages(runtime: Runtime) -> list[AnyMessage]:
    """The history and this tick's messages, without the copy of this call that it was run by."""
    messages: list[AnyMessage] = list(runtime.state["messages"])
    return messages[:-1] if _is_copy(messages) else messages


def _is_copy(messages: list[AnyMessage]) -> bool:
    """Whether the last message asks alone for what the answer before it asks for."""
    answers = [message for message in messages if isinstance(message, AIMessage)][-2:]
    if len(answers) < 2 or answers[1] is not messages[-1]:
        return False
    first, last = ([call["id"] for call in one.tool_calls] for one in answers)
    return set(last) <= set(first)
