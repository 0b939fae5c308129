"""The table of memories in SQLite, with FTS5 and an array of vectors."""

from memory.facts.sqlite.table import SqliteTable

__all__ = ["SqliteTable"]
