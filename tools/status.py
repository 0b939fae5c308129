"""The tool that tells the model about itself: context use, loop, session (section 4)."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.tools import tool

from memory.resources import settings_of
from memory.tokens import advisory, approximate_tokens, calibrated, utilisation
from tools.answers import Answer, Reasoning, Runtime, answer, now_of


@tool
async def get_system_status(runtime: Runtime, reasoning: Reasoning = None) -> Answer:
    """See how full the context is, where the loop stands, and what this session did so far."""
    usage = _token_usage(runtime)
    result = {
        "timestamp": now_of(runtime).isoformat(),
        "token_usage": usage,
        "token_advisory": advisory(usage["usage_percentage"]),
        "loop_state": _loop_state(runtime),
        "session_metrics": runtime.state["metrics"],
        "chain_state": _chain_state(runtime),
    }
    return answer(runtime, result)


def _token_usage(runtime: Runtime) -> dict[str, Any]:
    """Tokens of the prompt as it stands now: the assembled system message and all messages."""
    state = runtime.state
    context = state.get("context")
    system = [SystemMessage(context["system"])] if context else []
    approximate = approximate_tokens([*system, *state["messages"]])
    used = calibrated(approximate, state["calibration"])
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


def _chain_state(runtime: Runtime) -> dict[str, Any]:
    """A chain begins with the second model answer that asks for tools; its depth counts from 1."""
    depth = max(0, runtime.state["loop"]["iteration"] - 1)
    return {"in_chain": depth > 0, "chain_depth": depth, "pending_tools": _pending(runtime)}


def _pending(runtime: Runtime) -> list[str]:
    """Tools that the same model answer asked for after this call."""
    names: list[str] = []
    for message in reversed(runtime.state["messages"]):
        if not isinstance(message, AIMessage):
            break
        ids = [call["id"] for call in message.tool_calls]
        if runtime.tool_call_id in ids:
            later = message.tool_calls[ids.index(runtime.tool_call_id) + 1 :]
            names = [call["name"] for call in later]
    return names
