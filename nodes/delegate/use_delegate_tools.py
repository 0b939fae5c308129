"""Run the tools that a sub-agent asked for. Changes that they make to the state are dropped."""

from __future__ import annotations

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory.models import total
from memory.runtime import resources_of, settings_of
from memory.settings import Settings
from memory.state import State, checked, fresh_state
from tools.delegation import DelegateState, delegate_tools, one_call_only
from tools.execution import execute, refuse


@checked
async def use_delegate_tools(
    state: DelegateState, runtime: Runtime[Settings], config: RunnableConfig
) -> DelegateState:
    """Answer every call of the sub-agent's last message, in order."""
    settings, last = settings_of(runtime.context), state["messages"][-1]
    assert isinstance(last, AIMessage)
    tools = delegate_tools(state, resources_of(config), settings.personality_insulation)
    allowed = 1 if one_call_only(state["pattern"]) else len(last.tool_calls)
    done = await execute(
        last.tool_calls[:allowed], tools, _side(state), config, seconds=settings.tool_timeout
    )
    refused = refuse(
        last.tool_calls[allowed:], "one tool call only in this tick", "Answer with what you have."
    )
    return {
        "messages": [*state["messages"], *done.messages, *refused.messages],
        "calls": [*state["calls"], *done.calls, *refused.calls],
        "usage": total(state["usage"], done.usage),
    }


def _side(state: DelegateState) -> State:
    """The state that the tools see: the tick's time, audience and projects, and nothing else."""
    return {
        **fresh_state(),
        "tick": state["tick"],
        "shared_channels": state.get("shared_channels") or {},
        "projects": state["projects"],
        "messages": state["messages"],
        "context": {
            "context_type": "delegate",
            "now": state["now"],
            "system": "",
            "tokens": {},
            "heard_by": state.get("heard_by", ("private", None)),
        },
    }
