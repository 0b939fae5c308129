"""Mem0's history in PostgreSQL: shared by all processes, and written with the facts it tells of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from psycopg.rows import dict_row

from memory.postgres.storable import storable
from memory.postgres.table import PostgresTable

KEPT_MESSAGES = 10
"""Of one scope, as Mem0 keeps them."""

_CHANGE = (
    "memory_id",
    "old_memory",
    "new_memory",
    "event",
    "created_at",
    "updated_at",
    "is_deleted",
    "actor_id",
    "role",
)
_MESSAGE = ("role", "content", "name", "created_at")


class PostgresHistory:
    """The protocol `History` in the database of `table`, within its transactions.

    Several threads and processes may use it. Raises MemoryStoreError.
    """

    def __init__(self, table: PostgresTable) -> None:
        self._table = table

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Nothing to hold: what is added inside a transaction is written with it, or not at all."""
        yield

    def add_history(
        self,
        memory_id: str,
        old_memory: str | None,
        new_memory: str | None,
        event: str,
        **details: Any,
    ) -> None:
        """Keep one change. A deletion takes away all that is kept of the memory."""
        if event == "DELETE":
            self._execute("DELETE FROM memory_history WHERE memory_id = %s", [(memory_id,)])
        else:
            row = {"memory_id": memory_id, "old_memory": old_memory, "new_memory": new_memory}
            self.batch_add_history([{**row, "event": event, **details}])

    def batch_add_history(self, records: list[dict[str, Any]]) -> None:
        """Keep many changes; a record has the names of `add_history`'s arguments."""
        rows = [{"is_deleted": 0, **record} for record in records]
        values = [(str(uuid4()), *(storable(row.get(name)) for name in _CHANGE)) for row in rows]
        self._execute(
            f"INSERT INTO memory_history (id, {', '.join(_CHANGE)})"
            f" VALUES (%s{', %s' * len(_CHANGE)})",
            values,
        )

    def get_history(self, memory_id: str) -> list[dict[str, Any]]:
        """The changes of one memory, oldest first, with `id` and those names."""
        rows = self._rows(
            f"SELECT id, {', '.join(_CHANGE)} FROM memory_history WHERE memory_id = %s"
            " ORDER BY created_at NULLS FIRST, updated_at NULLS FIRST, number",
            memory_id,
        )
        return [{**row, "is_deleted": bool(row["is_deleted"])} for row in rows]

    def save_messages(self, messages: list[dict[str, Any]], session_scope: str) -> None:
        """Keep chat messages for Mem0's own extraction, the last ten of a scope."""
        at = datetime.now(UTC).isoformat()
        values = [
            (session_scope, *(storable(one.get(name)) for name in _MESSAGE[:3]), at)
            for one in messages
        ]
        with self._table.transaction():
            self._execute(
                f"INSERT INTO memory_messages (session_scope, {', '.join(_MESSAGE)})"
                " VALUES (%s, %s, %s, %s, %s)",
                values,
            )
            self._execute(
                "DELETE FROM memory_messages WHERE session_scope = %s AND number NOT IN ("
                " SELECT number FROM memory_messages WHERE session_scope = %s"
                " ORDER BY number DESC LIMIT %s)",
                [(session_scope, session_scope, KEPT_MESSAGES)],
            )

    def get_last_messages(self, session_scope: str, limit: int = 10) -> Sequence[dict[str, Any]]:
        """Them, oldest first: role, content, name, created_at."""
        rows = self._rows(
            f"SELECT {', '.join(_MESSAGE)} FROM memory_messages WHERE session_scope = %s"
            " ORDER BY number DESC LIMIT %s",
            session_scope,
            limit,
        )
        return rows[::-1]

    def scrub(self) -> None:
        """Leave nothing in the tables' files of what was deleted."""
        with self._table.lock, self._table.transactions.outside() as connection:
            connection.execute("VACUUM (FULL, ANALYZE) memory_history, memory_messages")

    def reset(self) -> None:
        """Remove everything."""
        with self._table.transaction():
            self._execute("DELETE FROM memory_history", [()])
            self._execute("DELETE FROM memory_messages", [()])

    def close(self) -> None:
        """Nothing to close: the connections are the table's."""

    def _execute(self, statement: str, values: Sequence[Sequence[object]]) -> None:
        with self._table.transactions.connection() as connection:
            connection.cursor().executemany(statement, values)

    def _rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        with self._table.transactions.connection() as connection:
            return connection.cursor(row_factory=dict_row).execute(query, values).fetchall()
