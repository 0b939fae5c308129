"""LangGraph's PostgreSQL store with whole batches, and with listings that need no paging."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from langgraph.store.base import GetOp, Item, Op, PutOp, Result
from langgraph.store.postgres.aio import AsyncPostgresStore
from psycopg.errors import DeadlockDetected, SerializationFailure
from psycopg.types.json import Jsonb
from tenacity import retry, retry_if_exception, stop_after_attempt, wait_random

from memory.storage.access import whole
from memory.storage.postgres.connections import Cursor, Pool, clear_errors, migrate, transaction

PUTS_PER_STATEMENT = 1_000
"""The base class writes a batch as one statement; PostgreSQL allows 65,535 parameters."""

_SCHEMA = (
    # Byte order, whatever the database's locale.
    'CREATE INDEX circadian_store_keys ON store (prefix COLLATE "C", key COLLATE "C")',
    # Waiting events are counted over all agents; they are few among all items.
    "CREATE INDEX circadian_store_inboxes ON store (prefix) WHERE prefix LIKE '%.inbox'",
)

_PREFIX = 'prefix COLLATE "C"'

_GET = """
SELECT prefix, key, value, created_at, updated_at, ttl_minutes IS NOT NULL AS expires
FROM unnest(%s::text[], %s::text[]) AS wanted (prefix, key) JOIN store USING (prefix, key)
"""

_ops: ContextVar[Sequence[Op]] = ContextVar("_ops", default=())


def _collided(error: BaseException) -> bool:
    """Whether a transaction was rolled back because it collided with another."""
    return isinstance(error.__cause__, DeadlockDetected | SerializationFailure)


_again = retry(
    retry=retry_if_exception(_collided),
    stop=stop_after_attempt(5),
    wait=wait_random(0.0, 0.1),
    reraise=True,
)


class CircadianPostgresStore(AsyncPostgresStore):
    """A store in which a batch is one transaction: written as a whole or not at all.

    Raises:
        DatabaseDown: the database cannot be reached.
        MemoryStoreError: the database refused a statement.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self.pool = pool

    async def setup(self) -> None:
        """Make LangGraph's table, and add two indexes."""
        async with transaction(self.pool) as cursor:
            await migrate(cursor, "store_migrations", self.MIGRATIONS)
            await migrate(cursor, "circadian_store_migrations", _SCHEMA)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run the operations in one transaction. Reads see the store as it was before the puts."""
        ops = list(ops)
        gets = [op for op in ops if isinstance(op, GetOp)]
        found = await self._get(gets) if gets and len(gets) == len(ops) else None
        return await self._whole(ops) if found is None else found

    async def _get(self, gets: Sequence[GetOp]) -> list[Result] | None:
        """The items, read by one statement without a transaction; None if one of them may expire.

        The base class begins a transaction for any batch, and a read of an expiring item writes.
        """
        paths = [".".join(op.namespace) for op in gets]
        async with self._cursor() as cursor:
            await cursor.execute(_GET, (paths, [op.key for op in gets]))
            rows = {(row.pop("prefix"), row["key"]): row for row in await cursor.fetchall()}
        if any([row.pop("expires") for row in rows.values()]):
            return None
        found = [rows.get((path, op.key)) for path, op in zip(paths, gets, strict=True)]
        return [
            None if row is None else _item(op.namespace, row)
            for op, row in zip(gets, found, strict=True)
        ]

    @_again
    async def _whole(self, ops: list[Op]) -> list[Result]:
        token = _ops.set(ops)
        try:
            return await super().abatch(ops)
        finally:
            _ops.reset(token)

    @_again
    async def aput_new(self, puts: Sequence[PutOp]) -> list[dict[str, Any]]:
        """Put values under free keys, as one transaction; returns what is stored then, in order."""
        gets = [GetOp(op.namespace, op.key, refresh_ttl=False) for op in puts]
        found: list[Result] = [None] * len(puts)
        async with transaction(self.pool) as cursor:
            await cursor.executemany(
                "INSERT INTO store (prefix, key, value) VALUES (%s, %s, %s)"
                " ON CONFLICT (prefix, key) DO NOTHING",
                [
                    (".".join(op.namespace), op.key, Jsonb(op.value))
                    for op in sorted(puts, key=lambda op: (op.namespace, op.key))
                ],
            )
            await self._batch_get_ops(list(enumerate(gets)), found, cursor)
        return [
            dict(item.value if isinstance(item, Item) else op.value or {})
            for op, item in zip(puts, found, strict=True)
        ]

    async def alist(
        self, namespace: tuple[str, ...], *, limit: int | None = None, newest_first: bool = False
    ) -> list[Item]:
        """The items of exactly this namespace by key, or by descending key."""
        order = "DESC" if newest_first else "ASC"
        async with self._cursor() as cursor:
            await cursor.execute(
                "SELECT key, value, created_at, updated_at FROM store"
                f' WHERE {_PREFIX} = %s ORDER BY key COLLATE "C" {order} LIMIT %s',
                (".".join(namespace), limit),
            )
            rows = await cursor.fetchall()
        return [_item(namespace, row) for row in rows]

    async def acount(self, prefix: tuple[str, ...]) -> int:
        """The number of items in this namespace and below it. Labels match as a whole."""
        path = ".".join(prefix)
        # All namespaces below it sort between "path." and "path/": "/" follows ".".
        where = f"{_PREFIX} = %s OR ({_PREFIX} > %s AND {_PREFIX} < %s)" if prefix else "TRUE"
        params = (path, f"{path}.", f"{path}/") if prefix else ()
        async with self._cursor() as cursor:
            await cursor.execute(f"SELECT count(*) AS items FROM store WHERE {where}", params)
            return sum(row["items"] for row in await cursor.fetchall())

    async def aleast_named(self, label: str, field: str, *, without: str) -> str | None:
        """The least text of `field` in the same items; None if there are none."""
        async with self._cursor() as cursor:
            await cursor.execute(
                'SELECT min((value ->> %s) COLLATE "C") AS least FROM store'
                " WHERE prefix LIKE %s AND NOT value ? %s",
                (field, f"%.{label}", without),
            )
            [row] = await cursor.fetchall()
            return None if row["least"] is None else str(row["least"])

    async def acount_named(self, label: str, *, without: str) -> int:
        """The number of items without a field `without`, in all namespaces that end in `label`."""
        async with self._cursor() as cursor:
            await cursor.execute(
                "SELECT count(*) AS items FROM store WHERE prefix LIKE %s AND NOT value ? %s",
                (f"%.{label}", without),
            )
            return sum(row["items"] for row in await cursor.fetchall())

    async def aclose(self) -> None:
        """End the batching task, which may roll a batch back. The pool stays open."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[Cursor]:
        """The cursor of the base class: in a transaction for a batch (`pipeline`)."""
        if not pipeline:
            with clear_errors(self.pool.name):
                async with self.pool.connection() as conn, conn.cursor(binary=True) as cursor:
                    yield cursor
            return
        ops = _ops.get()
        async with transaction(self.pool) as cursor:
            if len(ops) > 1 and not any(isinstance(op, PutOp) for op in ops):
                # All reads see one state of the store, and no half of another batch.
                await cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield cursor

    async def _batch_put_ops(self, put_ops: Sequence[tuple[int, PutOp]], cur: Cursor) -> None:
        # In a fixed order, so that two batches seldom deadlock.
        ordered = sorted(put_ops, key=lambda put: (put[1].namespace, put[1].key))
        for start in range(0, len(ordered), PUTS_PER_STATEMENT):
            await super()._batch_put_ops(ordered[start : start + PUTS_PER_STATEMENT], cur)


def _item(namespace: tuple[str, ...], row: dict[str, Any]) -> Item:
    whole(namespace, row["key"], row["value"])
    return Item(namespace=namespace, **row)
