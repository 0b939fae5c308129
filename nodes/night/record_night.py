"""End the night: its steps, what it left, and the report; or report its failure."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.errors import NodeError
from langgraph.runtime import Runtime
from langgraph.types import Command, Overwrite

from memory import audit, journal, night, telemetry
from memory.events import inbox
from memory.night import NightContext, briefing_of, items_left, night_in_hand, stale, stopped
from memory.records import FailureReport, NightRecord, NightStatus, Report
from memory.settings import Settings
from memory.state import State, checked, report_so_far
from memory.telemetry import called
from nodes.compaction import cut_as_planned
from nodes.tick import describe, kind_of, traced

LAST = 999
"""Orders the night's line in the audit log after its steps' lines of the same moment."""


@checked
async def record_night(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Write the ended record and its line of the audit log, and put the report into the output.

    A preview leaves the agent as it is: awake or asleep, with its history and its conversations.
    A record that an earlier visit ended, whose checkpoint was lost, stays as it is: a person may
    have decided about the night since. An undone night cuts no history.
    """
    context = await night_in_hand(state, runtime, config, entries=True)
    if context.record["ended"] is None:
        await _end(context)
    record, settings = context.record, context.settings
    report: Report = {**state["report"], "night": night.report_of(record, context.plans)}
    if record["dry_run"]:
        return {"report": report, "night": None}
    report["briefing"] = await briefing_of(
        context.store,
        context.resources.semantic,
        context.scope,
        state,
        settings,
        context.resources.clock(),
    )
    since = await night.reduce_old(context.store, context.scope, keep=settings.nights_kept)
    # A kept prompt has texts that nights removed, so it goes when they go for good.
    most = inbox.most_prompts(settings, context.resources.user)
    await inbox.drop_prompts(context.store, context.scope, most=most, since=since)
    over = {**state["metrics"], "session_start": None}
    return {
        **(cut_as_planned(context) if night.status_of(record) == "complete" else {}),
        "report": report,
        "phase": None,
        "night": None,
        "conversations": _open_still(state, settings, datetime.fromisoformat(record["started"])),
        # What was heard before the night began is in the journal.
        "context_buffer": [e for e in state["context_buffer"] if e["at"] > record["started"]],
        # The session ends with the night, unless the night is applied while awake.
        **({} if state["mode"] == "awake" else {"metrics": over}),
    }


async def _end(context: NightContext) -> None:
    """End the record and write its line of the audit log, in one transaction."""
    resources, operations = context.resources, context.plans.operations()
    now, model = resources.clock(), called(resources.chat_model)
    was_decided = night.status_of(context.record) == "approved"
    context.record = record = ended(context, now.isoformat())
    entry = audit.of_night(record, operations, model=model)
    telemetry.NIGHTS.labels(night.status_of(record)).inc()
    if not was_decided:  # Otherwise these were counted when the night ended for the first time.
        telemetry.NIGHT_SECONDS.observe(_seconds(record))
        telemetry.NIGHT_OPERATIONS.inc(len(operations))
    puts = night.end_puts(context.scope, record)
    await audit.write(context.store, context.scope, [entry], visit=LAST, also=puts)


def _seconds(record: NightRecord) -> float:
    began, end = (datetime.fromisoformat(record[key] or "") for key in ("started", "ended"))
    return (end - began).total_seconds()


def ended(context: NightContext, now: str) -> NightRecord:
    """The record of the night at its end.

    A night that was called away with work left, within its budget, ended early and is complete.
    """
    record, plans, settings = context.record, context.plans, context.settings
    errors = [error for plan in plans for error in plan["errors"]]
    left = {one: n for one in night.STEPS if (n := items_left(one, record, plans, settings))}
    ended_early = bool(left) or not plans.of("prune")
    used_up = night.used_up(plans, record, settings)
    held = record.get("status") == "held"
    status: NightStatus = "preview" if record["dry_run"] else "held" if held else "complete"
    return {
        **record,
        "ended": max(now, record["started"]),
        "held": [entry["id"] for entry in journal.by_time(plans.pending())],
        "steps": night.step_lines(plans),
        "errors": errors,
        "stopped": stopped(record, plans, settings) if ended_early else None,
        "left": left,
        "status": status,
        "complete": not errors and not held and not (used_up and ended_early),
    }


def _open_still(state: State, settings: Settings, now: datetime) -> Overwrite:
    over = set(stale(state["conversations"], now=now, settings=settings))
    kept = {key: one for key, one in state["conversations"].items() if key not in over}
    return Overwrite(kept)


log = logging.getLogger("circadian.night")


@checked
async def night_failed(state: State, error: NodeError) -> Command[Literal["intake"]]:
    """Report the failure. Nothing is lost, because the night's record is unfinished."""
    telemetry.NIGHTS.labels("failed").inc()
    log.error("the night stopped", exc_info=traced(error.error))
    failure: FailureReport = {
        "event_id": None,
        "error": f"the night stopped: {describe(error.error)}",
        "kind": kind_of(error.error),
        "attempts": 0,
        "set_aside": False,
    }
    report = report_so_far(state.get("report"))
    changed = {**report, "failures": [*report["failures"], failure]}
    return Command(update={"report": changed, "returning": True}, goto="intake")
