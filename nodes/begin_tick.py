"""Open a tick: count it, and see whether the history must be compacted before anything else."""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory.compaction import history_share
from memory.resources import resources_of, settings_of
from memory.settings import Settings
from memory.state import State
from memory.state_check import checked
from memory.tick import Loop


def emergency(state: State) -> Literal["extract_facts", "assemble_context"]:
    """The emergency check's way out (data-flow-01, section 2)."""
    loop = state.get("loop")
    forced = loop is not None and loop["compaction"] == "forced"
    return "extract_facts" if forced else "assemble_context"


@checked
async def begin_tick(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Start the loop's counters; the tick's number is the one after the last committed tick.

    A session that has no start yet starts here, so that the tick's tools can tell it.
    """
    settings = settings_of(runtime.context)
    share = history_share(state["messages"], state["calibration"], settings.max_context_tokens)
    full = settings.compact_enabled and share >= settings.compact_emergency_threshold
    loop: Loop = {
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
    }
    update: dict[str, Any] = {
        "tick": state["tick"] + 1,
        "loop": loop,
        "context": None,
        "exchange": [],
    }
    if state["metrics"]["session_start"] is None:
        start = resources_of(config).clock().isoformat()
        update["metrics"] = {**state["metrics"], "session_start": start}
    return update
