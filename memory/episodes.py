"""The journal entries that recall reads beside the facts: what no fact stands for."""

from __future__ import annotations

from langgraph.store.base import BaseStore

from memory import journal
from memory.records import JournalEntry
from memory.scope import Scope

ARCHIVES = 50
"""Archives of compactions that a tick's recall ranks: its work must not grow with the years."""


async def episodes(store: BaseStore, scope: Scope, *, everything: bool) -> list[JournalEntry]:
    """What no night has settled yet, and the archives of compactions, which no night settles.

    With `everything` all of them, else the newest: as many as a tick may read.
    """
    if everything:
        return [*await journal.pending(store, scope), *await journal.archives(store, scope)]
    archives = await journal.archives(store, scope, newest=ARCHIVES)
    return [*await journal.recent(store, scope), *archives]
