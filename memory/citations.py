"""Citations: the ids that facts, observations, insights and links stand on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from langgraph.store.base import BaseStore

from memory import entities, links, profile_overlay
from memory.fact_changes import facts_after
from memory.operations import told
from memory.records import Fact, JournalEntry, Operation
from memory.scope import Scope
from memory.semantic import SemanticMemory


async def cited(
    ids: Collection[str],
    operations: Sequence[Operation],
    *,
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
) -> set[str]:
    """The ids of entries, events and facts that memory cites once `operations` are applied.

    Memories that are only linked are given as far as they are among `ids`.
    """
    operations = told(operations)
    stored = {fact["op"]: fact for fact in await semantic.all(scope)}
    facts = facts_after(stored, operations).values()
    profiles = {one["id"]: one for one in await entities.everyone(store, scope)}
    profiles = profile_overlay.after(profiles, {}, operations)[0]
    observed = (one for profile in profiles.values() for one in profile["observations"])
    added = (one["after"] for one in operations if one["kind"] == "add_entry")
    return {
        *(one for fact in facts for one in (*fact["source_entries"], *fact["source_events"])),
        *(one for observation in observed for one in observation["sources"]),
        *(one for entry in added for one in entry.get("evidence", ())),
        *await _linked(ids, operations, stored.values(), store, scope),
    }


async def _linked(
    ids: Collection[str],
    operations: Sequence[Operation],
    facts: Iterable[Fact],
    store: BaseStore,
    scope: Scope,
) -> set[str]:
    """Those of `ids` that are linked to anything once `operations` are applied."""
    known = {fact["op"]: fact["id"] for fact in facts}
    ends = links.after(await links.read(store, scope, ids), operations, known)
    return {id_ for id_ in ids if id_ in ends and ends[id_]["linked_to"]}


def stands_under(entry: JournalEntry, cited: Collection[str]) -> bool:
    """Whether the entry is cited, or the event whose words it holds."""
    of_event = entry["id"].startswith("event_")
    return entry["id"] in cited or (of_event and any(one in cited for one in entry["sources"]))
