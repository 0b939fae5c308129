"""Begin a night, or go on with the one that was not ended."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import journal, night
from memory.night_view import NightView, compaction_due
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
    record = await night.unfinished(store, scope)
    if record is None:
        record = await _set_out(state, runtime, config, settings)
    if record is None:
        now = resources_of(config).clock()
        notes = [*state["report"]["notes"], "Nothing to do tonight."]
        return {
            "night": {"id": None, "next": "hand_back"},
            "report": {**state["report"], "night": night.empty_report(now), "notes": notes},
            "phase": None,
        }
    view = await NightView.load(store, scope, record)
    return {"night": await view.onward(state, settings), "phase": record["phase"], "exchange": []}


async def _set_out(
    state: State, runtime: Runtime[Settings], config: RunnableConfig, settings: Settings
) -> NightRecord | None:
    """Open the record of a new night; None when nothing is pending and no compaction is due."""
    store, scope = store_of(runtime), scope_of(config)
    entries = await journal.pending(store, scope) if settings.memory_enabled else []
    if not entries and not compaction_due(state, settings):
        return None
    record = night.new_night(
        resources_of(config).clock(),
        [entry["id"] for entry in entries],
        await night.all_ids(store, scope),
    )
    await night.begin(store, scope, record)
    return record
