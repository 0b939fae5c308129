"""Report a failed night step; this run goes on without the night, the next run resumes it."""

from __future__ import annotations

import logging
from typing import Literal

from langgraph.errors import NodeError
from langgraph.types import Command

from memory import telemetry
from memory.records import FailureReport
from memory.state import State, checked, report_so_far
from nodes.tick import describe, kind_of, traced

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
