"""Rewriting an SQLite file, so that deleted text is nowhere in it."""

from __future__ import annotations

import sqlite3

from memory.errors import MemoryStoreError


def compact(connection: sqlite3.Connection) -> None:
    """Rewrite the file without free pages and empty its write-ahead log. Blocking.

    Raises:
        sqlite3.Error: the file cannot be written.
        MemoryStoreError: another process reads the log for so long that it cannot be emptied.
    """
    connection.execute("VACUUM")
    busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise MemoryStoreError(
            "another process holds on to what was deleted; close it, and delete again"
        )
