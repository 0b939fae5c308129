"""Write-ahead logging: readers continue while one process writes."""

from __future__ import annotations

import sqlite3
import time

PATIENCE = 30.0
"""Seconds to wait for other processes."""
PAUSE = 0.02


def use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to write-ahead logging. Blocking.

    SQLite ignores its busy timeout here: of several processes that open a new file at once, some
    would fail with "database is locked".
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
