"""Transactions on the tables of memories: one at a time per thread."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from psycopg_pool import ConnectionPool

from memory.errors import MemoryStoreError
from memory.storage.postgres import Connection, clear_errors, storable

Ids = tuple[str | None, str | None]
"""`user_id` and `agent_id`."""

_COUNT = """
INSERT INTO memory_kinds AS k (scope, kind, rows, length) VALUES (%s, %s, %s, %s)
ON CONFLICT (scope, kind)
DO UPDATE SET rows = k.rows + EXCLUDED.rows, length = k.length + EXCLUDED.length
"""


def scope_key(ids: Ids) -> str:
    """The unique key of a scope."""
    return json.dumps(storable(ids))


class Write:
    """A transaction, and the scopes that it locks until its end.

    A scope is locked before anything in it is read or changed. So transactions cannot deadlock, and
    what a transaction has read still holds when it writes.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.embedded: list[tuple[int, int]] = []
        """The rows whose vectors were written: `seq` and scope."""
        self._held: dict[Ids, int] = {}
        self._counted: dict[tuple[int, str], tuple[int, int]] = {}

    def hold(self, ids: Ids) -> int:
        """Lock a scope, which is created on first use; return its number."""
        if ids not in self._held:
            row = self.connection.execute(
                "INSERT INTO memory_scopes (key, user_id, agent_id) VALUES (%s, %s, %s)"
                " ON CONFLICT (key) DO UPDATE SET key = EXCLUDED.key RETURNING number",
                (scope_key(ids), *storable(ids)),
            ).fetchone()
            assert row is not None
            self._held[ids] = row[0]
        return self._held[ids]

    def hold_those_of(self, where: str, values: Sequence[object]) -> None:
        """Lock the scopes of the rows `m` that match, always in the same order."""
        self.connection.execute(
            "SELECT FROM memory_scopes WHERE number IN"
            f" (SELECT m.scope FROM memories AS m WHERE {where}) ORDER BY number FOR UPDATE",
            values,
        )

    def count(self, scope: int, kind: str, rows: int, length: int) -> None:
        """Add to the counts of a scope's kind: rows with terms, and terms in them."""
        before = self._counted.get((scope, kind), (0, 0))
        self._counted[scope, kind] = (before[0] + rows, before[1] + length)

    def settle(self) -> None:
        """Write the counts, once for all rows of the transaction."""
        for kind in sorted(self._counted):
            self.connection.execute(_COUNT, (*kind, *self._counted[kind]))
        self._counted = {}


class Transactions:
    """The transactions of a pool's threads, one at a time per thread.

    Raises MemoryStoreError where the database cannot be reached or refuses a statement.
    """

    def __init__(self, pool: ConnectionPool[Connection]) -> None:
        self.pool = pool
        self._of_thread = threading.local()

    @property
    def current(self) -> Write | None:
        """This thread's open transaction."""
        write: Write | None = getattr(self._of_thread, "write", None)
        return write

    @contextmanager
    def open(self) -> Iterator[Write]:
        """Make the writes inside atomic. Joins an open transaction."""
        with clear_errors(self.pool.name):
            if (joined := self.current) is not None:
                yield joined
                return
            with self.pool.connection() as connection, connection.transaction():
                write = self._of_thread.write = Write(connection)
                try:
                    yield write
                    write.settle()
                finally:
                    self._of_thread.write = None

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """The open transaction's connection, else one for the reads inside."""
        with clear_errors(self.pool.name):
            if (joined := self.current) is not None:
                yield joined.connection
                return
            with self.pool.connection() as connection:
                yield connection

    @contextmanager
    def outside(self) -> Iterator[Connection]:
        """A connection for statements that cannot run in a transaction."""
        if self.current is not None:
            raise MemoryStoreError("this cannot run within a transaction")
        with self.connection() as connection:
            yield connection
