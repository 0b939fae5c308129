"""Everything that a store keeps of one agent, namespace by namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple
from urllib.parse import unquote

from langgraph.store.base import BaseStore, Item

from memory.scope import Scope
from memory.store_access import PAGE, list_items


class Shelf(NamedTuple):
    """The items of one namespace, by key."""

    labels: tuple[str, ...]
    """The namespace below `(user, thread)`, as `Scope.namespace` is given it."""
    namespace: tuple[str, ...]
    items: list[Item]


async def namespaces(store: BaseStore, scope: Scope) -> list[tuple[str, ...]]:
    """The agent's namespaces that hold anything, in order."""
    return await namespaces_below(store, scope.namespace())


async def namespaces_below(store: BaseStore, prefix: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The namespaces that begin with `prefix` and hold anything, in order."""
    found: set[tuple[str, ...]] = set()
    while page := await store.alist_namespaces(prefix=prefix, limit=PAGE, offset=len(found)):
        found |= set(page)
        if len(page) < PAGE:
            break
    # A prefix is matched label by label only by some stores.
    return sorted(one for one in found if one[: len(prefix)] == prefix)


async def shelves(store: BaseStore, scope: Scope, kind: str | None = None) -> AsyncIterator[Shelf]:
    """Every namespace with its items, or those whose first label is `kind`.

    One of them at a time is in memory.
    """
    for namespace in await namespaces(store, scope):
        labels = tuple(map(unquote, namespace[2:]))
        if kind is None or labels[:1] == (kind,):
            yield Shelf(labels, namespace, await list_items(store, namespace))
