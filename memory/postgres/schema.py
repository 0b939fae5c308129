"""Migrations: tables are made whole or not at all, by one process at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from memory.errors import NewerError
from memory.postgres.pool import Cursor


def lock_key(*names: str) -> int:
    """The number of the advisory lock for these names (64 bits, signed)."""
    digest = hashlib.sha256("\n".join(("circadian", *names)).encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


async def hold(cursor: Cursor, *names: str) -> None:
    """Hold these names until the transaction ends; waits for other holders."""
    await cursor.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(*names),))


async def migrate(cursor: Cursor, table: str, statements: Sequence[str]) -> None:
    """Apply the `statements` that `table` does not count as applied, in the cursor's transaction.

    LangGraph's own setup applies them one by one, and fails if two processes do so at once.
    CONCURRENTLY cannot be used in a transaction; on empty tables it has no use either.

    Raises:
        NewerError: the table counts more statements, from a newer version.
    """
    await hold(cursor, "schema")
    await cursor.execute("SELECT to_regclass(%s) IS NULL AS missing", (table,))
    if await _value(cursor, "missing"):
        await cursor.execute(f"CREATE TABLE {table} (v INTEGER PRIMARY KEY)")
    await cursor.execute(f"SELECT coalesce(max(v), -1) AS done FROM {table}")
    done: int = await _value(cursor, "done")
    if done >= len(statements):
        raise NewerError(
            f"the database was made by a newer Circadian ({table} {done + 1}, this one reads "
            f"{len(statements)}); update Circadian"
        )
    for version, statement in enumerate(statements[done + 1 :], start=done + 1):
        await cursor.execute(statement.replace(" CONCURRENTLY", ""))
        await cursor.execute(f"INSERT INTO {table} (v) VALUES (%s)", (version,))


async def _value(cursor: Cursor, name: str) -> Any:
    row = await cursor.fetchone()
    return row[name] if row else None
