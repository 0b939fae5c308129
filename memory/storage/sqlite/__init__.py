"""SQLite: checkpoints and the store in files of the data folder."""

from memory.storage.sqlite.files import (
    UNREAD,
    MentionIndex,
    OpenedFile,
    SqliteFile,
    open_file,
    quick_check,
)
from memory.storage.sqlite.saver import CircadianSqliteSaver
from memory.storage.sqlite.store import CircadianSqliteStore

__all__ = [
    "UNREAD",
    "CircadianSqliteSaver",
    "CircadianSqliteStore",
    "MentionIndex",
    "OpenedFile",
    "SqliteFile",
    "open_file",
    "quick_check",
]
