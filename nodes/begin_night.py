"""Begin a night, or go on with the one that was not ended."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import journal, night
from memory.night_view import NightView, compaction_due
from memory.nightwork import work_waits
from memory.records import NightRecord
from memory.resources import resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import State
from memory.state_check import checked


def next_in_night(state: State) -> str:
    """The node that `memory.night.next_step` chose."""
    cursor = state.get("night")
    return cursor["next"] if cursor else "hand_back"


@checked
async def begin_night(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Fix what the night works on. With nothing to do no record is made and no model called."""
    settings = settings_of(runtime.context)
    store, scope = store_of(runtime), scope_of(config)
    preview = await night.preview_wanted(store, scope)
    record = await night.unfinished(store, scope)
    if record is None:
        record = await _set_out(state, runtime, config, settings, dry_run=preview)
        if preview:
            await night.unwant_preview(store, scope)
    if record is None:
        nothing = night.empty_report(resources_of(config).clock(), dry_run=preview)
        notes = [*state["report"]["notes"], "Nothing to do tonight."]
        return {
            "night": {"id": None, "next": "hand_back"},
            "report": {**state["report"], "night": nothing, "notes": notes},
            **({} if preview else {"phase": None}),
        }
    view = await NightView.load(store, scope, record)
    phase = {} if record["dry_run"] else {"phase": record["phase"]}
    return {"night": await view.onward(state, settings), "exchange": [], **phase}


async def _set_out(
    state: State,
    runtime: Runtime[Settings],
    config: RunnableConfig,
    settings: Settings,
    *,
    dry_run: bool,
) -> NightRecord | None:
    """Open the record of a new night; None when there is nothing for one to do."""
    store, scope = store_of(runtime), scope_of(config)
    now = resources_of(config).clock()
    entries = await journal.pending(store, scope) if settings.memory_enabled else []
    if not (
        entries
        or compaction_due(state, settings)
        or await work_waits(state, store, scope, settings, now)
    ):
        return None
    record = night.new_night(
        now,
        [entry["id"] for entry in entries],
        await night.all_ids(store, scope),
        dry_run=dry_run,
    )
    await night.begin(store, scope, record)
    return record
