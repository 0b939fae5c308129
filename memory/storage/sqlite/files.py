"""SQLite files: whole transactions, clear errors, write-ahead logging, checks and free space."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from memory.errors import MemoryStoreError, consequence


@contextmanager
def atomic(
    conn: sqlite3.Connection, mode: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE"
) -> Iterator[None]:
    """Commit the block as a whole, or roll back on any exception. Blocking.

    A block that writes must be IMMEDIATE: if another process writes after a deferred transaction
    has read, that transaction cannot write any more, and SQLite fails at once instead of waiting.
    """
    try:
        conn.execute(f"BEGIN {mode}")
        yield
        conn.commit()
    except BaseException:
        conn.rollback()  # does nothing if no transaction is open
        raise


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into one clear line that names the file and says what it means."""
    try:
        yield
    except sqlite3.Error as error:
        raise MemoryStoreError(f"{path}: {error}: {consequence()}") from error


PATIENCE = 30.0
"""Seconds to wait for other processes."""

PAUSE = 0.02


def use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to write-ahead logging: readers continue while a process writes. Blocking.

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


FREE_PAGES_KEPT = 64
"""Free pages that a file may keep however small it is (256 kB)."""

VACUUM_PAGES = 256
"""Pages returned to the file system at one time, at most (1 MB)."""


def pages_to_free(free: int, total: int) -> int:
    """Free pages to return now: those beyond a quarter of the file, in small steps.

    Some stay free, since the next checkpoint fills them at no cost.
    """
    return min(max(0, free - max(FREE_PAGES_KEPT, total // 4)), VACUUM_PAGES)


def quick_check(path: Path) -> str | None:
    """What SQLite finds wrong with the file, on one line; None for a sound file. Blocking.

    Changes nothing. The time it takes grows with the file.
    """
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    except sqlite3.Error as error:
        return str(error)
    try:
        found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)")]
    except sqlite3.Error as error:
        return str(error)
    finally:
        connection.close()
    return None if found == ["ok"] else " ".join("; ".join(found).split())


def compact(connection: sqlite3.Connection) -> None:
    """Rewrite the file and empty its write-ahead log, so that no deleted text is left. Blocking.

    Raises:
        sqlite3.Error: the file cannot be written.
        MemoryStoreError: another process reads the log for so long that it cannot be emptied.
    """
    connection.execute("VACUUM")
    busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise MemoryStoreError(
            "another process still reads deleted data; close it, and delete again"
        )
