"""Put the tick aside until a person has answered.

It is committed with the parent's state, so that whatever comes meanwhile is answered first, and
nothing of the tick is done or paid for twice. Its event stays in the inbox.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import RemoveMessage, messages_to_dict
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import audit
from memory.events import approvals
from memory.messages import of_tick, open_calls
from memory.records import Loop, ParkedTick, Question
from memory.runtime import resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import State, checked, held
from tools.execution import OfferedTool, offered


@checked
async def park(state: State, runtime: Runtime[Settings], config: RunnableConfig) -> dict[str, Any]:
    """Ask the question of the first open call; the tick is not counted until it ends."""
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
