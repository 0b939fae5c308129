"""An installation: the data folder or database that keeps everything, and its locks."""

from memory.installation.folder import FOLDER_SCHEMA, DataFolder
from memory.installation.opening import (
    CheckedLock,
    Installation,
    database_address,
    database_url,
    examine,
    is_made,
    open_installation,
)

__all__ = [
    "FOLDER_SCHEMA",
    "CheckedLock",
    "DataFolder",
    "Installation",
    "database_address",
    "database_url",
    "examine",
    "is_made",
    "open_installation",
]
