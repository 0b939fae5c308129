"""Ask the model for the next step of the tick: tool calls, or the reply."""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory.chat import MARK, for_model
from memory.errors import ContextOverflow, ModelError
from memory.models.ask import Answer, ask
from memory.resources import resources_of
from memory.settings import Settings
from memory.state import State
from memory.state_check import checked
from memory.tick import Loop, PatternState
from memory.tokens import approximate_tokens, recalibrate
from memory.usage import charged
from tools.contexts import CONTEXTS
from tools.registry import tools_for


def after_act(state: State) -> Literal["use_tools", "extract_facts", "record"]:
    """Tools were asked for, the prompt was too long, or the reply is there."""
    loop = state.get("loop")
    if loop is not None and loop["compaction"] == "forced":
        return "extract_facts"
    last = state["messages"][-1]
    return "use_tools" if isinstance(last, AIMessage) and last.tool_calls else "record"


@checked
async def act(state: State, runtime: Runtime[Settings], config: RunnableConfig) -> dict[str, Any]:
    """One model call. At the pattern's cap it is made without tools and gives the answer.

    Raises:
        ModelError: no usable answer after retries; the tick fails and its event goes back.
    """
    context, pattern, loop = state["context"], state["pattern"], state["loop"]
    assert context is not None
    assert pattern is not None
    assert loop is not None
    resources = resources_of(config)
    capped = loop["iteration"] >= iterations(pattern)
    tools = [] if capped else tools_for(CONTEXTS[context["context_type"]], pattern, resources.tools)
    prompt: list[AnyMessage] = [SystemMessage(context["system"]), *for_model(state["messages"])]
    try:
        answer = await ask(resources.chat_model, prompt, tools=tools, config=config)
    except ContextOverflow:
        if loop["overflowed"]:
            raise
        return {"loop": {**loop, "overflowed": True, "compaction": "forced"}}
    calibration = _calibration(state, approximate_tokens(prompt, tools=tools), answer.message)
    return {**_taken(state, loop, answer, capped=capped), "calibration": calibration}


def iterations(pattern: PatternState) -> int:
    """Model answers that may ask for tools (ruling 4); single_action means one (ruling 5)."""
    return 1 if pattern["mode"] == "single_action" else pattern["max_iterations"]


def _taken(state: State, loop: Loop, answer: Answer, *, capped: bool) -> dict[str, Any]:
    message = answer.message
    if capped and message.tool_calls:
        message = message.model_copy(update={"tool_calls": [], "invalid_tool_calls": []})
    text = str(message.text).strip()
    if not text and not message.tool_calls:
        raise ModelError("the model gave no answer at the end of the tick")
    kept = message.model_copy(
        update={"additional_kwargs": {**message.additional_kwargs, MARK: {"tick": state["tick"]}}}
    )
    asked = bool(message.tool_calls)
    return {
        "messages": [kept],
        "loop": {
            **charged(loop, answer.usage),
            "iteration": loop["iteration"] + asked,
            "reply": None if asked else text,
        },
    }


def _calibration(state: State, approximate: int, message: AIMessage) -> float:
    """Correct the approximate count by what the provider reported for this prompt."""
    reported = message.usage_metadata
    if not reported:
        return state["calibration"]
    return recalibrate(state["calibration"], approximate, int(reported["input_tokens"]))
