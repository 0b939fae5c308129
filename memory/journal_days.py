"""Journal entries before and after a moment."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import cast

from langgraph.store.base import BaseStore

from memory.journal import by_time, days
from memory.records import JournalEntry
from memory.scope import Scope
from memory.store_access import list_items


async def since(store: BaseStore, scope: Scope, after: str | None) -> list[JournalEntry]:
    """Entries later than `after` (ISO 8601; None: all), oldest first."""
    wanted = [day for day in await days(store, scope) if after is None or day >= _day(after)]
    found = await _of_days(store, scope, wanted)
    return by_time(entry for entry in found if after is None or entry["timestamp"] > after)


async def until(store: BaseStore, scope: Scope, now: datetime) -> list[JournalEntry]:
    """Entries up to `now`, oldest first."""
    wanted = [day for day in await days(store, scope) if day <= _day(now.isoformat())]
    return by_time(await _of_days(store, scope, wanted))


async def _of_days(store: BaseStore, scope: Scope, wanted: Iterable[str]) -> list[JournalEntry]:
    return [
        cast(JournalEntry, item.value)
        for day in wanted
        for item in await list_items(store, scope.namespace("journal", day))
    ]


def _day(timestamp: str) -> str:
    return timestamp[:10].replace("-", "")
