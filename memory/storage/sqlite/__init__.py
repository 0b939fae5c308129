"""SQLite: checkpoints and the store in files of the data folder."""

from memory.storage.sqlite.files import (
    PATIENCE,
    OpenedFile,
    clear_errors,
    compact,
    open_file,
    quick_check,
    use_wal,
)
from memory.storage.sqlite.saver import CircadianSqliteSaver
from memory.storage.sqlite.store import CircadianSqliteStore

__all__ = [
    "PATIENCE",
    "CircadianSqliteSaver",
    "CircadianSqliteStore",
    "OpenedFile",
    "clear_errors",
    "compact",
    "open_file",
    "quick_check",
    "use_wal",
]
