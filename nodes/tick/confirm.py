"""Ask a person whether a dangerous tool may run, and put the tick aside until the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    RemoveMessage,
    ToolCall,
    ToolMessage,
    messages_to_dict,
)
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from memory import audit
from memory.audit import of_mode_change
from memory.events import approvals
from memory.messages import marked, merge_messages, of_tick, open_calls
from memory.prompt import assembly
from memory.records import Decision, Loop, ParkedTick, Question, ToolOutcome
from memory.runtime import resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import State, checked, held, woken
from tools.execution import OfferedTool, misfit, offered, refuse, routed, with_calls


@checked
async def confirm(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Wait for the answer and go on with it: run the call, run it changed, or refuse it.

    An answer that was given while no run waited for it is taken from the store. One that is given
    now is written there first. After anything that is no answer, the question is asked again.
    """
    settings, known = settings_of(runtime.context), [one["question"] for one in state["parked"]]
    question = next(one for one in known if one["id"] == state["resuming"])
    store, scope, resources = store_of(runtime), scope_of(config), resources_of(config)
    given = await approvals.answers(store, scope, state["parked"])
    decision = given.get(question["id"])
    if decision is None:
        tools = offered(state, config, settings)
        decision = await _asked(question, tools.get(question["tool"]), runtime, config)
    decision = await approvals.keep(store, scope, question["id"], decision, run=_run_of(config))
    now, by = resources.clock(), decision["by"]
    wakes = state["mode"] == "sleep"
    awake = woken(state, settings, now, "answer", f"{by} answered a question") if wakes else {}
    lines = [audit.of_answer(question, decision, tick=state["tick"])]
    if wakes:
        (change,) = awake["report"]["mode_changes"][-1:]
        lines.append(of_mode_change(change, origin=question["event_id"]))
    await audit.write(store, scope, lines, visit=audit.visit_of(state["loop"], "confirm"))
    return {**awake, **_decided(state, decision, config, settings, now.isoformat())}


async def _asked(
    question: Question,
    known: OfferedTool | None,
    runtime: Runtime[Settings],
    config: RunnableConfig,
) -> Decision:
    """The answer of a person. `interrupt` leaves the node until there is one.

    After a crash, a server repeats a run with the answer that the run brought. That one was for the
    question before this one, and LangGraph gives it again whenever the node is entered: such
    answers are counted in the store, and skipped.
    """
    store, scope, resources = store_of(runtime), scope_of(config), resources_of(config)
    place = str(config["configurable"]["checkpoint_ns"])
    skipped = await approvals.passed_over(store, scope, question["id"], place)
    problem: str | None = None
    number = 0
    while True:
        given = interrupt(approvals.form(question, problem))
        number += 1
        if number <= skipped:
            continue
        decision = approvals.decision_of(
            given, by=resources.user, at=resources.clock(), question=question["id"]
        )
        if isinstance(decision, str):
            problem = decision
        elif (problem := _problem(decision, question["tool"], known)) is not None:
            continue
        elif await approvals.answered(store, scope, _run_of(config)) in (None, question["id"]):
            return decision
        else:
            skipped = number
            await approvals.pass_over(store, scope, question["id"], place, number)


def _problem(decision: Decision, name: str, known: OfferedTool | None) -> str | None:
    if known is None and decision["decision"] != "refuse":
        return f"there is no tool {name} now: refuse, or answer once it is there again"
    if known is None or decision["args"] is None:
        return None
    wrong = misfit(known.tool, decision["args"])
    return f"the args do not fit {name}: {wrong}" if wrong else None


def _run_of(config: RunnableConfig) -> str | None:
    run = config.get("metadata", {}).get("run_id")
    return str(run) if run is not None else None


def _decided(
    state: State, decision: Decision, config: RunnableConfig, settings: Settings, now: str
) -> dict[str, Any]:
    loop, context, pattern = held(state["loop"]), held(state["context"]), held(state["pattern"])
    changed = _answered(state, open_calls(state["messages"]), decision)
    refused = [m for m in changed if isinstance(m, ToolMessage)]
    outcomes = [ToolOutcome(name=one.name or "", ok=False) for one in refused]
    going: Loop = {**loop, "decision": decision, "tools": [*loop["tools"], *outcomes]}
    tools = offered(state, config, settings)
    messages = merge_messages(state["messages"], changed)
    return {
        "context": {**context, "now": now, "front": assembly.retimed(context, now, settings.zone)},
        "messages": changed,
        "loop": routed(messages, going, pattern, tools, settings, state),
    }


def _answered(state: State, open_: list[ToolCall], decision: Decision) -> list[AnyMessage]:
    """The history's change: the call as it was edited, or the refusal as its answer.

    The calls behind a refused one were made in the belief that it would be done.
    """
    call, *behind = open_
    if decision["decision"] == "approve":
        return []
    if decision["decision"] == "edit":
        asked = next(m for m in reversed(state["messages"]) if isinstance(m, AIMessage))
        edited: ToolCall = {**call, "args": decision["args"] or {}}
        calls = [edited if one["id"] == call["id"] else one for one in asked.tool_calls]
        return [with_calls(asked, calls)]
    why = f": {decision['reason']}" if decision["reason"] else ""
    refused = refuse(
        [call],
        f"{decision['by']} refused it{why}",
        "It was not done. Do not ask for it again in other words; say so, and go on.",
    )
    dropped = refuse(
        behind,
        f"not run: {call['name']} before it was refused",
        "Call it again if it makes sense all the same.",
    )
    answers = (*refused.messages, *dropped.messages)
    return [
        marked(one.model_copy(update={"id": f"refused_{one.tool_call_id}"}), tick=state["tick"])
        for one in answers
    ]


@checked
async def park(state: State, runtime: Runtime[Settings], config: RunnableConfig) -> dict[str, Any]:
    """Ask the question of the first open call; the tick is not counted until it ends.

    A parked tick is committed with the parent's state: whatever comes meanwhile is answered first,
    and nothing of the tick is done or paid for twice. Its event stays in the inbox.
    """
    context, pattern, loop = held(state["context"]), held(state["pattern"]), held(state["loop"])
    now = resources_of(config).clock().isoformat()
    tools = offered(state, config, settings_of(runtime.context))
    question = _question(state, tools, now)
    mine = of_tick(state["messages"], state["tick"])
    waiting: Loop = {**loop, "dangerous": open_calls(mine)[0]["id"], "next": "confirm"}
    parked: ParkedTick = {
        "question": question,
        "event": state["event"],
        "classification": state["classification"],
        "assessment": held(state["assessment"]),
        "context": context,
        "pattern": pattern,
        "loop": waiting,
        "messages": messages_to_dict(mine),
    }
    asked = audit.of_question(question)
    visit = audit.visit_of(loop, "park")
    await audit.write(store_of(runtime), scope_of(config), [asked], visit=visit)
    report = state["report"]
    return {
        "parked": [*state["parked"], parked],
        "messages": [RemoveMessage(id=str(message.id)) for message in mine],
        "tick": state["tick"] - 1,
        # The next tick takes the number of this tick.
        "tool_cache": {k: v for k, v in state["tool_cache"].items() if v["scope"] != "tick"},
        "report": {**report, "questions": [*report["questions"], question]},
    }


def _question(state: State, tools: Mapping[str, OfferedTool], now: str) -> Question:
    call = open_calls(state["messages"])[0]
    event, args = state["event"], dict(call["args"])
    reason = args.pop("reasoning", None)
    shown = ", ".join(f"{key}={value!r:.200}" for key, value in args.items())
    others = list(tools[call["name"]].foreign(call["args"]))
    question: Question = {
        "id": approvals.question_id(event, now, call["name"], args),
        "tool": call["name"],
        "args": dict(call["args"]),
        "reason": str(reason) if reason else None,
        "what": f"Run {call['name']}({shown})",
        "difference": tools[call["name"]].difference(call["args"]),
        "event_id": event["id"] if event else None,
        "sender": event["sender"] if event else None,
        "asked_at": now,
    }
    return {**question, "rests_on": others} if others else question
