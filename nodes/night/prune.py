"""Prune old journal entries of little importance, and links to what is gone, without a model.

A score is a guess, so it takes no message away: an entry fades, which takes it out of prompts and
leaves it to be found when nothing fits better. The oldest faded entries are removed only if a
setting bounds their number. Entries that became facts, that anything cites, or that an open goal or
project refers to stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from memory import journal
from memory.compaction import covered_events
from memory.facts import Listing
from memory.journal import links, names_project
from memory.night import NightContext, Thought, night_in_hand, plan, proceed
from memory.operations import cited_ids
from memory.records import Goal, JournalEntry, Operation, Projects, mark_entry, prune_entry, unlink
from memory.runtime import resources_of, scope_of
from memory.settings import Settings
from memory.state import State, checked


@checked
async def prune(state: State, runtime: Runtime[Settings], config: RunnableConfig) -> dict[str, Any]:
    """Plan the entries that fade or go. Entries that any memory cites stay."""
    context = await night_in_hand(state, runtime, config)
    await plan(context, "prune", [], partial(_think, context))
    return {"night": await proceed(context)}


async def anything_to_forget(
    store: BaseStore, state: State, settings: Settings, config: RunnableConfig
) -> bool:
    """Whether a night would prune anything; asked before it begins."""
    now = resources_of(config).clock()
    entries = await _old(store, settings, config, now)
    return bool(await _going(entries, [], state, settings, config, store, now))


async def _think(context: NightContext) -> Thought:
    now, operations = datetime.fromisoformat(context.now), context.plans.operations()
    store, settings, config = context.store, context.settings, context.config
    old = await _old(store, settings, config, now)
    scored = await journal.read_many(store, context.scope, context.record["pending"])
    entries = context.entries_after(({one["id"]: one for one in old} | scored).values())
    going = await _going(entries, operations, context.state, settings, config, store, now)
    return Thought(operations=going)


async def _old(
    store: BaseStore, settings: Settings, config: RunnableConfig, now: datetime
) -> list[JournalEntry]:
    """The old entries of little importance, by the index: to read the journal takes too long."""
    semantic, scope = resources_of(config).semantic, scope_of(config)
    listing = Listing(
        {
            "kind": "episode",
            "importance": {"lte": settings.prune_importance},
            "valid_from": {"lt": _before(now, settings)},
        },
        lacks="faded" if settings.faded_kept is None else None,
    )
    rows, _ = await semantic.listed(scope, listing)
    found = await journal.read_many(store, scope, [row.payload["op"] for row in rows])
    return list(found.values())


def _before(now: datetime, settings: Settings) -> str:
    return (now - timedelta(days=settings.prune_days)).isoformat()


async def _going(
    entries: Sequence[JournalEntry],
    operations: Sequence[Operation],
    state: State,
    settings: Settings,
    config: RunnableConfig,
    store: BaseStore,
    now: datetime,
) -> list[Operation]:
    """The entries that fade or go. `entries`: old ones and the night's, after `operations`."""
    old = [one for one in entries if one["importance"] <= settings.prune_importance]
    if not old:
        return []
    cited = await cited_ids(
        old, operations, store=store, semantic=resources_of(config).semantic, scope=scope_of(config)
    )
    # Events of the current conversation may still be summarised, and then be cited.
    cited |= set(covered_events(state["messages"]))
    return prunable(
        old,
        cited=cited,
        open_projects=open_keys(state["projects"]),
        open_goals=open_words(state["goals"], state["projects"]),
        now=now,
        settings=settings,
    )


def prunable(
    entries: Iterable[JournalEntry],
    *,
    cited: Collection[str],
    open_projects: Collection[str],
    open_goals: str,
    now: datetime,
    settings: Settings,
) -> list[Operation]:
    """An operation for every entry that fades or, beyond the faded ones kept, goes; oldest first.

    `cited`: ids of entries and events under facts, insights, observations or links;
    `open_projects`: keys of unfinished projects; `open_goals`: the words of these and active goals.
    """
    before = _before(now, settings)
    words, kept = open_goals.casefold(), settings.faded_kept
    old = [
        entry
        for entry in entries
        if entry["timestamp"] < before
        and entry["importance"] <= settings.prune_importance
        and entry["consolidation"] not in ("consolidated", "exempt")
        and not (kept is None and entry["consolidation"] == "faded")
        and not _needed(entry, cited, open_projects, words)
    ]
    old.sort(key=lambda entry: (entry["timestamp"], entry["id"]))
    going = 0 if kept is None else max(0, len(old) - kept)
    why = f"importance <= {settings.prune_importance}, older than {settings.prune_days} days"
    removed = [prune_entry(entry, f"{why}; more than {kept} faded") for entry in old[:going]]
    fading = [entry for entry in old[going:] if entry["consolidation"] != "faded"]
    return [*removed, *(mark_entry(entry, "faded", why) for entry in fading)]


def _needed(
    entry: JournalEntry, cited: Collection[str], open_projects: Collection[str], goals: str
) -> bool:
    if entry["id"] in cited or any(source in cited for source in entry["sources"]):
        return True
    text, known = entry["content"], entry["related_projects"]
    if any(key in known or names_project(text, key) for key in open_projects):
        return True
    return entry["id"].casefold() in goals or any(
        source.casefold() in goals for source in entry["sources"] if len(source) > 3
    )


def open_words(goals: Mapping[str, Goal], projects: Projects) -> str:
    """The texts of all active goals and of the projects that are not completed."""
    words = [one["description"] for one in goals.values() if one["status"] == "active"]
    slots = (projects["slots"][key] for key in open_keys(projects))
    words += [text for one in slots for text in (one["summary"], one["context"])]
    return "\n".join(words)


def open_keys(projects: Projects) -> list[str]:
    """The keys of the projects that are not completed."""
    return [key for key, slot in projects["slots"].items() if slot["status"] != "completed"]


BATCH = 500
"""Journal ids read in one batch."""


@checked
async def prune_links(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Unlink the night's memories from memories that no longer exist."""
    context = await night_in_hand(state, runtime, config)
    await plan(context, "prune_links", [], partial(_unlinked_now, context))
    return {"night": await proceed(context)}


async def _unlinked_now(context: NightContext) -> Thought:
    """Only memories that this night names: to read all links takes too long."""
    operations = context.plans.operations()
    ops = sorted({*context.record.get("facts", []), *(one["target"] for one in operations)})
    facts = await context.resources.semantic.by_op(context.scope, ops)
    ids = {*context.record["pending"], *ops, *(fact["id"] for fact in facts.values())}
    ends = await links.read(context.store, context.scope, ids)
    ids = {*ends, *(other for end in ends.values() for other in end["linked_to"])}
    known = await _existing(context, ids) if ids else set()
    return Thought(operations=_unlinked(ends, known, context.now))


async def _existing(context: NightContext, ids: Collection[str]) -> set[str]:
    """Those of `ids` that are facts or journal entries; all, where the table of facts is lost."""
    known = {*await context.resources.semantic.by_id(context.scope, sorted(ids))}
    if not known and not await context.resources.semantic.count(context.scope):
        return set(ids)
    asked = sorted(id_ for id_ in ids if id_ not in known)
    for start in range(0, len(asked), BATCH):
        some = asked[start : start + BATCH]
        known |= (await journal.read_many(context.store, context.scope, some)).keys()
    return known


def _unlinked(ends: Mapping[str, links.End], known: Collection[str], night: str) -> list[Operation]:
    """An operation for each pair of linked ids with an id that is not in `known`."""
    pairs = {
        (min(one, other), max(one, other)): end["relations"].get(other, {})
        for one, end in ends.items()
        for other in end["linked_to"]
        if one not in known or other not in known
    }
    return [
        unlink(
            one,
            other,
            {
                "relation": value.get("relation", "made_of"),
                "reason": value.get("reason", ""),
                "created": value.get("at", night),
            },
            "its other end is gone",
        )
        for (one, other), value in sorted(pairs.items())
    ]
