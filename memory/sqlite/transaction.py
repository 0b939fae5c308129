"""Whole transactions and clear errors for an SQLite connection."""

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
    """Commit the block as a whole, or roll back on any exception, cancellation included.

    A block that writes must be IMMEDIATE: if another process writes after a deferred transaction
    has read, that transaction cannot write any more, and SQLite fails at once instead of waiting.
    """
    try:
        await conn.execute(f"BEGIN {mode}")
        yield
        await conn.commit()
    except BaseException:
        await conn.rollback()  # does nothing if no transaction is open
        raise


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into one clear line that names the file and says what it means."""
    try:
        yield
    except sqlite3.Error as error:
        raise MemoryStoreError(f"{path}: {error}: {consequence()}") from error
