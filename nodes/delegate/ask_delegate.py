"""Ask a sub-agent's model for its next step: tool calls, or the result."""

from __future__ import annotations

from typing import Literal

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory.errors import ModelError
from memory.messages import as_model_sees
from memory.models import total
from memory.runtime import resources_of, settings_of
from memory.settings import Settings
from memory.state import checked
from tools.delegation import DelegateState, delegate_tools, failed, iterations, one_call_only
from tools.execution import storable

SUGGESTION = "Do it yourself, give it a smaller task, or go on without it."


async def after_answer(
    state: DelegateState,
) -> Literal["use_delegate_tools", "report_result", "__end__"]:
    """Run the tools that the model asked for, report its result, or end after a failure."""
    if state.get("delegated"):
        return "__end__"
    last = state["messages"][-1]
    asked = isinstance(last, AIMessage) and bool(last.tool_calls)
    return "use_delegate_tools" if asked else "report_result"


@checked
async def ask_delegate(
    state: DelegateState, runtime: Runtime[Settings], config: RunnableConfig
) -> DelegateState:
    """Call the model once, without tools at the cap. A failed call becomes the result."""
    settings, resources = settings_of(runtime.context), resources_of(config)
    messages, pattern = state["messages"], state["pattern"]
    most = 1 if one_call_only(pattern) else settings.sub_agent_iterations
    capped = iterations(messages) >= most
    tools = [] if capped else delegate_tools(state, resources, settings.personality_insulation)
    try:
        answer = await resources.ask(as_model_sees(messages), settings, config, tools=tools)
    except ModelError as error:
        line = f"the sub-agent failed: {error}"
        return failed(state, line, SUGGESTION, usage=state["usage"], now=resources.clock())
    usage = total(state["usage"], answer.usage)
    message = _taken(answer.message, f"{state['call_id']}_{len(messages)}", capped=capped)
    if not message.tool_calls and not str(message.text).strip():
        line = "the sub-agent gave no result"
        return failed(state, line, SUGGESTION, usage=usage, now=resources.clock())
    return {"messages": [*messages, message], "usage": usage}


def _taken(message: AIMessage, place: str, *, capped: bool) -> AIMessage:
    """The answer without calls past the cap, and with an id for each other call."""
    if capped and message.tool_calls:
        return message.model_copy(update={"tool_calls": [], "invalid_tool_calls": []})
    return storable(message, place)
