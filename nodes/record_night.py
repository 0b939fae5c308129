"""End the night: its steps, what it held over, and the report."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import audit, night
from memory.models.naming import called
from memory.night_view import NightView
from memory.records import NightRecord
from memory.resources import Resources, resources_of, scope_of, store_of
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
    """Write the ended record, tell of it in the audit log, and put the report into the output.

    The night closes last: one that is gone on with after a crash here has ended when it had, and
    is told once.
    """
    resources = resources_of(config)
    view = await NightView.of(state, store_of(runtime), scope_of(config))
    errors = [error for plan in view.plans for error in plan["errors"]]
    record: NightRecord = {
        **view.record,
        "ended": view.record["ended"] or _now(resources, view.record),
        "held": [entry["id"] for entry in night.unsettled(view.entries, view.plans)],
        "steps": night.step_lines(view.plans),
        "errors": errors,
        "complete": not errors,
    }
    operations = night.operations_of(view.plans)
    entry = audit.of_night(
        record, operations, tick=state["tick"], model=called(resources.chat_model)
    )
    head = night.record_put(view.scope, record)
    await audit.write(view.store, view.scope, [entry], visit=LAST, also=[head])
    await night.end(view.store, view.scope, record)
    return {
        **cut_as_planned(state, view),
        "report": {**state["report"], "night": night.report_of(record, view.plans)},
        "phase": None,
        "night": None,
        "metrics": {**state["metrics"], "session_start": None},
    }


def _now(resources: Resources, record: NightRecord) -> str:
    """Now, and not before the night began, wherever the clock was set to since."""
    return max(resources.clock().isoformat(), record["started"])
