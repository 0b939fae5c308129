"""Opens checkpoints and store, for Python and for a server.

A server loads this file more than once and under several names (see langgraph.json), so the module
holds no lock, connection or cache.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING

import aiosqlite
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from memory.errors import FolderError
from memory.installation import DataFolder, Installation, database_address, open_installation
from memory.models import model_name
from memory.runtime import process_now, process_resources
from memory.settings import Deployment, Settings
from memory.storage.sqlite import CircadianSqliteSaver, CircadianSqliteStore, use_wal
from tools.extensions import extra

if TYPE_CHECKING:
    from memory.storage.postgres import Pool

log = logging.getLogger("circadian")

BUSY_SECONDS = 30.0
"""Seconds that a statement waits for another process's transaction."""

WAL_LIMIT = 4 * 1024 * 1024
"""Bytes that a write-ahead log may keep after a checkpoint."""


@asynccontextmanager
async def open_saver(
    home: Installation, *, keep: int = 50
) -> AsyncIterator[BaseCheckpointSaver[str]]:
    """The checkpoints of `home`; `keep`: checkpoints to keep of each thread's root graph.

    Raises:
        FolderError: the file cannot be opened.
        DatabaseDown: the database cannot be reached.
    """
    if isinstance(home, DataFolder):
        async with _connection(home.checkpoints_db) as conn:
            saver = CircadianSqliteSaver(conn, home.checkpoints_db, keep=keep)
            await saver.setup()
            yield saver
        return
    from memory.storage.postgres import CircadianPostgresSaver

    async with _pool(home) as pool:
        shared = CircadianPostgresSaver(pool, keep=keep)
        await shared.setup()
        yield shared


@asynccontextmanager
async def open_store(home: Installation) -> AsyncIterator[BaseStore]:
    """The store of `home`. Raises as `open_saver`."""
    if isinstance(home, DataFolder):
        path = home.store_db
        async with _connection(path) as conn, aclosing(CircadianSqliteStore(conn, path)) as store:
            await store.setup()
            yield store
        return
    from memory.storage.postgres import CircadianPostgresStore

    async with _pool(home) as pool, aclosing(CircadianPostgresStore(pool)) as shared:
        await shared.setup()
        yield shared


@asynccontextmanager
async def checkpointer() -> AsyncIterator[BaseCheckpointSaver[str]]:
    """A server's checkpoints. While they are open, no agent runs outside of servers.

    A data folder has one server at a time; a database is shared by several.

    Raises:
        BusyError: an agent is running elsewhere, or another server has the folder.
    """
    deployment = Deployment()
    home = await asyncio.to_thread(open_installation, deployment)
    async with (
        home.server_lock(timeout=deployment.lock_timeout),
        open_saver(home, keep=Settings().checkpoints_kept) as saver,
    ):
        process = await asyncio.to_thread(process_now)
        process.saver = saver
        yield saver


@asynccontextmanager
async def store() -> AsyncIterator[BaseStore]:
    """A server's store. Also prepares what its runs depend on, before the first of them.

    Raises:
        InputError: unknown model name, missing key, or an extension that cannot be loaded.
    """
    deployment = Deployment()
    home = await asyncio.to_thread(open_installation, deployment)
    async with (
        process_resources(lambda: extra(deployment, data=deployment.data)) as resources,
        open_store(home) as opened,
    ):
        log.info(
            "model %s, embedder %s, data %s",
            model_name(resources.chat_model),
            home.embedder,
            home.name,
        )
        process_now().store = opened
        yield opened


@asynccontextmanager
async def _pool(home: Installation) -> AsyncIterator[Pool]:
    """A connection pool for the database `home`."""
    from memory.storage.postgres import Pool

    async with Pool(database_address(home)) as pool:
        yield pool


@asynccontextmanager
async def _connection(path: Path) -> AsyncIterator[aiosqlite.Connection]:
    """A connection in autocommit mode: transactions are begun explicitly.

    `synchronous=FULL`: an event leaves the inbox (one file) after its tick is checkpointed (another
    file). With NORMAL, a power failure can undo the last commits of one file alone, and so lose an
    acknowledged event.
    """
    conn = aiosqlite.connect(path, isolation_level=None, timeout=BUSY_SECONDS)
    try:
        await conn
    except BaseException as error:
        _end_thread(conn)
        if isinstance(error, sqlite3.DatabaseError):
            raise FolderError(f"cannot open {path}: {error}") from error
        raise
    try:
        await _configure(conn, path)
        yield conn
    finally:
        try:
            await conn.close()
            await _ended(conn)
        except BaseException:
            _end_thread(conn)
            raise


async def _ended(conn: aiosqlite.Connection) -> None:
    """Wait for the thread of a closed connection without blocking the event loop."""
    for _ in range(int(1_000 * BUSY_SECONDS)):
        if not conn._thread.is_alive():
            return
        await asyncio.sleep(0.001)


def _end_thread(conn: aiosqlite.Connection) -> None:
    """Wait for the connection's thread, which was told to stop. Blocking.

    Otherwise it outlives the event loop and fails when it reports to it. A task cannot wait for it:
    an ending loop cancels all tasks.
    """
    conn._thread.join(BUSY_SECONDS)


def _prepare(path: Path) -> None:
    """Set what the file remembers. Vacuuming first: it takes effect only in an empty file."""
    with closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as connection:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        use_wal(connection)


async def _configure(conn: aiosqlite.Connection, path: Path) -> None:
    try:
        await asyncio.to_thread(_prepare, path)
        await conn.execute("PRAGMA synchronous = FULL")
        await conn.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT}")
    except sqlite3.DatabaseError as error:
        raise FolderError(f"cannot open {path}: {error}") from error
