"""An installation: the data folder or database that keeps everything, and its locks."""

from memory.installation.database import Database, examine
from memory.installation.folder import FOLDER_SCHEMA, DataFolder
from memory.installation.opening import database_url, is_made, open_installation
from memory.installation.protocol import CheckedLock, HeldLock, Installation, WriterLock

__all__ = [
    "FOLDER_SCHEMA",
    "CheckedLock",
    "DataFolder",
    "Database",
    "HeldLock",
    "Installation",
    "WriterLock",
    "database_url",
    "examine",
    "is_made",
    "open_installation",
]
