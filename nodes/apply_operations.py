"""Apply a phase of the night: all its operations, idempotently and in order, then the mark."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import apply, night, night_batches
from memory.night_view import NightView, Thought
from memory.nightwork import work_of
from memory.records import NightRecord
from memory.resources import Resources, resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import State
from memory.state_check import checked


@checked
async def apply_operations(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Make the phase's operations so. Visited when compacting is complete, and when dreaming is.

    What the record says to be applied already was, by a visit whose checkpoint was lost. In a
    preview nothing is applied but the mark, which is the preview's own.
    """
    settings = settings_of(runtime.context)
    view = await NightView.of(state, store_of(runtime), scope_of(config))
    phase, dry = view.record["phase"], view.record["dry_run"]
    again = phase in view.record["applied"]
    lost = phase == "dreaming" and state["phase"] == "compacting" and not dry
    if not again and not lost:
        await _apply(view, settings, resources_of(config))
    done = "dreaming" in view.record["applied"]
    return {
        "night": await view.onward(state, settings, compaction_done=done),
        **({} if dry else {"phase": "dreaming"}),
    }


async def _apply(view: NightView, settings: Settings, resources: Resources) -> None:
    """All operations of the record's phase, and with them the mark that it is applied."""
    phase = view.record["phase"]
    if phase == "compacting" and view.record.get("status") != "approved":
        await _settle_unimportant(view, settings.min_importance)
        view.record = {**view.record, **await work_of(view, resources.semantic, settings)}
    marked: NightRecord = {
        **view.record,
        "applied": [*view.record["applied"], phase],
        "phase": "dreaming",
    }
    view.record = marked
    if marked["dry_run"]:
        await night.keep(view.store, view.scope, marked)
        return
    await apply.apply_operations(
        view.plans.operations(phase),
        store=view.store,
        semantic=resources.semantic,
        scope=view.scope,
        also=[night.record_put(view.scope, marked)],
    )


async def _settle_unimportant(view: NightView, min_importance: int) -> None:
    """Plan the marks of entries that were scored below the threshold."""
    marks = night_batches.below_threshold(view.plans, min_importance)
    if marks:

        async def think() -> Thought:
            return Thought(operations=marks)

        await view.plan("settle", [mark["target"] for mark in marks], think)
