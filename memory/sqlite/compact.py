"""Writing an SQLite file anew, so that what was deleted is nowhere in it."""

from __future__ import annotations

import sqlite3

from memory.errors import MemoryStoreError


def compact(connection: sqlite3.Connection) -> None:
    """Write the file without its free pages and leftovers, and empty its write-ahead log; blocking.

    Raises sqlite3.Error, and MemoryStoreError where another process reads the log for so long that
    it cannot be emptied.
    """
    connection.execute("VACUUM")
    busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise MemoryStoreError(
            "another process holds on to what was deleted; close it, and delete again"
        )
