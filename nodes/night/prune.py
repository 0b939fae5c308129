"""Prune old journal entries of little importance (data-flow-03, section 4.4), without a model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from memory import journal
from memory import operations as citations
from memory.compaction import covered_events
from memory.night import (
    NightContext,
    Thought,
    night_in_hand,
    open_keys,
    open_words,
    plan,
    proceed,
    prunable,
)
from memory.records import JournalEntry, Operation
from memory.runtime import resources_of, scope_of
from memory.settings import Settings
from memory.state import State, checked


@checked
async def prune(state: State, runtime: Runtime[Settings], config: RunnableConfig) -> dict[str, Any]:
    """Plan which entries go; what any memory stands on stays."""
    context = await night_in_hand(state, runtime, config)
    await plan(context, "prune", [], partial(_think, context))
    return {"night": await proceed(context)}


async def anything_to_forget(
    store: BaseStore, state: State, settings: Settings, config: RunnableConfig
) -> bool:
    """Whether anything would go, asked before a night has begun."""
    now = resources_of(config).clock()
    entries = await journal.until(store, scope_of(config), now)
    return bool(await _going(entries, [], state, settings, config, store, now))


async def _think(context: NightContext) -> Thought:
    now, operations = datetime.fromisoformat(context.now), context.plans.operations()
    entries = context.entries_after(await journal.until(context.store, context.scope, now))
    going = await _going(
        entries,
        operations,
        context.state,
        context.settings,
        context.config,
        context.store,
        now,
        also=_cited_by(operations),
    )
    return Thought(operations=going)


def _cited_by(operations: Iterable[Operation]) -> set[str]:
    """The sources of the facts and entries that `operations` add."""
    added = [operation for operation in operations if operation["kind"].startswith("add_")]
    evidence = (id_ for one in added for id_ in (one["after"] or {}).get("evidence", []))
    return {*(id_ for one in added for id_ in one["sources"]), *evidence}


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
    """The entries to prune.

    `entries`: the journal after `operations`; `also`: ids that are cited outside of memory.
    """
    old = [one for one in entries if one["importance"] <= settings.prune_importance]
    if not old:
        return []
    cited = await citations.cited_ids(
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
