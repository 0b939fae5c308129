"""Write-ahead logging: readers go on while one process writes."""

from __future__ import annotations

import sqlite3
import time

PATIENCE = 30.0
"""Seconds to wait for other processes."""
PAUSE = 0.02


def use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL; blocking.

    SQLite does not wait for others here, whatever the busy timeout says: several processes that
    open a new file at once would fail with "database is locked".
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(PAUSE)
        else:
            return
