"""All records of one agent in a store, namespace by namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple
from urllib.parse import unquote

from langgraph.store.base import BaseStore, Item

from memory.scope import Scope
from memory.store_access import PAGE, list_items


class Shelf(NamedTuple):
    """One namespace and its items, by key."""

    labels: tuple[str, ...]
    """Labels below `(user, thread)`, unescaped."""
    namespace: tuple[str, ...]
    items: list[Item]


async def namespaces(store: BaseStore, scope: Scope) -> list[tuple[str, ...]]:
    """The agent's non-empty namespaces, sorted."""
    return await namespaces_below(store, scope.namespace())


async def namespaces_below(store: BaseStore, prefix: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Non-empty namespaces that begin with `prefix`, sorted."""
    found: set[tuple[str, ...]] = set()
    while page := await store.alist_namespaces(prefix=prefix, limit=PAGE, offset=len(found)):
        found |= set(page)
        if len(page) < PAGE:
            break
    # Not every store matches a prefix label by label.
    return sorted(one for one in found if one[: len(prefix)] == prefix)


async def shelves(store: BaseStore, scope: Scope, kind: str | None = None) -> AsyncIterator[Shelf]:
    """All namespaces with their items, or those whose first label is `kind`.

    Only one namespace at a time is in memory.
    """
    for namespace in await namespaces(store, scope):
        labels = tuple(map(unquote, namespace[2:]))
        if kind is None or labels[:1] == (kind,):
            yield Shelf(labels, namespace, await list_items(store, namespace))
