"""Whole transactions on an SQLite connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import aiosqlite


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
