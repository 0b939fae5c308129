"""LangGraph's SQLite store, safe for several processes, with listings that need no paging."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

import aiosqlite
import orjson
from langgraph.store.base import GetOp, Item, Op, PutOp, Result
from langgraph.store.sqlite.aio import AsyncSqliteStore

from memory.storage.sqlite.files import atomic, clear_errors

PUTS_PER_STATEMENT = 1_000
"""The base class writes a batch as one statement; SQLite limits its parameters."""


_mode: ContextVar[Literal["IMMEDIATE", "DEFERRED"]] = ContextVar("_mode", default="IMMEDIATE")


_only_new: ContextVar[bool] = ContextVar("_only_new", default=False)


class CircadianSqliteStore(AsyncSqliteStore):
    """A store in which a batch is one transaction: written as a whole or not at all.

    The base class opens a deferred transaction and commits it even after an error: it fails when
    several processes read and write, and keeps half of a failed batch.

    Raises:
        MemoryStoreError: the file cannot be read or written.
    """

    def __init__(self, conn: aiosqlite.Connection, path: Path) -> None:
        super().__init__(conn)
        self.path = path

    async def setup(self) -> None:
        """Make the tables in one transaction, so that no second process finds half of them."""
        async with self.lock:
            if not self.is_setup:
                with clear_errors(self.path):
                    async with atomic(self.conn):
                        await self._migrate()
        await super().setup()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run the operations in one transaction. Reads see the store as it was before the puts."""
        ops = list(ops)
        writes = any(isinstance(op, PutOp) for op in ops)
        token = _mode.set("IMMEDIATE" if writes else "DEFERRED")
        try:
            with clear_errors(self.path):
                return await super().abatch(ops)
        finally:
            _mode.reset(token)

    async def aput_new(self, puts: Sequence[PutOp]) -> list[dict[str, Any]]:
        """Put values under free keys, as one transaction; returns what is stored then, in order."""
        gets = [GetOp(op.namespace, op.key) for op in puts]
        token = _only_new.set(True)
        try:
            found = (await self.abatch([*gets, *puts]))[: len(puts)]
        finally:
            _only_new.reset(token)
        return [
            dict(item.value if isinstance(item, Item) else op.value or {})
            for op, item in zip(puts, found, strict=True)
        ]

    async def alist(
        self, namespace: tuple[str, ...], *, limit: int | None = None, newest_first: bool = False
    ) -> list[Item]:
        """The items of exactly this namespace by key, or by descending key."""
        order = "DESC" if newest_first else "ASC"
        async with self._reading() as cur:
            await cur.execute(
                "SELECT key, value, created_at, updated_at FROM store WHERE prefix = ?"
                f" ORDER BY key {order} LIMIT ?",
                (".".join(namespace), -1 if limit is None else limit),
            )
            rows = await cur.fetchall()
        return [
            Item(
                namespace=namespace,
                key=key,
                value=orjson.loads(value),
                created_at=created_at,
                updated_at=updated_at,
            )
            for key, value, created_at, updated_at in rows
        ]

    async def acount(self, prefix: tuple[str, ...]) -> int:
        """The number of items in this namespace and below it. Labels match as a whole."""
        path = ".".join(prefix)
        # All namespaces below it sort between "path." and "path/": "/" follows ".".
        where = "WHERE prefix = ? OR (prefix > ? AND prefix < ?)" if prefix else ""
        params = (path, f"{path}.", f"{path}/") if prefix else ()
        async with self._reading() as cur:
            await cur.execute(f"SELECT count(*) FROM store {where}", params)
            return sum(row[0] for row in await cur.fetchall())

    async def acount_named(self, label: str, *, without: str) -> int:
        """The number of items without a field `without`, in all namespaces that end in `label`."""
        async with self._reading() as cur:
            await cur.execute(
                "SELECT count(*) FROM store WHERE prefix LIKE ?"
                " AND json_type(value, '$.' || ?) IS NULL",
                (f"%.{label}", without),
            )
            return sum(row[0] for row in await cur.fetchall())

    async def aclose(self) -> None:
        """Finish the current batch and end the batching task. The connection stays open."""
        async with self.lock:
            if self._task is not None:
                self._task.cancel()

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[aiosqlite.Cursor]:
        with clear_errors(self.path):
            async with self._cursor(transaction=False) as cur:
                yield cur

    @asynccontextmanager
    async def _cursor(self, *, transaction: bool = True) -> AsyncIterator[aiosqlite.Cursor]:
        if not self.is_setup:
            await self.setup()
        async with self.lock, self.conn.cursor() as cur:
            if not transaction:
                yield cur
                return
            async with atomic(self.conn, _mode.get()):
                yield cur

    async def _batch_put_ops(
        self, put_ops: Sequence[tuple[int, PutOp]], cur: aiosqlite.Cursor
    ) -> None:
        if _only_new.get():
            found: list[Result] = [None] * len(put_ops)
            gets = [(at, GetOp(op.namespace, op.key)) for at, (_, op) in enumerate(put_ops)]
            await self._batch_get_ops(gets, found, cur)
            put_ops = [one for one, item in zip(put_ops, found, strict=True) if item is None]
        for start in range(0, len(put_ops), PUTS_PER_STATEMENT):
            await super()._batch_put_ops(put_ops[start : start + PUTS_PER_STATEMENT], cur)

    async def _migrate(self) -> None:
        await self.conn.execute(
            "CREATE TABLE IF NOT EXISTS store_migrations (v INTEGER PRIMARY KEY)"
        )
        applied = list(await self.conn.execute_fetchall("SELECT max(v) FROM store_migrations"))
        done = -1 if applied[0][0] is None else int(applied[0][0])
        for version, statement in enumerate(self.MIGRATIONS[done + 1 :], start=done + 1):
            await self.conn.execute(statement)
            await self.conn.execute("INSERT INTO store_migrations (v) VALUES (?)", (version,))
