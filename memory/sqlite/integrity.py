"""Whether a database file is sound."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote


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
