"""Close a tick: journal its event, note the conversation, report what was done."""

from __future__ import annotations

from typing import Any, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from memory import journal
from memory.apply import apply_operations
from memory.chat import text_only
from memory.operations import add_entry
from memory.records import Conversation, Event
from memory.reports import TickReport
from memory.resources import resources_of, scope_of, store_of
from memory.settings import Settings
from memory.state import HandledMark, State
from memory.state_check import checked

OPEN_CONVERSATIONS = 50
"""Working memory is bounded: the state is copied into every checkpoint."""


@checked
async def record(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Journal the event (no model call) and mark it handled.

    The mark is part of the state: the event leaves the inbox only once a checkpoint holds it.
    """
    event, context, loop, pattern = (
        state["event"],
        state["context"],
        state["loop"],
        state["pattern"],
    )
    assert context is not None
    assert loop is not None
    assert pattern is not None
    assessment = state["assessment"]
    assert assessment is not None
    written = await _journal(event, state, runtime, config) if event else []
    tick: TickReport = {
        "tick": state["tick"],
        "event_id": event["id"] if event else None,
        "context_type": context["context_type"],
        "pattern": pattern,
        "tools": loop["tools"],
        "llm_calls": loop["llm_calls"],
        "tokens": loop["tokens"],
        "reply": loop["reply"] or "",
        "written": [*written, *loop["written"]],
        "classification": state["classification"],
        "assessment": assessment,
        "context": {"used": 0, "limit": 1, "percentage": 0.0, "level": "normal"},
        "advice": "",
        "components": context["tokens"],
        "sent": loop["sent"],
        "duration_ms": 0,
    }
    report = state["report"]
    update: dict[str, Any] = {"report": {**report, "ticks": [*report["ticks"], tick]}}
    if event is not None:
        mark = HandledMark(id=event["id"], tick=state["tick"], at=context["now"])
        update["handled"] = [*state["handled"], mark]
        update["conversations"] = Overwrite(_conversations(state["conversations"], event))
        update |= _without_media(state, event)
    return update


def _without_media(state: State, event: Event) -> dict[str, Any]:
    """The model saw the event's images in its tick; from here on each checkpoint would copy them.

    The message keeps its id, and so its place in the history.
    """
    if "content" not in event:
        return {}
    mine = [m for m in state["messages"] if m.id == event["id"] and isinstance(m, HumanMessage)]
    shown = cast(Event, {key: value for key, value in event.items() if key != "content"})
    return {"messages": [text_only(message) for message in mine], "event": shown}


async def _journal(
    event: Event, state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> list[str]:
    return await apply_operations(
        [add_entry(journal.entry_in(state, event), "said to the agent")],
        store=store_of(runtime),
        semantic=resources_of(config).semantic,
        scope=scope_of(config),
    )


def _conversations(standing: dict[str, Conversation], event: Event) -> dict[str, Conversation]:
    """The event's conversation and the newest of the others, OPEN_CONVERSATIONS in all."""
    key = f"{event['sender']} @ {event['channel']}" if event["channel"] else event["sender"]
    mine: Conversation = {
        "entity": event["sender"],
        "channel": event["channel"],
        "last_event": event["id"],
        "last_at": event["at"],
        "pending_actions": [],
    }
    others = sorted(
        (item for item in standing.items() if item[0] != key), key=lambda item: item[1]["last_at"]
    )
    return dict([*others[max(0, len(others) + 1 - OPEN_CONVERSATIONS) :], (key, mine)])
