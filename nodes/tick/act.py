"""Ask the model for the next step of the tick: tool calls, or the reply."""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.messages import AIMessage, messages_from_dict
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Send

from memory.errors import ContextOverflow, ModelError, ModelRefused
from memory.messages import as_model_sees, marked
from memory.models import CUT_OFF, Answer, charged, in_vain
from memory.prompt import assembly
from memory.records import Loop
from memory.runtime import resources_of, settings_of
from memory.settings import Settings
from memory.state import State, checked, held
from memory.text import approximate_tokens, calibrated, recalibrate
from nodes.delegate import fan_out
from tools.execution import offered, routed, storable
from tools.policy import history
from tools.registry import shown_tools


async def onward(
    state: State,
) -> Literal["act", "use_tools", "park", "confirm", "extract_facts", "record"] | list[Send]:
    """Where the tick goes on, as the node that ran last decided; first a compaction that is due."""
    loop = held(state.get("loop"))
    if loop["compaction"] == "forced":
        return "extract_facts"
    if loop["next"] == "delegate":
        return fan_out(state)
    return loop["next"]


@checked
async def act(state: State, runtime: Runtime[Settings], config: RunnableConfig) -> dict[str, Any]:
    """One model call. At the pattern's cap no tool can be called, and it gives the answer.

    Raises ModelError without a usable answer: the tick fails and its event goes back.
    """
    context, pattern, loop = held(state["context"]), held(state["pattern"]), held(state["loop"])
    resources, settings = resources_of(config), settings_of(runtime.context)
    capped, known = _capped(state, settings), offered(state, config, settings)
    tools = shown_tools([one.tool for one in known.values()])
    messages = history(state, settings, context["context_type"])
    prompt = assembly.whole(context, as_model_sees(messages, settings.zone))
    try:
        answer = await resources.ask(
            prompt, settings, config, tools=tools, calls=not capped, names=list(known)
        )
    except ContextOverflow:
        if loop["overflowed"]:
            raise
        return {"loop": {**loop, "overflowed": True, "compaction": "forced"}}
    except ModelRefused as error:
        # Asked again unchanged it would refuse again: what it says is the answer.
        answer = Answer(AIMessage(str(error)), in_vain(error))
    message = _taken(state, answer, capped=capped or not known)
    told, schemas = approximate_tokens(prompt), approximate_tokens([], tools=tools)
    calibration = state["calibration"]
    beside = calibrated(told, calibration) - sum(context["tokens"].values())
    sizes = {"conversation_history": max(0, beside), "tools": calibrated(schemas, calibration)}
    going: Loop = {
        **charged(loop, answer.usage),
        "prompt": sizes,  # beside the components of the system message
        "iteration": loop["iteration"] + bool(message.tool_calls),
        "reply": None if message.tool_calls else str(message.text).strip(),
    }
    if message.tool_calls:
        messages = [*state["messages"], message]
        going = routed(messages, going, pattern, known, settings, state)
    else:
        going = {**going, "next": "record"}
        if answer.cut_off:
            going["truncated"] = True
    reported = answer.message.usage_metadata
    counted = int(reported["input_tokens"]) if reported else 0
    calibration = recalibrate(calibration, told + schemas, counted)
    return {"messages": [message], "loop": going, "calibration": calibration}


def _capped(state: State, settings: Settings) -> bool:
    """Whether the call is to give the answer: the iterations are used, or too much failed."""
    pattern, loop = held(state["pattern"]), held(state["loop"])
    failing = loop["raised"] > 0 and state["consecutive_errors"] >= settings.max_consecutive_errors
    # Answers that may ask for tools; single_action means one.
    most = 1 if pattern["mode"] == "single_action" else pattern["max_iterations"]
    return failing or loop["iteration"] >= most


def _taken(state: State, answer: Answer, *, capped: bool) -> AIMessage:
    used: set[str] = set()
    if answer.message.tool_calls:
        waiting = [m for one in state["parked"] for m in messages_from_dict(one["messages"])]
        known = [*state["messages"], *waiting]
        used = {str(c["id"]) for m in known if isinstance(m, AIMessage) for c in m.tool_calls}
    message = storable(answer.message, f"{state['tick']}_{len(state['messages'])}", used)
    if capped and message.tool_calls:
        message = message.model_copy(update={"tool_calls": [], "invalid_tool_calls": []})
    if not str(message.text).strip() and not message.tool_calls:
        raise ModelError("the model gave no answer at the end of the tick")
    if answer.cut_off and not message.tool_calls:
        message = message.model_copy(update={"content": f"{str(message.text).strip()} {CUT_OFF}"})
    return marked(message, tick=state["tick"])
