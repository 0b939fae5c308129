"""SQLite: checkpoints and the store in files of the data folder."""

from memory.storage.sqlite.files import (
    OpenedFile,
    SqliteFile,
    drop_mentions,
    open_file,
    quick_check,
)
from memory.storage.sqlite.saver import CircadianSqliteSaver
from memory.storage.sqlite.store import CircadianSqliteStore

__all__ = [
    "CircadianSqliteSaver",
    "CircadianSqliteStore",
    "OpenedFile",
    "SqliteFile",
    "drop_mentions",
    "open_file",
    "quick_check",
]
