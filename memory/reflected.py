"""How much happened since insights were last stored: what a reflection waits for (ruling 2)."""

from __future__ import annotations

from typing import cast

from langgraph.store.base import BaseStore

from memory import journal, journal_days
from memory.apply import REFLECTION
from memory.records import JournalEntry
from memory.scope import Scope


async def last_reflection(store: BaseStore, scope: Scope) -> str | None:
    """When insights were stored last."""
    item = await store.aget(scope.namespace(REFLECTION), "last")
    return cast(str, item.value["at"]) if item else None


async def counted_entries(store: BaseStore, scope: Scope, since: str | None) -> list[JournalEntry]:
    """The entries after `since` that count: insights, archives and self entries do not."""
    entries = await journal_days.since(store, scope, since)
    return [entry for entry in entries if journal.counts(entry)]


async def cumulative_importance(store: BaseStore, scope: Scope) -> int:
    """The summed importance of the entries since insights were stored, each once."""
    entries = await counted_entries(store, scope, await last_reflection(store, scope))
    return sum(entry["importance"] for entry in entries)
