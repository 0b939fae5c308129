"""Mem0's history in its own file. Importing this imports Mem0."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mem0.memory.storage import SQLiteManager

from memory.errors import MemoryStoreError
from memory.sqlite.compact import compact
from memory.sqlite.wal import use_wal


class FileHistory(SQLiteManager):
    """Mem0's history of changes: written after the facts it tells of, and erased with them."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        use_wal(self.connection)
        # A power cut may cost its last rows: the facts themselves are in the table.
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.connection.execute("PRAGMA secure_delete = ON")
        self.connection.execute("CREATE INDEX IF NOT EXISTS history_of ON history (memory_id)")
        self._held: list[dict[str, Any]] | None = None

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Hold what is added inside, and write it at the end unless there was an error."""
        self._held = []
        try:
            yield
            self.batch_add_history(self._held)
        finally:
            self._held = None

    def add_history(
        self,
        memory_id: str,
        old_memory: str | None,
        new_memory: str | None,
        event: str,
        **details: Any,
    ) -> None:
        """Keep one change. A deletion takes the fact's rows away: they hold its text."""
        if event == "DELETE":
            self._erase(memory_id)
        elif self._held is None:
            super().add_history(memory_id, old_memory, new_memory, event, **details)
        else:
            row = {"memory_id": memory_id, "old_memory": old_memory, "new_memory": new_memory}
            self._held.append({**row, "event": event, **details})

    def scrub(self) -> None:
        """Write the file anew: what was deleted is then nowhere in it, nor in its log."""
        try:
            with self._lock:
                compact(self.connection)
        except sqlite3.Error as error:
            raise MemoryStoreError(f"Mem0's history at {self.db_path}: {error}") from error

    def reset(self) -> None:
        """Remove everything. It can be used again at once, unlike Mem0's own."""
        with self._lock, self.connection:
            self.connection.execute("DELETE FROM history")
            self.connection.execute("DELETE FROM messages")

    def close(self) -> None:
        """Close the file. Twice is the same as once."""
        closing: Callable[[], object] = super().close
        closing()

    def _erase(self, memory_id: str) -> None:
        with self._lock, self.connection:
            self.connection.execute("DELETE FROM history WHERE memory_id = ?", (memory_id,))
