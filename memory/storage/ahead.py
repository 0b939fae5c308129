"""Reads that are done together beforehand: one call of the store in place of many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, Result

Namespace = tuple[str, ...]


class Found(NamedTuple):
    """What a store has under some keys and in some namespaces."""

    items: dict[tuple[Namespace, str], Item | None]
    lists: dict[Namespace, list[Item]]
    """By key. A namespace with many items is left out."""
    counts: dict[Namespace, int]
    """Of a namespace and below it; many are left out."""


@runtime_checkable
class LookingStore(Protocol):
    """A store that reads all of this in one step, as ours in SQLite does."""

    async def alook(
        self, gets: Sequence[GetOp], lists: Sequence[Namespace], counts: Sequence[Namespace]
    ) -> Found:
        """What is there."""
        ...


async def read_ahead(
    store: BaseStore,
    *,
    gets: Sequence[GetOp] = (),
    lists: Sequence[Namespace] = (),
    counts: Sequence[Namespace] = (),
) -> BaseStore:
    """The store, with these reads done. One that has done some already, or cannot do
    them in one step, is given back.
    """
    if isinstance(store, _ReadAhead) or not isinstance(store, LookingStore):
        return store
    return _ReadAhead(store, await store.alook(gets, lists, counts))


class _ReadAhead(BaseStore):
    """A store that remembers some reads until the first write."""

    def __init__(self, store: Any, found: Found) -> None:
        self._store, self._found = store, found

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """As the store's."""
        self._forget()
        found: list[Result] = self._store.batch(ops)
        return found

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As the store's; nothing is asked where all is remembered."""
        ops = list(ops)
        if any(isinstance(op, PutOp) for op in ops):
            self._forget()
        gets = [op for op in ops if isinstance(op, GetOp) and self._knows(op)]
        if len(gets) == len(ops):
            return [self._item(op) for op in gets]
        found: list[Result] = await self._store.abatch(ops)
        return found

    async def alist(
        self, namespace: Namespace, *, limit: int | None = None, newest_first: bool = False
    ) -> list[Item]:
        """As the store's."""
        known = self._found.lists.get(namespace)
        if known is None:
            found: list[Item] = await self._store.alist(
                namespace, limit=limit, newest_first=newest_first
            )
            return found
        return (known[::-1] if newest_first else known)[:limit]

    async def acount(self, prefix: Namespace) -> int:
        """As the store's."""
        known = self._found.counts.get(prefix)
        return int(await self._store.acount(prefix)) if known is None else known

    async def aput_new(self, puts: Sequence[PutOp]) -> list[dict[str, Any]]:
        """As the store's."""
        self._forget()
        stored: list[dict[str, Any]] = await self._store.aput_new(puts)
        return stored

    async def acount_named(self, label: str, *, without: str) -> int:
        """As the store's."""
        return int(await self._store.acount_named(label, without=without))

    async def aleast_named(self, label: str, field: str, *, without: str) -> str | None:
        """As the store's."""
        found: str | None = await self._store.aleast_named(label, field, without=without)
        return found

    def _forget(self) -> None:
        self._found = Found({}, {}, {})

    def _knows(self, op: GetOp) -> bool:
        return op.namespace in self._found.lists or (op.namespace, op.key) in self._found.items

    def _item(self, op: GetOp) -> Item | None:
        if op.namespace in self._found.lists:
            there = self._found.lists[op.namespace]
            return next((item for item in there if item.key == op.key), None)
        return self._found.items[op.namespace, op.key]
