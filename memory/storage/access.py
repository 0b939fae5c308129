"""Reading and writing any LangGraph store: ours, one in memory, or a server's own.

`shelves` reads all records of one agent, a namespace at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple, NotRequired, Protocol, cast, runtime_checkable
from urllib.parse import unquote

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, Result, SearchItem
from typing_extensions import TypedDict, get_type_hints

from memory import records
from memory.errors import MemoryStoreError

PAGE = 1_000
"""Items to read at a time from a store that can only search."""


@runtime_checkable
class OwnStore(Protocol):
    """A store that lists, counts, looks and writes under free keys in one step, as ours do."""

    async def alist(
        self, namespace: tuple[str, ...], *, limit: int | None = None, newest_first: bool = False
    ) -> list[Item]:
        """The items of exactly this namespace, by key."""

    async def acount(self, prefix: tuple[str, ...], field: str | None = None) -> int:
        """The number of items in this namespace and below it, or of what their `field` lists."""

    async def acount_named(
        self, label: str, field: str, *, without: str, below: tuple[str, ...] = ()
    ) -> tuple[int, str | None]:
        """Namespaces below `below` that end in `label`: items without `without`, least `field`."""

    async def aput_new(self, puts: Sequence[PutOp]) -> list[dict[str, Any]]:
        """Put values under free keys, as one transaction; returns what is stored then, in order."""

    async def alook(
        self, gets: Sequence[GetOp], lists: Sequence[tuple[str, ...]]
    ) -> tuple[list[Item | None], list[list[Item] | None]]:
        """The items under the keys, and the items of each namespace; None if it has many."""


@cache
def _offers(kind: type[BaseStore]) -> bool:
    """Whether it is an OwnStore; `isinstance` looks for each method at every call."""
    return issubclass(kind, OwnStore)


async def read_ahead(
    store: BaseStore, lists: Sequence[tuple[str, ...]], gets: Sequence[GetOp] = ()
) -> BaseStore:
    """The store with these namespaces and keys read ahead; it knows what it writes, too.

    For one node's reads and writes: it does not see what others write meanwhile. The items that it
    wrote have no times.
    """
    if not _offers(type(store)):
        return store
    items, found = await cast(OwnStore, store).alook(gets, lists)
    known = {(op.namespace, op.key): item for op, item in zip(gets, items, strict=True)}
    short = {
        one: {item.key: item for item in there}
        for one, there in zip(lists, found, strict=True)
        if there is not None
    }
    return _ReadAhead(store, known, short)


class _ReadAhead(BaseStore):
    def __init__(
        self, store: Any, items: dict[Any, Item | None], lists: dict[Any, dict[str, Item]]
    ) -> None:
        self._store, self._items, self.lists = store, items, lists
        self._writes = 0

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        self._changed(ops)
        return list(self._store.batch(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        known = [self._known(op) for op in ops]
        asked = [op for op, there in zip(ops, known, strict=True) if not there]
        lists = self._changed(asked)
        writes = self._writes
        results = list(await self._store.abatch(asked) if asked else ())
        if writes == self._writes:
            self._learn(asked, results, lists)
        found = iter(results)
        return [there[0] if there else next(found) for there in known]

    async def alist(self, namespace: tuple[str, ...], **more: Any) -> list[Item]:
        if namespace not in self.lists:
            return list(await self._store.alist(namespace, **more))
        there = self.lists[namespace]
        keys = sorted(there, reverse=bool(more.get("newest_first")))
        return [there[key] for key in keys[: more.get("limit")]]

    async def aput_new(self, puts: Sequence[PutOp]) -> list[dict[str, Any]]:
        self._changed(puts)
        return list(await self._store.aput_new(puts))

    def _changed(self, ops: Sequence[Op]) -> dict[Any, dict[str, Item]]:
        """Know no longer what these operations write; returns the lists that they change."""
        changed = {}
        for op in ops:
            if isinstance(op, PutOp):
                self._writes += 1
                self._items.pop((op.namespace, op.key), None)
                if op.namespace in self.lists:
                    changed[op.namespace] = self.lists.pop(op.namespace)
        return changed

    def _learn(
        self, ops: Sequence[Op], results: Sequence[Result], lists: dict[Any, dict[str, Item]]
    ) -> None:
        """Know what these operations read and wrote. They read what was there before they wrote."""
        self.lists |= lists
        for op, item in zip(ops, results, strict=True):
            if isinstance(op, GetOp):
                self._items[op.namespace, op.key] = cast(Item | None, item)
        for op in ops:
            if isinstance(op, PutOp):
                written = _written(op)
                self._items[op.namespace, op.key] = written
                if (there := lists.get(op.namespace)) is not None:
                    there.pop(op.key, None)
                    there |= {op.key: written} if written else {}

    def _known(self, op: Op) -> tuple[Item | None] | None:
        """What a read of a key finds, in a tuple; None where that is not known."""
        if not isinstance(op, GetOp):
            return None
        if (there := self.lists.get(op.namespace)) is not None:
            return (there.get(op.key),)
        place = (op.namespace, op.key)
        return (self._items[place],) if place in self._items else None


_NO_TIME = datetime.min.replace(tzinfo=UTC)


def _written(op: PutOp) -> Item | None:
    if op.value is None:
        return None
    return Item(
        value=dict(op.value),
        key=op.key,
        namespace=op.namespace,
        created_at=_NO_TIME,
        updated_at=_NO_TIME,
    )


class ThreadedStore(BaseStore):
    """A store that knows blocking calls alone, such as SqliteStore: a batch runs in a thread."""

    def __init__(self, store: BaseStore) -> None:
        self._store = store

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """As the store's."""
        return self._store.batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same, in a thread."""
        return await asyncio.to_thread(self._store.batch, ops)


async def read_values(
    store: BaseStore, wanted: Mapping[tuple[str, ...], Iterable[str]]
) -> dict[tuple[str, ...], dict[str, Any]]:
    """The values there are, by namespace and key; `wanted`: namespace -> keys."""
    found: dict[tuple[str, ...], dict[str, Any]] = {namespace: {} for namespace in wanted}
    gets: list[GetOp] = []
    for namespace, keys in wanted.items():
        there = store.lists.get(namespace) if isinstance(store, _ReadAhead) else None
        if there is None:
            gets += [GetOp(namespace, key) for key in dict.fromkeys(keys)]
        else:
            found[namespace] = {key: there[key].value for key in keys if key in there}
    for start in range(0, len(gets), PAGE):
        some = gets[start : start + PAGE]
        for op, item in zip(some, await store.abatch(some), strict=True):
            if isinstance(item, Item):
                found[op.namespace][op.key] = item.value
    return found


async def list_items(
    store: BaseStore,
    namespace: tuple[str, ...],
    *,
    limit: int | None = None,
    newest_first: bool = False,
) -> list[Item]:
    """The items of exactly this namespace by key, the first `limit` of them.

    `newest_first`: by descending key; keys that begin with a time put the newest first.
    """
    if isinstance(store, _ReadAhead) or _offers(type(store)):
        return await cast(OwnStore, store).alist(namespace, limit=limit, newest_first=newest_first)
    found = {
        item.key: item for item in await _all_below(store, namespace) if item.namespace == namespace
    }
    ordered: list[Item] = [found[key] for key in sorted(found, reverse=newest_first)]
    return ordered if limit is None else ordered[:limit]


async def count_items(store: BaseStore, prefix: tuple[str, ...], field: str | None = None) -> int:
    """The number of items here and below, or of what their `field` lists; labels match whole."""
    if _offers(type(store)):
        return await cast(OwnStore, store).acount(prefix, field)
    found = await _all_below(store, prefix)
    return sum(len(one.value[field]) for one in found) if field else len(found)


async def count_named(
    store: BaseStore, label: str, field: str, *, without: str, below: tuple[str, ...] = ()
) -> tuple[int, str | None]:
    """Namespaces below `below` that end in `label`: items without `without`, least `field`."""
    if _offers(type(store)):
        return await cast(OwnStore, store).acount_named(label, field, without=without, below=below)
    found = [one for one in await namespaces_below(store, below) if one[-1] == label]
    listed = [await list_items(store, namespace) for namespace in found]
    values = [item.value for items in listed for item in items if without not in item.value]
    return len(values), min((str(one[field]) for one in values), default=None)


async def write_batch(store: BaseStore, puts: Sequence[PutOp]) -> None:
    """Write all of `puts` or none: a batch is one transaction of the store."""
    await store.abatch(puts)


async def write_new(store: BaseStore, puts: Sequence[PutOp]) -> list[dict[str, Any]]:
    """Write values under free keys and leave the others; returns the values then stored, in order.

    Of several writers at once, the first wins. A store that cannot insert in one step is never
    shared by our processes: only the one run of a thread writes to it.
    """
    if isinstance(store, _ReadAhead) or _offers(type(store)):
        return await cast(OwnStore, store).aput_new(puts)
    gets = [GetOp(op.namespace, op.key) for op in puts]
    found = await store.abatch(gets)
    await write_batch(store, [op for op, item in zip(puts, found, strict=True) if item is None])
    found = await store.abatch(gets)
    return [dict(item.value) for item in found if isinstance(item, Item)]


async def _all_below(store: BaseStore, prefix: tuple[str, ...]) -> list[SearchItem]:
    found: list[SearchItem] = []
    while page := await store.asearch(prefix, limit=PAGE, offset=len(found)):
        found += page
    return found


class _Id(TypedDict):
    id: str


class _Numbered(TypedDict):
    tick: int


FORMS: Mapping[tuple[str, int], Any] = {
    ("journal", 2): records.JournalEntry,
    ("pending", 1): _Id,
    ("archives", 1): _Id,
    ("links", 1): records.End,
    ("inbox", 1): records.InboxItem,
    ("set_aside", 1): records.InboxItem,
    ("handled", 1): records.HandledMark,
    ("tick_reports", 1): _Numbered,
    ("answers", 1): records.Decision,
    ("nights", 1): records.NightRecord,
    ("night", 2): records.PlanRecord,
    ("audit", 2): records.AuditEntry,
    ("entities", 1): records.EntityProfile,
    ("entity_names", 1): _Id,
    ("pages", 1): records.Page,
}
"""The form of a record, by its first label below the agent's, and the number of labels."""


def whole(namespace: tuple[str, ...], key: str, value: dict[str, Any]) -> dict[str, Any]:
    """`value`, a record as it was read. Raises MemoryStoreError if it lacks a field."""
    labels = namespace[2:]
    form = FORMS.get((labels[0], len(labels))) if labels else None
    if form is not None and not (required := _required(form)) <= value.keys():
        raise MemoryStoreError(
            f"the record {key} of {'/'.join(labels)} lacks {min(required - value.keys())!r}; "
            "restore the data from a backup"
        )
    return value


@cache
def _required(form: Any) -> frozenset[str]:
    hints = get_type_hints(form, include_extras=True).items()
    return frozenset(
        name for name, hint in hints if getattr(hint, "__origin__", None) is not NotRequired
    )


class Shelf(NamedTuple):
    """One namespace and its items, by key."""

    labels: tuple[str, ...]
    """Labels below `(user, thread)`, unescaped."""
    namespace: tuple[str, ...]
    items: list[Item]


async def namespaces_below(
    store: BaseStore, prefix: tuple[str, ...], depth: int | None = None
) -> list[tuple[str, ...]]:
    """Non-empty namespaces that begin with `prefix`, cut at `depth`, sorted."""
    found: set[tuple[str, ...]] = set()
    while page := await store.alist_namespaces(
        prefix=prefix, max_depth=depth, limit=PAGE, offset=len(found)
    ):
        found |= set(page)
        if len(page) < PAGE:
            break
    # Not every store matches a prefix label by label.
    return sorted(one for one in found if one[: len(prefix)] == prefix)


async def shelves(
    store: BaseStore, scope: records.Scope, kind: str | None = None
) -> AsyncIterator[Shelf]:
    """All namespaces with their items, one at a time, or those whose first label is `kind`."""
    for namespace in await namespaces_below(store, scope.namespace()):
        labels = tuple(map(unquote, namespace[2:]))
        if kind is None or labels[:1] == (kind,):
            yield Shelf(labels, namespace, await list_items(store, namespace))
