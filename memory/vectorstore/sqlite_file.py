"""One SQLite file with one connection: its lock, transactions and errors."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory.errors import MemoryStoreError
from memory.sqlite.compact import compact
from memory.sqlite.wal import use_wal

BUSY_TIMEOUT = 30.0
"""Seconds to wait for another process's write."""
PAGE_SIZE = 8_192
"""Bytes, of a new file: five vectors of 384 numbers fit, where half that size wastes a quarter."""


class SqliteFile:
    """Thread-safe; several processes may open it. Raises MemoryStoreError."""

    def __init__(self, path: Path) -> None:
        self.lock = threading.RLock()
        """Held through every transaction; hold it to make several one, as seen from here."""
        self.writing = False
        """Whether a write is open: what it wrote may yet be rolled back."""
        self._path = path
        with self.errors():
            self.connection = sqlite3.connect(
                path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self.connection.close()
                raise

    def _prepare(self) -> None:
        """WAL lets others read while one writes; FULL makes a commit survive a power cut."""
        self.connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        use_wal(self.connection)
        self.connection.execute("PRAGMA synchronous = FULL")
        # What is deleted is written over: less is left for `scrub` to find.
        self.connection.execute("PRAGMA secure_delete = ON")

    @contextmanager
    def errors(self) -> Iterator[None]:
        """What goes wrong with the file is one kind of error that names it."""
        try:
            yield
        except sqlite3.Error as error:
            raise MemoryStoreError(f"semantic memory at {self._path}: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All writes inside are one; an error rolls them back. Joins one that is open."""
        with self._one("BEGIN IMMEDIATE"):
            outer, self.writing = self.writing, True
            try:
                yield
            finally:
                self.writing = outer

    @contextmanager
    def reading(self) -> Iterator[None]:
        """All reads inside see the file as it is at one moment."""
        with self._one("BEGIN"):
            yield

    @contextmanager
    def _one(self, begin: str) -> Iterator[None]:
        with self.lock, self.errors():
            if self.connection.in_transaction:
                yield
                return
            self.connection.execute(begin)
            try:
                yield
                self.connection.execute("COMMIT")
            finally:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    def compact(self) -> None:
        """Write the file anew, without anything that was deleted."""
        with self.lock, self.errors():
            compact(self.connection)

    def close(self) -> None:
        """Close it. Nothing is lost: every write was committed."""
        with self.lock:
            self.connection.close()
