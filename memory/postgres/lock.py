"""The writer's lock in a database, by PostgreSQL's advisory locks.

A lock is held by a connection of its own: PostgreSQL releases it when its holder dies. Agents and
servers each show that they are there, by a lock that they share with their own kind, and then look
for the other kind: of two that begin at once at least one sees the other. Servers share a database,
and exclude agents; their runs of one thread are put in order by what hands runs out.

Nothing of this works through a proxy that gives each transaction another connection.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self

import psycopg
from psycopg.rows import DictRow, dict_row
from tenacity import retry, retry_if_exception_type, wait_fixed

from memory.errors import DatabaseDown
from memory.lock import SERVER_PATIENCE, Refusal, patiently
from memory.postgres.address import Address
from memory.postgres.pool import AsyncConnection, clear_errors
from memory.postgres.schema import lock_key

log = logging.getLogger("circadian")

AGENTS, SERVERS = lock_key("agents"), lock_key("servers")

RETRY = 1.0
"""Seconds between two tries of a server that lost its connection."""

_SIGN = "circadian"

_HOLDERS = """
SELECT coalesce(activity.application_name, '') AS name, lock.pid
FROM pg_locks AS lock LEFT JOIN pg_stat_activity AS activity ON activity.pid = lock.pid
WHERE lock.locktype = 'advisory' AND lock.granted AND lock.pid <> pg_backend_pid()
    AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND lock.objsubid = 1 AND (lock.classid::bigint << 32) + lock.objid::bigint = %s
ORDER BY lock.pid
"""


class DatabaseLock(ABC):
    """A lock that lives as long as its connection.

    Not re-entrant: tasks that share one handle exclude each other, as separate handles do.
    """

    def __init__(self, address: Address, what: str, role: str, timeout: float) -> None:
        self._address, self._what, self._role = address, what, role
        self._timeout = timeout
        self._conn: AsyncConnection | None = None
        self._watch: asyncio.Task[None] | None = None

    async def acquire(self) -> None:
        """Take the lock.

        Raises:
            BusyError: another handle kept it for `timeout` seconds; the message says which process.
            DatabaseDown: there is no connection.
        """
        with clear_errors(self._address.name):
            conn = await self._connect()
            try:
                await patiently(partial(self._attempt, conn), self._what)
            except BaseException:
                await conn.close()
                raise
        self._hold(conn)

    async def release(self) -> None:
        """Give the lock back. Does nothing where it is not held."""
        conn, watch = self._conn, self._watch
        self._conn = self._watch = None
        if conn is None or watch is None:
            return
        try:
            watch.cancel()
            await asyncio.wait({watch})
            with suppress(psycopg.Error):  # a connection that is lost holds nothing
                await _free(conn)
        finally:
            await conn.close()

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.release()

    @abstractmethod
    async def _attempt(self, conn: AsyncConnection) -> Refusal | None:
        """Take the lock over `conn`, or say why not."""

    @abstractmethod
    async def _lost(self) -> None:
        """The connection is gone, and with it the lock."""

    def _hold(self, conn: AsyncConnection) -> None:
        self._conn = conn
        self._watch = asyncio.create_task(self._watched(conn), name=f"lock of {self._what}")

    async def _watched(self, conn: AsyncConnection) -> None:
        with suppress(psycopg.Error):
            async for _ in conn.notifies():  # none come: it ends when the connection is lost
                pass
        await conn.close()
        await self._lost()

    async def _connect(self) -> AsyncConnection:
        name = f"{_SIGN}:{os.getpid()}:{self._role[:20]}:{_host()}"
        return await psycopg.AsyncConnection[DictRow].connect(
            self._address.conninfo, application_name=name, autocommit=True, row_factory=dict_row
        )


class DatabaseAgentLock(DatabaseLock):
    """The right to run the agent of one thread, and to keep servers off meanwhile.

    Where its connection is lost, the task that took it is cancelled: the lock may be another's.
    """

    def __init__(
        self, address: Address, thread: str, *, role: str = "circadian", timeout: float = 30.0
    ) -> None:
        super().__init__(address, f"the agent with thread {thread!r}", role, timeout)
        self._key = lock_key("agent", thread)
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._stopped: asyncio.Task[object] | None = None
        """The task that was cancelled since the lock was lost."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the lock back. Raises DatabaseDown where the task was cancelled for its loss."""
        if self._stopped is None:
            await self.release()
            return
        only_for_this = self._stopped.uncancel() <= self._cancelling
        arrived = isinstance(error, asyncio.CancelledError)
        if not arrived:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        await self.release()
        if arrived and only_for_this:
            raise DatabaseDown(
                f"the database {self._address.name} closed the connection that held the lock, and "
                "the run was stopped; what had been accepted is kept: run again, and it goes on"
            ) from error

    async def _attempt(self, conn: AsyncConnection) -> Refusal | None:
        await conn.execute("SELECT pg_advisory_lock_shared(%s)", (AGENTS,))
        if await _holders(conn, SERVERS):
            await _free(conn)
            return Refusal(min(self._timeout, SERVER_PATIENCE), partial(_holder, conn, SERVERS))
        tried = await conn.execute("SELECT pg_try_advisory_lock(%s) AS taken", (self._key,))
        if await tried.fetchone() != {"taken": True}:
            await _free(conn)
            return Refusal(self._timeout, partial(_holder, conn, self._key))
        return None

    def _hold(self, conn: AsyncConnection) -> None:
        self._task, self._stopped = asyncio.current_task(), None
        self._cancelling = self._task.cancelling() if self._task else 0
        super()._hold(conn)

    async def _lost(self) -> None:
        if self._task is not None:
            self._stopped = self._task
            self._task.cancel()


class DatabaseServerLock(DatabaseLock):
    """The right to run every agent of the database, shared by servers: as long as one lives.

    `alone` it is shared with none, as long as all vectors change. Where its connection is lost it
    is taken again, as soon as that can be done.
    """

    def __init__(
        self,
        address: Address,
        *,
        role: str = "server",
        timeout: float = 30.0,
        alone: bool = False,
    ) -> None:
        super().__init__(address, f"the database {address.name}", role, timeout)
        self._mode = "" if alone else "_shared"

    async def _attempt(self, conn: AsyncConnection) -> Refusal | None:
        if not await self._taken(conn, "pg_try_advisory_lock"):
            return Refusal(self._timeout, partial(_holder, conn, SERVERS))
        if not await _holders(conn, AGENTS):
            return None
        await _free(conn)
        return Refusal(self._timeout, partial(_holder, conn, AGENTS))

    async def _lost(self) -> None:
        log.warning("%s closed the connection that held the server's lock", self._what)
        self._hold(await self._retake())
        log.warning("%s: the server's lock is taken again", self._what)

    @retry(retry=retry_if_exception_type(psycopg.Error), wait=wait_fixed(RETRY))
    async def _retake(self) -> AsyncConnection:
        conn = await self._connect()
        try:
            # An agent that came between ends its run; no other begins one.
            await self._taken(conn, "pg_advisory_lock")
        except BaseException:
            await conn.close()
            raise
        return conn

    async def _taken(self, conn: AsyncConnection, how: str) -> bool:
        """Whether PostgreSQL's function `how` gave the lock; what only waits always does."""
        tried = await conn.execute(f"SELECT {how}{self._mode}(%s) AS taken", (SERVERS,))
        return await tried.fetchone() != {"taken": False}


async def _free(conn: AsyncConnection) -> None:
    await conn.execute("SELECT pg_advisory_unlock_all()")


async def _holders(conn: AsyncConnection, key: int) -> list[DictRow]:
    found = await conn.execute(_HOLDERS, (key,))
    return await found.fetchall()


async def _holder(conn: AsyncConnection, key: int) -> str:
    """Who holds the lock, as the connection is signed."""
    rows = await _holders(conn, key)
    if not rows:
        return "another process"
    sign, *parts = str(rows[0]["name"]).split(":", 3)
    if sign != _SIGN or len(parts) < 3:
        return f"connection {rows[0]['pid']} ({rows[0]['name'] or 'unnamed'})"
    pid, role, host = parts
    return f"process {pid} ({role})" + ("" if host == _host() else f" on {host}")


def _host() -> str:
    return socket.gethostname()[:24]
