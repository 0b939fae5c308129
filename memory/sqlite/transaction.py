"""Whole transactions on an SQLite connection, and one clear error."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Literal

import aiosqlite

from memory.consequences import consequence
from memory.errors import MemoryStoreError


@asynccontextmanager
async def atomic(
    conn: aiosqlite.Connection, mode: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE"
) -> AsyncIterator[None]:
    """Commit what the block did as a whole, or roll back on any exception, cancellation included.

    Whatever writes must be IMMEDIATE: a deferred transaction that has read cannot become a writer
    once another process wrote, and SQLite does not wait then, it fails at once.
    """
    try:
        await conn.execute(f"BEGIN {mode}")
        yield
        await conn.commit()
    except BaseException:
        await conn.rollback()  # does nothing where no transaction is open
        raise


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """What goes wrong with the file inside, as one line that names it and says what that means."""
    try:
        yield
    except sqlite3.Error as error:
        raise MemoryStoreError(f"{path}: {error}: {consequence()}") from error
