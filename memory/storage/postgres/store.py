"""LangGraph's PostgreSQL store with whole batches, and with listings that need no paging."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from langgraph.store.base import GetOp, Item, ListNamespacesOp, Op, PutOp, Result, SearchOp
from langgraph.store.postgres.aio import AsyncPostgresStore
from psycopg.errors import DeadlockDetected, SerializationFailure
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb
from tenacity import retry, retry_if_exception, stop_after_attempt, wait_random

from memory.errors import consequence
from memory.storage.access import whole
from memory.storage.postgres.connections import (
    Pool,
    Shared,
    clear_errors,
    migrate,
    reading,
    transaction,
    unsure,
    write,
)

FEW = 200
"""Items of a namespace that `alook` reads."""

_SCHEMA = (
    # Byte order, whatever the database's locale.
    'CREATE INDEX circadian_store_keys ON store (prefix COLLATE "C", key COLLATE "C")',
    # Waiting events are counted over all agents; they are few among all items.
    "CREATE INDEX circadian_store_inboxes ON store (prefix) WHERE prefix LIKE '%.inbox'",
)

_PREFIX = 'prefix COLLATE "C"'

_ITEM = ("key", "value", "created_at", "updated_at")

_ROW = "prefix, key, value, created_at, updated_at"

_GET = f"""
SELECT {_ROW}, FALSE AS listed
FROM unnest(%b::text[], %b::text[]) AS wanted (prefix, key) JOIN store USING (prefix, key)
"""

_LIST = f"""
UNION ALL SELECT few.*, TRUE FROM unnest(%b::text[]) AS wanted (path) CROSS JOIN LATERAL (
    SELECT {_ROW} FROM store WHERE {_PREFIX} = path ORDER BY key COLLATE "C" LIMIT {FEW}
) AS few
"""

_PUT = """
WITH gone AS (
    DELETE FROM store USING unnest(%b::text[], %b::text[]) AS old (prefix, key)
    WHERE store.prefix = old.prefix AND store.key = old.key
)
INSERT INTO store (prefix, key, value, created_at, updated_at)
SELECT *, now(), now() FROM unnest(%b::text[], %b::text[], %b::jsonb[])
ON CONFLICT (prefix, key) DO UPDATE SET value = EXCLUDED.value, updated_at = EXCLUDED.updated_at
"""
"""One statement: a round trip costs more than the work."""

_PUT_NEW = """
INSERT INTO store (prefix, key, value) SELECT * FROM unnest(%b::text[], %b::text[], %b::jsonb[])
ON CONFLICT (prefix, key) DO NOTHING
"""


_again = retry(
    # A transaction was rolled back because it collided with another.
    retry=retry_if_exception(
        lambda error: isinstance(error.__cause__, DeadlockDetected | SerializationFailure)
    ),
    stop=stop_after_attempt(5),
    wait=wait_random(0.0, 0.1),
    reraise=True,
)


class _Look(NamedTuple):
    """Keys and namespaces that one caller reads."""

    gets: Sequence[GetOp]
    lists: Sequence[tuple[str, ...]]


_Looked = tuple[list[Item | None], list[list[Item] | None]]


@dataclass(eq=False)
class _Puts:
    """What one caller writes."""

    ops: Sequence[PutOp]
    sent: bool = False


class CircadianPostgresStore(AsyncPostgresStore):
    """A store in which a batch is one transaction: written as a whole or not at all.

    An item's time to live has no effect, as no sweeper runs. Raises DatabaseDown where the database
    cannot be reached, MemoryStoreError where it refuses.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self.pool = pool
        self._shared_looks, self._shared_puts = Shared(self._look), Shared(self._put)

    async def setup(self) -> None:
        """Make LangGraph's table, and add two indexes."""
        async with transaction(self.pool) as cursor:
            await migrate(cursor, "store_migrations", self.MIGRATIONS)
            await migrate(cursor, "circadian_store_migrations", _SCHEMA)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run the operations in one transaction. Reads see the store as it was before the puts."""
        ops = list(ops)
        gets = [op for op in ops if isinstance(op, GetOp)]
        if gets and len(gets) == len(ops):
            return [*(await self.alook(gets, ()))[0]]
        puts = [op for op in ops if isinstance(op, PutOp)]
        if puts and len(puts) == len(ops):
            await self._write(puts)
            return [None] * len(puts)
        return await self._whole(ops)

    async def alook(
        self, gets: Sequence[GetOp], lists: Sequence[tuple[str, ...]]
    ) -> tuple[list[Item | None], list[list[Item] | None]]:
        """The items under the keys, and those of each namespace; None for one with many.

        One statement reads all of it without a transaction: the base class begins one for any
        batch.
        """
        with clear_errors(self.pool.name):
            return await self._shared_looks(_Look(gets, lists))

    async def _look(self, asked: Sequence[_Look]) -> list[_Looked]:
        """What each of several looks finds, from one statement."""
        places = [[(".".join(op.namespace), op.key) for op in look.gets] for look in asked]
        lists = [[".".join(namespace) for namespace in look.lists] for look in asked]
        gets, paths = [*dict.fromkeys(chain(*places))], [*dict.fromkeys(chain(*lists))]
        found = dict[tuple[str, str], DictRow]()
        listed = {path: list[DictRow]() for path in paths}
        async with self.pool.cursor() as cursor:
            params = (*_columns(gets), *([paths] if paths else []))
            await cursor.execute(_GET + _LIST if paths else _GET, params)
            for row in await cursor.fetchall():
                if row["listed"]:
                    listed[row["prefix"]].append(row)
                else:
                    found[row["prefix"], row["key"]] = row
        few = {path: rows if len(rows) < FEW else None for path, rows in listed.items()}
        taken = set[int]()

        def item(row: DictRow) -> Item:
            # Each caller may change what it got.
            row = deepcopy(row) if id(row) in taken else row
            taken.add(id(row))
            return _item(tuple(row["prefix"].split(".")), row)

        def looked(gets: Sequence[tuple[str, str]], paths: Sequence[str]) -> _Looked:
            under = [found.get(place) for place in gets]
            shown = [few[path] for path in paths]
            return [item(row) if row else None for row in under], [
                None if rows is None else [item(row) for row in rows] for rows in shown
            ]

        return [*map(looked, places, lists)]

    async def _put(self, asked: Sequence[_Puts]) -> list[None]:
        """Write the puts of several callers by one statement."""
        params = _written([op for puts in asked for op in puts.ops])
        async with self.pool.cursor() as cursor:
            for puts in asked:
                puts.sent = True
            await cursor.execute(_PUT, params)
        return [None] * len(asked)

    @_again
    async def _write(self, ops: Sequence[PutOp]) -> None:
        puts = _Puts(ops)
        # Nobody knows whether a statement that got no answer was carried out.
        with clear_errors(self.pool.name, lambda: unsure() if puts.sent else consequence()):
            await self._shared_puts(puts)

    @_again
    async def _whole(self, ops: list[Op]) -> list[Result]:
        return await super().abatch(ops)

    async def _execute_batch(
        self, grouped_ops: Mapping[type, Any], results: list[Result], conn: object = None
    ) -> None:
        looks: dict[type, Callable[..., Awaitable[None]]] = {
            GetOp: self._batch_get_ops,
            SearchOp: self._batch_search_ops,
            ListNamespacesOp: self._batch_list_namespaces_ops,
        }
        async with transaction(self.pool) as cursor:
            if PutOp not in grouped_ops and len(results) > 1:
                # All reads see one state of the store, and no half of another batch.
                await cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            for kind, look in looks.items():
                if kind in grouped_ops:
                    await look(grouped_ops[kind], results, cursor)
            if PutOp in grouped_ops:
                await self._batch_put_ops(grouped_ops[PutOp], cursor)

    @_again
    async def aput_new(self, puts: Sequence[PutOp]) -> list[dict[str, Any]]:
        """Put values under free keys, as one transaction; returns what is stored then, in order."""
        ordered = sorted(puts, key=lambda op: (op.namespace, op.key))
        places = _columns([(".".join(op.namespace), op.key) for op in ordered])
        await write(self.pool, _PUT_NEW, (*places, [Jsonb(op.value) for op in ordered]))
        found, _ = await self.alook([GetOp(op.namespace, op.key) for op in puts], ())
        return [
            dict(op.value or {} if item is None else item.value)
            for op, item in zip(puts, found, strict=True)
        ]

    async def alist(
        self, namespace: tuple[str, ...], *, limit: int | None = None, newest_first: bool = False
    ) -> list[Item]:
        """The items of exactly this namespace by key, or by descending key."""
        order = "DESC" if newest_first else "ASC"
        rows = await self._rows(
            "SELECT key, value, created_at, updated_at FROM store"
            f' WHERE {_PREFIX} = %s ORDER BY key COLLATE "C" {order} LIMIT %s',
            *(".".join(namespace), limit),
        )
        return [_item(namespace, row) for row in rows]

    async def acount(self, prefix: tuple[str, ...], field: str | None = None) -> int:
        """The number of items in this namespace and below it, or of what their `field` lists."""
        path = ".".join(prefix)
        # All namespaces below it sort between "path." and "path/": "/" follows ".".
        where = f"{_PREFIX} = %s OR ({_PREFIX} > %s AND {_PREFIX} < %s)" if prefix else "TRUE"
        params = [path, f"{path}.", f"{path}/"] if prefix else []
        what = "sum(jsonb_array_length(value -> %s))" if field else "count(*)"
        query = f"SELECT {what} AS items FROM store WHERE {where}"
        [row] = await self._rows(query, *([field] if field else []), *params)
        return int(row["items"] or 0)

    async def acount_named(
        self, label: str, field: str, *, without: str, below: tuple[str, ...] = ()
    ) -> tuple[int, str | None]:
        """Namespaces below `below` that end in `label`: items without `without`, least `field`."""
        path = ".".join(below)
        where = f" AND {_PREFIX} > %s AND {_PREFIX} < %s" if below else ""
        [row] = await self._rows(
            'SELECT count(*) AS count, min((value ->> %s) COLLATE "C") AS least FROM store'
            f" WHERE prefix LIKE %s AND NOT value ? %s{where}",
            *(field, f"%.{label}", without, *((f"{path}.", f"{path}/") if below else ())),
        )
        return row["count"], row["least"]

    async def aclose(self) -> None:
        """End the batching task, which may roll a batch back. The pool stays open."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _rows(self, query: str, *params: object) -> list[DictRow]:
        async with reading(self.pool) as cursor:
            await cursor.execute(query, params)
            return await cursor.fetchall()


def _written(ops: Sequence[PutOp]) -> tuple[list[Any], ...]:
    """The parameters of _PUT: of several puts under one key the last counts."""
    last = {(".".join(op.namespace), op.key): op for op in ops}
    # In a fixed order, so that two batches seldom deadlock.
    gone = sorted(place for place, op in last.items() if op.value is None)
    kept = sorted(last.keys() - gone)
    return *_columns(gone), *_columns(kept), [Jsonb(last[place].value) for place in kept]


def _columns(places: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [prefix for prefix, _ in places], [key for _, key in places]


def _item(namespace: tuple[str, ...], row: dict[str, Any]) -> Item:
    whole(namespace, row["key"], row["value"])
    return Item(namespace=namespace, **{name: row[name] for name in _ITEM})
