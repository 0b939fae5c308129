"""End the night: its steps, what it left, and the report."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from memory import audit, metrics, night
from memory.audit_nights import of_night
from memory.dreaming import budget
from memory.dreaming.pruning import stale
from memory.journal import by_time
from memory.models.naming import called
from memory.night_retention import reduce_old
from memory.night_view import NightView
from memory.records import NightRecord, NightStatus
from memory.resources import Resources, resources_of, scope_of, settings_of, store_of
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
    """Write the ended record and its line of the audit log, and put the report into the output.

    A preview leaves the agent as it is: awake or asleep, with its history and its conversations.
    A record that was ended by a visit whose checkpoint was lost stands as it is: what a person did
    with the night since holds, and one that was undone cuts no history.
    """
    settings, resources = settings_of(runtime.context), resources_of(config)
    view = await NightView.of(state, store_of(runtime), scope_of(config))
    if view.record["ended"] is None:
        await _end(view, state, settings, resources)
    record = view.record
    report = {**state["report"], "night": night.report_of(record, view.plans)}
    if record["dry_run"]:
        return {"report": report, "night": None}
    await reduce_old(view.store, view.scope, keep=settings.nights_kept)
    return {
        **(cut_as_planned(state, view, settings) if night.status_of(record) == "complete" else {}),
        "report": report,
        "phase": None,
        "night": None,
        "conversations": _open_still(state, settings, datetime.fromisoformat(record["started"])),
        **_session_over(state),
    }


async def _end(view: NightView, state: State, settings: Settings, resources: Resources) -> None:
    """Close the record, and tell the log of it, in one transaction."""
    now, model = resources.clock(), called(resources.chat_model)
    view.record = record = ended(view, settings, now.isoformat())
    operations = view.plans.operations()
    entry = of_night(record, operations, tick=state["tick"], model=model)
    metrics.NIGHTS.labels(night.status_of(record)).inc()
    metrics.NIGHT_OPERATIONS.inc(len(operations))
    puts = night.end_puts(view.scope, record)
    await audit.write(view.store, view.scope, [entry], visit=LAST, also=puts)


def ended(view: NightView, settings: Settings, now: str) -> NightRecord:
    """The record of the night at its end.

    Called away with work left and nothing used up that it may spend, it ends early, and complete.
    Why it stopped was written down when it did: what holds now may be something else.
    """
    record = view.record
    errors = [error for plan in view.plans for error in plan["errors"]]
    left = night.left_over(record, view.plans, settings)
    used_up = budget.used_up(view.plans, record, settings)
    held = record.get("status") == "held"
    status: NightStatus = "preview" if record["dry_run"] else "held" if held else "complete"
    return {
        **record,
        "ended": max(now, record["started"]),
        "held": [entry["id"] for entry in by_time(view.plans.pending())],
        "steps": night.step_lines(view.plans),
        "errors": errors,
        "stopped": night.stopped(record, view.plans, settings) if left else None,
        "status": status,
        "complete": not errors and not held and not (used_up and left),
    }


def _session_over(state: State) -> dict[str, Any]:
    """A session ends with the night (ruling 20); one that is applied by day leaves it as it is."""
    if state["mode"] == "awake":
        return {}
    return {"metrics": {**state["metrics"], "session_start": None}}


def _open_still(state: State, settings: Settings, now: datetime) -> Overwrite:
    """The conversations in which something was said of late (ruling 1)."""
    over = set(stale(state["conversations"], now=now, settings=settings))
    kept = {key: one for key, one in state["conversations"].items() if key not in over}
    return Overwrite(kept)
