"""Apply a phase of the night: its operations in order, idempotently, and last the mark."""

from __future__ import annotations

from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import night
from memory.night import (
    NightContext,
    below_threshold,
    night_in_hand,
    plan,
    proceed,
    thought_of,
    work_of,
)
from memory.operations import apply
from memory.records import NightRecord
from memory.settings import Settings
from memory.state import State, checked


@checked
async def apply_operations(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Apply the phase's operations. Visited when compacting is complete, and when dreaming is.

    A phase that the record marks as applied was applied by a visit whose checkpoint was lost. A
    preview applies nothing; it only marks its own record.
    """
    context = await night_in_hand(state, runtime, config)
    phase, dry = context.record["phase"], context.record["dry_run"]
    again = phase in context.record["applied"]
    lost = phase == "dreaming" and state["phase"] == "compacting" and not dry
    if not again and not lost:
        await _apply(context)
    done = "dreaming" in context.record["applied"]
    return {
        "night": await proceed(context, compaction_done=done),
        **({} if dry else {"phase": "dreaming"}),
    }


async def _apply(context: NightContext) -> None:
    """Apply the operations of the record's phase and, with them, mark it as applied."""
    phase = context.record["phase"]
    if phase == "compacting" and context.record.get("status") != "approved":
        await _settle_unimportant(context)
        context.record = {**context.record, **await work_of(context)}
    marked: NightRecord = {
        **context.record,
        "applied": [*context.record["applied"], phase],
        "phase": "dreaming",
    }
    context.record = marked
    if marked["dry_run"]:
        await night.keep(context.store, context.scope, marked)
        return
    await apply.apply_operations(
        context.plans.operations(phase),
        store=context.store,
        semantic=context.resources.semantic,
        scope=context.scope,
        also=[night.record_put(context.scope, marked)],
    )


async def _settle_unimportant(context: NightContext) -> None:
    """Plan the marks of entries that were scored below the threshold."""
    marks = below_threshold(context.plans, context.settings.min_importance)
    if marks:
        await plan(context, "settle", [one["target"] for one in marks], partial(thought_of, marks))
