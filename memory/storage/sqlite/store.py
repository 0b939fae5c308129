"""LangGraph's SQLite store, safe for several processes, with listings that need no paging."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import orjson
from langgraph.store.base import GetOp, Item, Op, PutOp, Result
from langgraph.store.sqlite import SqliteStore

from memory.errors import MemoryStoreError
from memory.storage.access import whole
from memory.storage.sqlite.files import OpenedFile, atomic, drop_mentions

PUTS_PER_STATEMENT = 1_000
"""The base class writes a batch as one statement; SQLite limits its parameters."""

QUICK_ROWS = 200
"""Rows that the event loop's thread reads itself: as many as take no longer than a hand-off."""

_ROW = "key, value, created_at, updated_at"


class CircadianSqliteStore(SqliteStore):
    """A store in which a batch is one transaction: written as a whole or not at all.

    The base class commits a deferred transaction even after an error: it fails when several
    processes read and write, and keeps half of a failed batch. Raises MemoryStoreError.
    """

    def __init__(self, file: OpenedFile) -> None:
        super().__init__(file.conn)
        self.file = file

    def setup(self) -> None:
        """Make the tables in one transaction, so that no second process finds half of them."""
        if not self.is_setup:
            with self.file.lock, atomic(self.conn):
                self._migrate()
            self.is_setup = True

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run the operations in one transaction. Reads see the store as it was before the puts."""
        ops = list(ops)
        puts = [op for op in ops if isinstance(op, PutOp)]
        reads = [op for op in ops if not isinstance(op, PutOp)]
        with self.file.lock, atomic(self.conn, "IMMEDIATE" if puts else "DEFERRED"):
            found = iter(super().batch(reads) if reads else ())
            self._put(puts)
        return [None if isinstance(op, PutOp) else next(found) for op in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, in the connection's thread. A few items are read by their keys at once."""
        ops = list(ops)
        gets = [op for op in ops if isinstance(op, GetOp)]
        if len(gets) == len(ops) <= QUICK_ROWS:
            return list(await self.file.read(partial(_items, gets)))
        written = any(isinstance(op, PutOp) for op in ops)
        return await (self.file.write if written else self.file.run)(self.batch, ops)

    async def alook(
        self, gets: Sequence[GetOp], lists: Sequence[tuple[str, ...]]
    ) -> tuple[list[Item | None], list[list[Item] | None]]:
        """The items under the keys, and the items of each namespace; None if it has many."""

        def look(conn: sqlite3.Connection) -> tuple[list[Item | None], list[list[Item] | None]]:
            few = f"SELECT {_ROW} FROM store WHERE prefix = ? ORDER BY key LIMIT {QUICK_ROWS}"
            rows = [(one, conn.execute(few, (".".join(one),)).fetchall()) for one in lists]
            return _items(gets, conn), [
                [_item(one, row) for row in found] if len(found) < QUICK_ROWS else None
                for one, found in rows
            ]

        return await self.file.read(look)

    async def aput_new(self, puts: Sequence[PutOp]) -> list[dict[str, Any]]:
        """Put values under free keys, as one transaction; returns what is stored then, in order."""
        return await self.file.write(self._put_new, puts)

    async def alist(
        self, namespace: tuple[str, ...], *, limit: int | None = None, newest_first: bool = False
    ) -> list[Item]:
        """The items of exactly this namespace by key, or by descending key."""
        statement = f"SELECT {_ROW} FROM store WHERE prefix = ? ORDER BY key"
        found = await self._read(
            f"{statement} {'DESC' if newest_first else 'ASC'}",
            [".".join(namespace)],
            -1 if limit is None else limit,
        )
        return [_item(namespace, row) for row in found]

    async def acount(self, prefix: tuple[str, ...], field: str | None = None) -> int:
        """The number of items in this namespace and below it, or of what their `field` lists."""
        path = ".".join(prefix)
        # All namespaces below it sort between "path." and "path/": "/" follows ".".
        where = "WHERE prefix = ? OR (prefix > ? AND prefix < ?)" if prefix else ""
        params = [path, f"{path}.", f"{path}/"] if prefix else []
        what = "sum(json_array_length(value, ?))" if field else "count(*)"
        query = f"SELECT {what} FROM store {where}"
        [[count]] = await self.file.rows(query, [*([f"$.{field}"] if field else []), *params])
        return int(count or 0)

    async def acount_named(
        self, label: str, field: str, *, without: str, below: tuple[str, ...] = ()
    ) -> tuple[int, str | None]:
        """Namespaces below `below` that end in `label`: items without `without`, least `field`."""
        path = ".".join(below)
        where = " AND prefix > ? AND prefix < ?" if below else ""
        [row] = await self.file.rows(
            "SELECT count(*), min(json_extract(value, '$.' || ?)) FROM store WHERE prefix LIKE ?"
            f" AND json_type(value, '$.' || ?) IS NULL{where}",
            [field, f"%.{label}", without, *([f"{path}.", f"{path}/"] if below else [])],
        )
        return row[0], row[1]

    async def _read(self, statement: str, params: list[Any], limit: int = -1) -> list[Any]:
        """The rows of a statement: a few at once, many in the connection's thread."""

        def rows(most: int, conn: sqlite3.Connection) -> list[Any]:
            return conn.execute(f"{statement} LIMIT ?", [*params, most]).fetchall()

        if 0 <= limit <= QUICK_ROWS:
            return await self.file.read(partial(rows, limit))
        found = await self.file.read(partial(rows, QUICK_ROWS))
        if len(found) < QUICK_ROWS:
            return found
        return await self.file.run(rows, limit, self.conn)

    @contextmanager
    def _cursor(self, *, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """The base class's cursor, inside of the transaction that `batch` began."""
        with closing(self.conn.cursor()) as cur:
            yield cur

    def _put(self, puts: Sequence[PutOp]) -> None:
        for start in range(0, len(puts), PUTS_PER_STATEMENT):
            super().batch(puts[start : start + PUTS_PER_STATEMENT])

    def _put_new(self, puts: Sequence[PutOp]) -> list[dict[str, Any]]:
        gets = [GetOp(op.namespace, op.key) for op in puts]
        with atomic(self.conn):
            found = super().batch(gets)
            self._put([op for op, item in zip(puts, found, strict=True) if item is None])
        return [
            dict(item.value if isinstance(item, Item) else op.value or {})
            for op, item in zip(puts, found, strict=True)
        ]

    def _migrate(self) -> None:
        self.conn.execute("CREATE TABLE IF NOT EXISTS store_migrations (v INTEGER PRIMARY KEY)")
        [[newest]] = self.conn.execute("SELECT max(v) FROM store_migrations").fetchall()
        done = -1 if newest is None else int(newest)
        for version, statement in enumerate(self.MIGRATIONS[done + 1 :], start=done + 1):
            self.conn.execute(statement)
            self.conn.execute("INSERT INTO store_migrations (v) VALUES (?)", (version,))
        drop_mentions(self.conn, "store")


def _items(gets: Sequence[GetOp], conn: sqlite3.Connection) -> list[Item | None]:
    found: dict[tuple[tuple[str, ...], str], Item] = {}
    for namespace in dict.fromkeys(op.namespace for op in gets):
        keys = [op.key for op in gets if op.namespace == namespace]
        asked = ", ".join("?" * len(keys))
        for row in conn.execute(
            f"SELECT {_ROW} FROM store WHERE prefix = ? AND key IN ({asked})",
            (".".join(namespace), *keys),
        ).fetchall():
            found[namespace, row[0]] = _item(namespace, row)
    return [found.get((op.namespace, op.key)) for op in gets]


def _item(namespace: tuple[str, ...], row: Sequence[Any]) -> Item:
    key, text, created_at, updated_at = row
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise MemoryStoreError(
            f"store.db: the record {key} of {'/'.join(namespace[2:])} is damaged ({error}); "
            "restore the data folder from a backup"
        ) from error
    return Item(
        namespace=namespace,
        key=key,
        value=whole(namespace, key, value),
        created_at=created_at,
        updated_at=updated_at,
    )
