"""An installation: the data folder or database that keeps everything, and its locks."""

from memory.installation.folder import FOLDER_SCHEMA, DataFolder, WriterLock
from memory.installation.opening import (
    Installation,
    database_url,
    examine,
    is_made,
    open_installation,
)

__all__ = [
    "FOLDER_SCHEMA",
    "DataFolder",
    "Installation",
    "WriterLock",
    "database_url",
    "examine",
    "is_made",
    "open_installation",
]
