"""Journal what matters before compaction cuts the history; each visit is one model answer."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import tzinfo
from typing import Any, Literal, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import audit
from memory.errors import CircuitOpen, ConfigurationError, ContextOverflow, ModelError
from memory.messages import as_model_sees, prompt_lines
from memory.models import charged
from memory.night import Plans, Thought, night_in_hand, plan
from memory.operations import PlanCollector, with_collector
from memory.prompt import rendering
from memory.records import AssembledContext, EndedBy, after_answer
from memory.runtime import resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import Course, State, checked, counted_failure, held
from memory.telemetry import called
from memory.text import clock_line
from nodes.compaction.compact import archived, parts_of
from tools.execution import execute
from tools.policy import CONTEXTS, select_execution_pattern
from tools.registry import tools_for

log = logging.getLogger("circadian.compaction")
CONTEXT = CONTEXTS["pre_compaction"]
MIN_MESSAGES = 5
"""A shorter history is cut without a look for conclusions."""

EMERGENCY_ITERATIONS = 3
"""Most answers of the model in a tick, for which somebody waits."""


def instruction(now: str, zone: tzinfo) -> str:
    """The message that asks for conclusions, with the time."""
    return (
        f"{prompt_lines.EXTRACTION} {clock_line(now, zone)}. Record the "
        "conclusions from the conversation above, or call noop."
    )


async def after_extraction(state: Course) -> Literal["extract_facts", "compact"]:
    """Repeat the node while its exchange with the model is open."""
    return "extract_facts" if state.get("exchange") else "compact"


@checked
async def extract_facts(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """One turn of the extraction loop, whose exchange is not kept in the history.

    The loop ends on noop, on an answer without a tool call, on a tool that the context does not
    have, after the last iteration, and if the model gives no usable answer: compaction must not
    wait.
    """
    settings = settings_of(runtime.context)
    if not settings.pre_compact_extraction_enabled or len(state["messages"]) < MIN_MESSAGES:
        return {"exchange": []}
    old = parts_of(state, settings).old
    if not state["exchange"] and await archived(old, store_of(runtime), scope_of(config)):
        return {"exchange": []}
    if state["turn"] != "night":
        return await _in_emergency(state, runtime, config)
    context = await night_in_hand(state, runtime, config)
    inputs = [str(message.id) for message in state["messages"]]
    earlier = Plans(context.plans.of("extract_facts")).operations()

    async def think() -> Thought:
        collector, night_id = PlanCollector({}, earlier), context.record["id"]
        thought = await _turn(state, settings, config, collector, context.now, night_id)
        thought.operations = collector.operations[len(earlier) :]
        return thought

    made = await plan(context, "extract_facts", inputs, think, iteration=_iteration(state))
    exchange = cast(list[AnyMessage], messages_from_dict(made["exchange"]))
    return {"exchange": [] if made.get("finished") else exchange}


async def _in_emergency(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Extract while awake: tools write the journal entries at once.

    Without a usable answer the compaction goes on, as the history may be too long for the model.
    """
    settings, event = settings_of(runtime.context), state["event"]
    now, origin = resources_of(config).clock().isoformat(), event["id"] if event else None
    loop = held(state["loop"])
    before = loop.get("extracted")
    try:
        thought = await _turn(state, settings, config, None, now, origin)
    except ModelError as error:
        log.warning("extraction ended: %s", error)
        loop = {**loop, "extracted": after_answer(before, facts=0, ended="error")}
        tried = not isinstance(error, CircuitOpen | ConfigurationError | ContextOverflow)
        return {"exchange": [], "loop": loop, **(counted_failure(state, loop) if tried else {})}
    loop = {**loop, "extracted": after_answer(before, **cast(Any, thought.result))}
    visit = _iteration(state)
    await audit.write(store_of(runtime), scope_of(config), thought.log, visit=visit)
    exchange = cast(list[AnyMessage], messages_from_dict(thought.exchange))
    return {
        "exchange": [] if thought.finished else exchange,
        # Awake, the tick's counters include the cost.
        "loop": charged(loop, thought.usage),
    }


async def _turn(
    state: State,
    settings: Settings,
    config: RunnableConfig,
    collector: PlanCollector | None,
    now: str,
    origin: str | None,
) -> Thought:
    """One model answer and its tool calls. `origin`: the night or the event, for the audit log."""
    pattern = select_execution_pattern(settings, CONTEXT)
    tools = tools_for(CONTEXT, pattern, ())
    exchange = state["exchange"]
    resources = resources_of(config)
    prompt = [*_opening(state, settings, now), *as_model_sees(exchange)]
    answer = await resources.ask(prompt, settings, config, tools=tools)
    message = answer.message
    known = {tool.name for tool in tools}
    calls = [call for call in message.tool_calls if call["name"] in known]
    if collector is not None:
        config = with_collector(config, collector)
    context: AssembledContext = {  # with the prompt, which the tools must not journal
        "context_type": CONTEXT.context_type,
        "now": now,
        "system": _system(settings),
        "tokens": {},
    }
    side: State = {**state, "context": context}
    done = await execute(calls, tools, side, config, seconds=settings.tool_timeout)
    most = settings.pre_compact_max_iterations
    if state["turn"] != "night":
        most = min(most, EMERGENCY_ITERATIONS)
    ended = _ended(message, known, last=_iteration(state) + 1 >= most)
    entries = sum(one["ok"] and one["name"] == "add_journal_entry" for one in done.outcomes)
    return Thought(
        usage=answer.usage,
        exchange=messages_to_dict([*exchange, message, *done.messages]),
        finished=ended is not None,
        result={"facts": entries, "ended": ended},
        log=audit.of_calls(
            done.calls,
            at=resources.clock(),
            tick=None if state["turn"] == "night" else state["tick"],
            origin=origin,
            model=called(resources.chat_model),
        ),
    )


def _ended(message: AIMessage, known: Collection[str], *, last: bool) -> EndedBy | None:
    names = [call["name"] for call in message.tool_calls]
    if not names:
        return "no_tool_call"
    if any(name not in known for name in names):
        return "other_tool"
    if "noop" in names:
        return "noop"
    return "max_iterations" if last else None


def _opening(state: State, settings: Settings, now: str) -> list[AnyMessage]:
    shown = as_model_sees(state["messages"], settings.zone)
    asked = HumanMessage(instruction(now, settings.zone))
    return [SystemMessage(_system(settings)), *shown, asked]


def _system(settings: Settings) -> str:
    override = CONTEXT.get_component_content_override("system_prompt")
    return rendering.block(
        "system_prompt", settings.pre_compact_prompt or rendering.system_prompt(settings, override)
    )


def _iteration(state: State) -> int:
    return sum(isinstance(message, AIMessage) for message in state["exchange"])
