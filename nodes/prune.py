"""Forget old entries of little importance (data-flow-03, section 4.4). No model is asked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from memory import citations, journal_days
from memory.compaction import covered_events
from memory.dreaming.pruning import open_keys, open_words, prunable
from memory.night_view import NightView, Thought
from memory.records import JournalEntry, Operation
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


async def anything_to_forget(
    store: BaseStore, state: State, settings: Settings, config: RunnableConfig
) -> bool:
    """Whether anything would go, asked before a night has begun."""
    now = resources_of(config).clock()
    entries = await journal_days.until(store, scope_of(config), now)
    return bool(await _going(entries, [], state, settings, config, store, now))


async def _forgotten(
    view: NightView, state: State, settings: Settings, config: RunnableConfig
) -> list[Operation]:
    now = datetime.fromisoformat(view.record["started"])
    entries = view.entries_after(await journal_days.until(view.store, view.scope, now))
    return await _going(
        entries,
        view.plans.operations(),
        state,
        settings,
        config,
        view.store,
        now,
        also=view.cited(),
    )


async def _going(
    entries: Sequence[JournalEntry],
    operations: Sequence[Operation],
    state: State,
    settings: Settings,
    config: RunnableConfig,
    store: BaseStore,
    now: datetime,
    *,
    also: Collection[str] = (),
) -> list[Operation]:
    """`entries`: the journal with what `operations` change; `also`: what is cited beside memory."""
    old = [one for one in entries if one["importance"] <= settings.prune_importance]
    if not old:
        return []
    cited = await citations.cited(
        {one["id"] for one in old},
        operations,
        store=store,
        semantic=resources_of(config).semantic,
        scope=scope_of(config),
    )
    cited |= set(also)
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
