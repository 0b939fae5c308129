"""Open a tick, or resume a tick that waited for a person."""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.messages import messages_from_dict
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory.errors import StateError
from memory.messages import history_share, marked
from memory.records import Loop, ParkedTick
from memory.runtime import resources_of, settings_of
from memory.settings import Settings
from memory.state import Course, State, checked, kept_problem
from tools.policy import pattern_of


async def after_begin(state: Course) -> Literal["extract_facts", "confirm", "assemble_context"]:
    """A history that is too long is compacted first; a tick that waited goes on with its answer."""
    loop = state.get("loop")
    if loop is not None and loop["next"] == "confirm":
        return "confirm"
    forced = loop is not None and loop["compaction"] == "forced"
    return "extract_facts" if forced else "assemble_context"


@checked
async def begin_tick(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Start the loop's counters; the tick's number is the one after the last committed tick.

    A session that has no start yet starts here, so that the tick's tools can report it.
    """
    tick = state["tick"] + 1
    waited = [one for one in state["parked"] if one["question"]["id"] == state["resuming"]]
    if waited:
        # After an edit by hand a run may go on from here, past `intake`.
        problem = kept_problem({"parked": state["parked"]})
        if problem is not None:
            raise StateError(problem)
        return _resumed(waited[0], tick, settings_of(runtime.context))
    update: dict[str, Any] = {
        "tick": tick,
        "loop": _begun(state, settings_of(runtime.context)),
        "context": None,
        "exchange": [],
    }
    if state["metrics"]["session_start"] is None:
        start = resources_of(config).clock().isoformat()
        update["metrics"] = {**state["metrics"], "session_start": start}
    return update


def _begun(state: State, settings: Settings) -> Loop:
    share = history_share(state["messages"], state["calibration"], settings.max_context_tokens)
    full = settings.compact_enabled and share >= settings.compact_emergency_threshold
    return {
        "iteration": 0,
        "tools": [],
        "written": [],
        "llm_calls": 0,
        "tokens": 0,
        "reply": None,
        "overflowed": False,
        "compaction": "forced" if full and state["messages"] else "none",
        "next": "act",
        "ended": False,
        "dangerous": None,
        "decision": None,
        "raised": 0,
        "sent": [],
        "delegating": [],
        "prompt": {},
    }


def _resumed(parked: ParkedTick, tick: int, settings: Settings) -> dict[str, Any]:
    """The tick as it was put aside, at the end of the history, and numbered anew.

    Its pattern is composed anew: the settings may have become narrower.
    """
    context_type = parked["context"]["context_type"]
    return {
        "tick": tick,
        "messages": [marked(one, tick=tick) for one in messages_from_dict(parked["messages"])],
        "context": parked["context"],
        "assessment": parked["assessment"],
        "pattern": pattern_of(context_type, parked["assessment"], settings),
        "loop": parked["loop"],
        "exchange": [],
    }
