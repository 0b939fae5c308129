"""Mem0's history in PostgreSQL: shared by all processes, and written with the facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from psycopg.rows import dict_row

from memory.postgres.storable import storable
from memory.postgres.table import PostgresTable

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


class PostgresHistory:
    """The protocol `History` in the database of `table`, within its transactions.

    Several threads and processes may use it. Raises MemoryStoreError.
    """

    def __init__(self, table: PostgresTable) -> None:
        self._table = table

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Do nothing: changes belong to the table's transaction."""
        yield

    def add_history(
        self,
        memory_id: str,
        old_memory: str | None,
        new_memory: str | None,
        event: str,
        **details: Any,
    ) -> None:
        """Add one change. A deletion removes all changes of the memory: they hold its text."""
        if event == "DELETE":
            self._execute("DELETE FROM memory_history WHERE memory_id = %s", [(memory_id,)])
            return
        ids = {"memory_id": memory_id, "old_memory": old_memory, "new_memory": new_memory}
        row = {**ids, "event": event, "is_deleted": 0, **details}
        self._execute(
            f"INSERT INTO memory_history (id, {', '.join(_CHANGE)})"
            f" VALUES (%s{', %s' * len(_CHANGE)})",
            [(str(uuid4()), *(storable(row.get(name)) for name in _CHANGE))],
        )

    def get_history(self, memory_id: str) -> list[dict[str, Any]]:
        """The changes of one memory, oldest first, with `id` and those names."""
        rows = self._rows(
            f"SELECT id, {', '.join(_CHANGE)} FROM memory_history WHERE memory_id = %s"
            " ORDER BY created_at NULLS FIRST, updated_at NULLS FIRST, number",
            memory_id,
        )
        return [{**row, "is_deleted": bool(row["is_deleted"])} for row in rows]

    def scrub(self) -> None:
        """Remove deleted content from the table's files."""
        with self._table.lock, self._table.transactions.outside() as connection:
            connection.execute("VACUUM (FULL, ANALYZE) memory_history")

    def reset(self) -> None:
        """Remove everything."""
        self._execute("DELETE FROM memory_history", [()])

    def close(self) -> None:
        """Nothing to close: the connections are the table's."""

    def _execute(self, statement: str, values: Sequence[Sequence[object]]) -> None:
        with self._table.transactions.connection() as connection:
            connection.cursor().executemany(statement, values)

    def _rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        with self._table.transactions.connection() as connection:
            return connection.cursor(row_factory=dict_row).execute(query, values).fetchall()
