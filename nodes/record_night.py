"""End the night: its steps, what it held over, and the report."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import audit, night
from memory.audit_nights import of_night
from memory.models.naming import called
from memory.night_view import NightView
from memory.records import NightRecord
from memory.resources import resources_of, scope_of, store_of
from memory.settings import Settings
from memory.state import State
from memory.state_check import checked
from nodes.compact import cut_as_planned

LAST = 999
"""Where the clock stands still, a night's line stands behind those of its steps."""


@checked
async def record_night(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Write the ended record and its line of the audit log, and put the report into the output."""
    resources = resources_of(config)
    now = resources.clock().isoformat()
    view = await NightView.of(state, store_of(runtime), scope_of(config))
    errors = [error for plan in view.plans for error in plan["errors"]]
    record: NightRecord = {
        **view.record,
        "ended": max(now, view.record["started"]),
        "held": [entry["id"] for entry in night.unsettled(view.entries, view.plans)],
        "steps": night.step_lines(view.plans),
        "errors": errors,
        "complete": not errors,
    }
    operations = night.operations_of(view.plans)
    entry = of_night(record, operations, tick=state["tick"], model=called(resources.chat_model))
    puts = night.end_puts(view.scope, record)
    await audit.write(view.store, view.scope, [entry], visit=LAST, also=puts)
    return {
        **cut_as_planned(state, view),
        "report": {**state["report"], "night": night.report_of(record, view.plans)},
        "phase": None,
        "night": None,
        "metrics": {**state["metrics"], "session_start": None},
    }
