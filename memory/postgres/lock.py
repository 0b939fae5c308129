"""The writer's lock in a database, by PostgreSQL's advisory locks.

A lock belongs to a connection: PostgreSQL releases it when its holder dies. The agents of a process
share one (`memory.postgres.session`), a server has one of its own. Servers share a database, and
exclude agents; their runs of one thread are put in order by what hands runs out.

Nothing of this works through a proxy that gives each transaction another connection.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self

import psycopg
from tenacity import retry, retry_if_exception_type, wait_fixed

from memory.errors import DatabaseDown
from memory.lock import Refusal, patiently
from memory.postgres.address import Address
from memory.postgres.pool import AsyncConnection, clear_errors
from memory.postgres.schema import lock_key
from memory.postgres.session import (
    AGENTS,
    SERVERS,
    AgentSession,
    AgentSessions,
    Claim,
    connect,
    holder,
    holders,
    until_lost,
)

log = logging.getLogger("circadian")

RETRY = 1.0
"""Seconds between two tries of a server that lost its connection."""


class DatabaseAgentLock:
    """The right to run the agent of one thread, and to keep servers off meanwhile.

    Where its connection is lost, the task that took it is cancelled: the lock may be another's.
    Not re-entrant: tasks that share one handle exclude each other, as separate handles do.
    """

    def __init__(
        self,
        address: Address,
        thread: str,
        *,
        sessions: AgentSessions,
        role: str = "circadian",
        timeout: float = 30.0,
    ) -> None:
        """`sessions`: those of the open database, whose locks share a connection."""
        self._address, self._role, self._timeout = address, role, timeout
        self._what = f"the agent with thread {thread!r}"
        self._key = lock_key("agent", thread)
        self._sessions = sessions
        self._holding: tuple[AgentSession, Claim] | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._stopped: asyncio.Task[object] | None = None
        """The task that was cancelled since the lock was lost."""

    async def acquire(self) -> None:
        """Take the lock.

        Raises:
            BusyError: another handle kept it for `timeout` seconds; the message says which process.
            DatabaseDown: there is no connection.
        """
        session, claim = self._sessions.now(self._role), Claim(self._key, self._lost)
        with clear_errors(self._address.name):
            await session.take(claim, self._what, self._timeout)
        self._holding = session, claim
        self._task, self._stopped = asyncio.current_task(), None
        self._cancelling = self._task.cancelling() if self._task else 0
        if claim.lost:  # before this task went on
            self._lost()

    async def release(self) -> None:
        """Give the lock back. Does nothing where it is not held."""
        holding, self._holding = self._holding, None
        if holding is not None:
            session, claim = holding
            await session.give(claim)

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

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

    def _lost(self) -> None:
        """The connection is gone, and with it the lock."""
        if self._holding is not None and self._task is not None:
            self._stopped = self._task
            self._task.cancel()


class DatabaseServerLock:
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
        self._address, self._role, self._timeout = address, role, timeout
        self._what = f"the database {address.name}"
        self._mode = "" if alone else "_shared"
        self._conn: AsyncConnection | None = None
        self._watch: asyncio.Task[None] | None = None

    async def acquire(self) -> None:
        """Take the lock. Raises as `DatabaseAgentLock.acquire`."""
        with clear_errors(self._address.name):
            conn = await connect(self._address, self._role)
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

    def _hold(self, conn: AsyncConnection) -> None:
        self._conn = conn
        self._watch = asyncio.create_task(self._watched(conn), name=f"lock of {self._what}")

    async def _watched(self, conn: AsyncConnection) -> None:
        await until_lost(conn)
        await conn.close()
        log.warning("%s closed the connection that held the server's lock", self._what)
        self._hold(await self._retake())
        log.warning("%s: the server's lock is taken again", self._what)

    async def _attempt(self, conn: AsyncConnection) -> Refusal | None:
        """Take the lock over `conn`, or say why not."""
        if not await self._taken(conn, "pg_try_advisory_lock"):
            return Refusal(self._timeout, partial(holder, conn, SERVERS))
        if not await holders(conn, AGENTS):
            return None
        await _free(conn)
        return Refusal(self._timeout, partial(holder, conn, AGENTS))

    @retry(retry=retry_if_exception_type(psycopg.Error), wait=wait_fixed(RETRY))
    async def _retake(self) -> AsyncConnection:
        conn = await connect(self._address, self._role)
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
