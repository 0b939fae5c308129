"""Forget old entries of little importance (data-flow-03, section 4.4). No model is asked."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import citations, journal_days
from memory.compaction import covered_events
from memory.dreaming.pruning import open_keys, open_words, prunable
from memory.night_batches import operations_of
from memory.night_view import NightView, Thought
from memory.records import Operation
from memory.resources import resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import State
from memory.state_check import checked


@checked
async def prune(state: State, runtime: Runtime[Settings], config: RunnableConfig) -> dict[str, Any]:
    """Plan what goes; what anything is founded on stays."""
    settings = settings_of(runtime.context)
    view = await NightView.of(state, store_of(runtime), scope_of(config))

    async def think() -> Thought:
        return Thought(operations=await _forgotten(view, state, settings, config))

    await view.plan("prune", [], think)
    return {"night": await view.onward(state, settings)}


async def _forgotten(
    view: NightView, state: State, settings: Settings, config: RunnableConfig
) -> list[Operation]:
    now = datetime.fromisoformat(view.record["started"])
    entries = view.entries_after(await journal_days.until(view.store, view.scope, now))
    old = [one for one in entries if one["importance"] <= settings.prune_importance]
    if not old:
        return []
    ids = {one["id"] for one in old}
    cited = await citations.cited(
        ids,
        operations_of(view.plans),
        store=view.store,
        semantic=resources_of(config).semantic,
        scope=view.scope,
    )
    cited |= view.cited()
    cited |= {one for entry in entries for one in entry.get("evidence", ())}
    # What the conversation still shows may yet be noticed, or summarised, and then be cited.
    cited |= set(covered_events(state["messages"]))
    return prunable(
        old,
        cited=cited,
        open_projects=open_keys(state["projects"]),
        open_goals=open_words(state["goals"], state["projects"]),
        now=now,
        settings=settings,
    )
