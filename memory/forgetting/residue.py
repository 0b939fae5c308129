"""Removing deleted data from the disk: free pages, logs, old versions of rows.

In SQLite a deleted row stays in the file and in the write-ahead log until it is overwritten. In
PostgreSQL old versions of a row stay until a vacuum. Log archives and backups are not touched.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import aiosqlite

from memory.errors import MemoryStoreError

SAVER_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
STORE_TABLES = ("store", "memory_history")
MEMORY_TABLES = ("memories", "memory_terms", "memory_aliases")
"""Semantic memory rewrites these itself; only their statistics are cleared here."""
_CLEARS_STATISTICS = 180_000
"""First version of PostgreSQL in which a table's owner can clear its statistics."""


async def clean(part: Any, tables: tuple[str, ...]) -> None:
    """Rewrite the file or, in PostgreSQL, the `tables` of a saver or a store.

    Raises:
        MemoryStoreError: another process is reading the file.
    """
    if isinstance(getattr(part, "conn", None), aiosqlite.Connection):
        async with part.lock:
            await _vacuum_file(part.conn)
    elif hasattr(part, "pool"):
        await _vacuum_tables(part.pool, tables)


async def _vacuum_file(conn: aiosqlite.Connection) -> None:
    try:
        await conn.execute_fetchall("PRAGMA secure_delete = ON")
        await conn.execute_fetchall("VACUUM")
        (row,) = await conn.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise MemoryStoreError(
            f"what is forgotten is deleted, but the file still holds it ({error}): forget again"
        ) from error
    if row[0]:
        raise MemoryStoreError(
            "what is forgotten is deleted, but another process reads the file that still holds "
            "it: close it, and forget again"
        )


async def _vacuum_tables(pool: Any, tables: tuple[str, ...]) -> None:
    """Rewrite the tables and the planner's statistics, which contain common values.

    The server skips tables of other owners.
    """
    from memory.postgres.pool import clear_errors

    with clear_errors(pool.name):
        async with pool.connection() as conn:
            await conn.execute(f"VACUUM (FULL, ANALYZE) {', '.join(tables)}")
            if conn.info.server_version >= _CLEARS_STATISTICS:
                # ANALYZE does not change the statistics of a table without rows.
                await conn.execute(
                    "SELECT pg_clear_attribute_stats(schemaname, tablename, attname, inherited)"
                    " FROM pg_stats JOIN pg_class AS c"
                    " ON c.oid = format('%%I.%%I', schemaname, tablename)::regclass"
                    " WHERE c.oid = ANY(%s::regclass[]) AND c.reltuples = 0",
                    ([*tables, *MEMORY_TABLES],),
                )
            await conn.execute("VACUUM (FULL) pg_catalog.pg_statistic")
