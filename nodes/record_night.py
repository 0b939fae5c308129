"""End the night: its steps, what it held over, and the report."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import night
from memory.night_view import NightView
from memory.records import NightRecord
from memory.resources import resources_of, scope_of, store_of
from memory.settings import Settings
from memory.state import State
from memory.state_check import checked
from nodes.compact import cut_as_planned


@checked
async def record_night(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Write the ended record and put the report into the output."""
    now = resources_of(config).clock()
    view = await NightView.of(state, store_of(runtime), scope_of(config))
    errors = [error for plan in view.plans for error in plan["errors"]]
    record: NightRecord = {
        **view.record,
        "ended": max(now.isoformat(), view.record["started"]),
        "held": [entry["id"] for entry in night.unsettled(view.entries, view.plans)],
        "steps": night.step_lines(view.plans),
        "errors": errors,
        "complete": not errors,
    }
    await night.end(view.store, view.scope, record)
    return {
        **cut_as_planned(state, view),
        "report": {**state["report"], "night": night.report_of(record, view.plans)},
        "phase": None,
        "night": None,
        "metrics": {**state["metrics"], "session_start": None},
    }
