"""Brief a sub-agent: its task, and what the insulation allows it to know of the requester."""

from __future__ import annotations

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Send

from memory.runtime import resources_of, settings_of
from memory.settings import Settings
from memory.state import State, checked, held
from tools.delegation import NO_PROJECTS, DelegateState, opening, requester
from tools.policy import heard_by


def fan_out(state: State) -> list[Send]:
    """Start one sub-agent for each call of `delegate_task`, in parallel.

    Without any it raises: a router that sends nothing would end the tick silently.
    """
    loop, context, pattern = held(state["loop"]), held(state["context"]), held(state["pattern"])
    asked = next(one for one in reversed(state["messages"]) if isinstance(one, AIMessage))
    lender = requester(state)
    payloads = [
        DelegateState(
            call_id=str(call["id"]),
            args=call["args"],
            tick=state["tick"],
            now=context["now"],
            context_type=context["context_type"],
            pattern=pattern,
            heard_by=heard_by(state["messages"], state["tick"]),
            shared_channels=state.get("shared_channels") or {},
            requester=lender,
        )
        for call in asked.tool_calls
        if call["id"] in loop["delegating"]
    ]
    if not payloads:
        raise RuntimeError("no call of the newest answer waits for a sub-agent")
    return [Send("delegate", payload) for payload in payloads]


@checked
async def brief_delegate(
    state: DelegateState, runtime: Runtime[Settings], config: RunnableConfig
) -> DelegateState:
    """Begin the sub-agent's messages."""
    settings, args, lender = settings_of(runtime.context), state["args"], state["requester"]
    shares = settings.personality_insulation == "none"
    return {
        "began": resources_of(config).clock().isoformat(),
        "messages": opening(args["task"], args.get("context"), lender, settings, now=state["now"]),
        "projects": lender["projects"] if shares else NO_PROJECTS,
        "calls": [],
        "usage": {"llm_calls": 0, "tokens": 0},
    }
