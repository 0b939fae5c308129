"""The one place where the checkpoints and the store are opened, for Python and for a server.

A server loads this file more than once and under several names (langgraph.json names it), so
nothing here may live in the module: no lock, no connection, no cache.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiosqlite

from memory.errors import FolderError
from memory.folder import Folder, open_folder
from memory.lock import FolderLock
from memory.models.seam import model_name
from memory.resources import process_resources
from memory.settings import Deployment, Settings
from memory.sqlite.saver import CircadianSaver
from memory.sqlite.store import CircadianStore
from memory.sqlite.wal import use_wal
from tools.extra import extra

log = logging.getLogger("circadian")

BUSY_SECONDS = 30.0
"""How long a statement waits for another process's transaction."""

WAL_LIMIT = 4 * 1024 * 1024
"""Bytes that a write-ahead log may keep once its content is in the database."""


@asynccontextmanager
async def open_saver(path: Path, *, keep: int = 50) -> AsyncIterator[CircadianSaver]:
    """The checkpoints in the file `path`; `keep`: checkpoints kept of each thread's root graph.

    Raises:
        FolderError: the file cannot be opened.
    """
    async with _connection(path) as conn:
        saver = CircadianSaver(conn, keep=keep)
        await saver.setup()
        yield saver


@asynccontextmanager
async def open_store(path: Path) -> AsyncIterator[CircadianStore]:
    """The store in the file `path`.

    Raises:
        FolderError: the file cannot be opened.
    """
    async with _connection(path) as conn:
        store = CircadianStore(conn)
        await store.setup()
        try:
            yield store
        finally:
            await store.aclose()


@asynccontextmanager
async def checkpointer() -> AsyncIterator[CircadianSaver]:
    """A server's checkpoints. Keeps every other process from running an agent of the folder.

    Raises:
        BusyError: an agent of the folder is running elsewhere, or another server has the folder.
    """
    deployment = Deployment()
    folder = await _folder(deployment)
    async with (
        FolderLock(folder.locks_dir, timeout=deployment.lock_timeout),
        open_saver(folder.checkpoints_db, keep=Settings().checkpoints_kept) as saver,
    ):
        yield saver


@asynccontextmanager
async def store() -> AsyncIterator[CircadianStore]:
    """A server's store; what its runs work with is made here too, before the first of them.

    Raises:
        InputError: an unknown model name, a missing key, or what the user adds cannot be had.
    """
    deployment = Deployment()
    folder = await _folder(deployment)
    async with (
        process_resources(lambda: extra(deployment, data=folder.path)) as resources,
        open_store(folder.store_db) as opened,
    ):
        log.info(
            "model %s, embedder %s, data %s",
            model_name(resources.chat_model),
            folder.embedder,
            folder.path,
        )
        yield opened


async def _folder(deployment: Deployment) -> Folder:
    return await asyncio.to_thread(
        open_folder, deployment.data, embedder=deployment.embedder, offline=deployment.offline
    )


@asynccontextmanager
async def _connection(path: Path) -> AsyncIterator[aiosqlite.Connection]:
    """A connection in autocommit mode: transactions are begun explicitly.

    `synchronous=FULL`: an event leaves the inbox (one file) once its tick is checkpointed (another
    file). With NORMAL a power failure may take back the last commits of either file, and so could
    lose an event that was acknowledged.
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
    """The closed connection's thread is about to end; a server's loop must not be blocked by it."""
    for _ in range(int(1_000 * BUSY_SECONDS)):
        if not conn._thread.is_alive():
            return
        await asyncio.sleep(0.001)


def _end_thread(conn: aiosqlite.Connection) -> None:
    """Wait for the connection's thread, which was told to stop.

    Else it outlives the event loop, and fails when it reports to it. No task can do this waiting:
    an ending loop cancels them all.
    """
    conn._thread.join(BUSY_SECONDS)


def _prepare(path: Path) -> None:
    """What stays with the file. Vacuuming first: it takes effect only while the file is empty."""
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
