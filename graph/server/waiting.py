"""How many events wait in the inboxes of all agents."""

from __future__ import annotations

from langgraph.store.base import BaseStore

from memory.inbox import INBOX
from memory.store_access import PAGE, count_items


async def events_waiting(store: BaseStore) -> int:
    """The sum over all agents."""
    total = offset = 0
    while True:
        found = await store.alist_namespaces(suffix=(INBOX,), limit=PAGE, offset=offset)
        for namespace in found:
            total += await count_items(store, namespace)
        if len(found) < PAGE:
            return total
        offset += len(found)
