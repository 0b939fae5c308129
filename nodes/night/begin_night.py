"""Begin a night, or resume the unfinished one."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import journal, night
from memory.night import account, compaction_due, in_context, proceed, work_waits
from memory.records import JournalEntry, NightRecord
from memory.runtime import resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import Course, State, checked
from memory.storage import write_batch
from nodes.night.prune import anything_to_forget


async def next_in_night(state: Course) -> str:
    """Route to the node that the previous step chose."""
    cursor = state.get("night")
    return cursor["next"] if cursor else "hand_back"


@checked
async def begin_night(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Fix what the night works on. With nothing to do there is no record and no model call."""
    store, scope = store_of(runtime), scope_of(config)
    preview = await night.preview_wanted(store, scope)
    record = await night.unfinished(store, scope)
    if record is None:
        record = await _new(state, runtime, config, dry_run=preview)
        if preview:
            await night.unwant_preview(store, scope)
    if record is None:
        return _nothing_to_do(state, config, preview=preview)
    context = await in_context(state, runtime, config, record)
    phase = {} if record["dry_run"] else {"phase": record["phase"]}
    return {"night": await proceed(context), "exchange": [], **phase}


def _nothing_to_do(state: State, config: RunnableConfig, *, preview: bool) -> dict[str, Any]:
    nothing = night.empty_report(resources_of(config).clock(), dry_run=preview)
    notes = [*state["report"]["notes"], "Nothing to do tonight."]
    return {
        "night": {"id": None, "next": "hand_back"},
        "report": {**state["report"], "night": nothing, "notes": notes},
        **({} if preview else {"phase": None}),
    }


async def _new(
    state: State, runtime: Runtime[Settings], config: RunnableConfig, *, dry_run: bool
) -> NightRecord | None:
    """The record of a new night, which is written; None if there is nothing to do."""
    store, scope, settings = store_of(runtime), scope_of(config), settings_of(runtime.context)
    entries = await journal.pending(store, scope) if settings.memory_enabled else []
    if not await _anything_to_do(entries, state, runtime, config):
        return None
    pending, earlier = [entry["id"] for entry in entries], await night.records(store, scope)
    asked = dry_run or state["slumber"]["why"] == "request"
    budget = account(earlier, pending, settings, asked=asked)
    taken = [record["id"] for record in earlier]
    record = night.new_night(resources_of(config).clock(), pending, taken, dry_run=dry_run)
    record = {**record, "calls": budget.calls, "ahead": budget.ahead}
    await write_batch(store, night.begin_puts(scope, record))
    return record


async def _anything_to_do(
    entries: list[JournalEntry], state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> bool:
    store, scope, settings = store_of(runtime), scope_of(config), settings_of(runtime.context)
    if entries or compaction_due(state, settings):
        return True
    now = resources_of(config).clock()
    if await work_waits(state, store, scope, settings, now):
        return True
    return await anything_to_forget(store, state, settings, config)
