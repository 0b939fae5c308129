"""The writer's lock in a database, made of PostgreSQL's advisory locks.

PostgreSQL drops an advisory lock together with its connection, so a killed process leaves none
behind. All agents of an event loop share one connection, since a database takes few of them; each
server has its own. Agents and servers first take a shared lock that shows their kind, then look for
the other kind: of two that start at once, at least one sees the other.

Advisory locks do not work through a proxy that gives each transaction a different connection.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

import psycopg
from psycopg.rows import DictRow, dict_row
from tenacity import retry, retry_if_exception_type, wait_fixed

from memory.errors import DatabaseDown
from memory.installation.locks import SERVER_PATIENCE, Contention, called, retry_while_contended
from memory.storage.postgres import Address, AsyncConnection, clear_errors, lock_key

T = TypeVar("T")

log = logging.getLogger("circadian")

AGENTS, SERVERS = lock_key("agents"), lock_key("servers")

RETRY = 1.0
"""Seconds between two attempts of a server to retake a lost lock."""

_SIGN = "circadian"

_OTHERS = """
FROM pg_locks AS lock LEFT JOIN pg_stat_activity AS activity ON activity.pid = lock.pid
WHERE lock.locktype = 'advisory' AND lock.granted AND lock.pid <> pg_backend_pid()
    AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND lock.objsubid = 1 AND (lock.classid::bigint << 32) + lock.objid::bigint = %s
"""

_HOLDERS = f"""
SELECT coalesce(activity.application_name, '') AS name, lock.pid {_OTHERS} ORDER BY lock.pid
"""

_TRY = f"""
SELECT CASE WHEN EXISTS (SELECT {_OTHERS}) THEN 'served'
    WHEN pg_try_advisory_lock(%s) THEN 'taken' ELSE 'held' END AS outcome
"""


@dataclass(eq=False)
class LockClaim:
    """An agent's lock, from the first attempt to take it until it is given back."""

    key: int
    on_loss: Callable[[], None]
    """Called when the connection is lost, and with it the lock."""
    held: bool = False
    lost: bool = False


class _ConnectionLost(psycopg.OperationalError):
    """An open connection ended; another attempt opens a new one."""


class LockConnection:
    """The connection that holds the agents' locks of one event loop.

    It opens for the first agent and closes after the last. A statement always runs to its end, even
    if its caller is cancelled: otherwise nobody would know whether it took the lock.
    """

    def __init__(self, address: Address, role: str) -> None:
        self.address, self._role = address, role
        self._opening: asyncio.Task[AsyncConnection] | None = None
        self._turn = asyncio.Lock()
        self._claims: dict[int, LockClaim] = {}
        """Held or being asked for. A lost claim stays until its run has ended and gives it back."""
        self._users = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    async def take(self, claim: LockClaim, what: str, timeout: float) -> None:  # noqa: ASYNC109
        """Take the lock of `claim` for the agent called `what`."""
        self._users += 1
        try:
            await retry_while_contended(lambda: self._attempt(claim, timeout), what)
        except BaseException:
            await self.give(claim)
            raise

    async def give(self, claim: LockClaim) -> None:
        """Give the lock back if it is held. Closes the connection after its last user."""
        await self._finish(self._give(claim))

    async def _attempt(self, claim: LockClaim, timeout: float) -> Contention | None:  # noqa: ASYNC109
        refusal = Contention(timeout, partial(self._holder, claim.key))
        if self._claims.setdefault(claim.key, claim) is not claim:
            return refusal
        try:
            outcome = await self._finish(self._try(claim))
        except psycopg.Error:  # unlike a cancelled attempt, a failed one holds nothing
            del self._claims[claim.key]
            raise
        if outcome == "taken":
            return None
        del self._claims[claim.key]
        if outcome == "lost":
            return refusal._replace(patience=max(timeout, SERVER_PATIENCE))
        if outcome == "served":
            return Contention(min(timeout, SERVER_PATIENCE), partial(self._holder, SERVERS))
        return refusal

    async def _try(self, claim: LockClaim) -> str:
        """The outcome: `taken`, `held` by a process, `served` by a server; or `lost`: try again."""
        try:
            [row] = await self._ask(_TRY, SERVERS, claim.key)
        except _ConnectionLost:
            return "lost"
        claim.held = row["outcome"] == "taken"
        return str(row["outcome"])

    async def _give(self, claim: LockClaim) -> None:
        self._users -= 1
        opening = self._opening
        try:
            if opening is not None and not self._users:
                self._opening = None  # whoever comes now opens another
                await self._close(opening)
            elif opening is not None and not claim.lost and self._claims.get(claim.key) is claim:
                with suppress(psycopg.Error):  # a lost connection holds nothing
                    await self._ask("SELECT pg_advisory_unlock(%s)", claim.key)
        finally:
            if self._claims.get(claim.key) is claim:
                del self._claims[claim.key]

    async def _holder(self, key: int) -> str:
        if key in self._claims:
            return f"process {os.getpid()} ({self._role})"
        return named(await self._finish(self._ask(_HOLDERS, key)))

    async def _ask(self, query: str, *params: int) -> list[DictRow]:
        """The rows of a statement. A statement that fails or is broken off ends the connection."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        # All callers share one attempt: a dead database must not cost each of them its timeout.
        conn = await asyncio.shield(self._opening)
        async with self._turn:
            try:
                found = await conn.execute(query, params)
                rows = await found.fetchall()
            except BaseException as error:
                self._lose(conn)
                if isinstance(error, psycopg.OperationalError):
                    raise _ConnectionLost(*error.args) from error
                raise
            self._watch(conn)
            return rows

    async def _open(self) -> AsyncConnection:
        try:
            conn = await connect(self.address, self._role)
            try:
                await conn.execute("SELECT pg_advisory_lock_shared(%s)", (AGENTS,))
            except BaseException:
                await conn.close()
                raise
        except BaseException:
            self._opening = None
            raise
        self._watch(conn)
        return conn

    async def _close(self, opening: asyncio.Task[AsyncConnection]) -> None:
        with suppress(psycopg.Error):
            conn = await opening
            async with self._turn, conn:
                # Closing alone would free the locks only when the server notices.
                await conn.execute("SELECT pg_advisory_unlock_all()")

    def _watch(self, conn: AsyncConnection) -> None:
        """Notice at once when the server closes the idle connection."""
        asyncio.get_running_loop().add_reader(conn.fileno(), self._look, conn)

    def _look(self, conn: AsyncConnection) -> None:
        # First: libpq may close the socket, whose number must not stay registered.
        asyncio.get_running_loop().remove_reader(conn.fileno())
        try:
            conn.pgconn.consume_input()
        except psycopg.OperationalError:
            self._lose(conn)
        else:
            self._watch(conn)

    def _lose(self, conn: AsyncConnection) -> None:
        """Close the connection and tell everybody whose lock is lost with it."""
        if not conn.closed:
            asyncio.get_running_loop().remove_reader(conn.fileno())
        conn.pgconn.finish()
        opening = self._opening
        if opening is None or not opening.done() or opening.result() is not conn:
            return
        self._opening = None
        for claim in [claim for claim in self._claims.values() if claim.held]:
            claim.held, claim.lost = False, True
            claim.on_loss()

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which runs to its end even if the caller is cancelled."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)


class LockConnections:
    """The lock connections of an open database: one for each event loop and role."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, LockConnection]]
        self._by_loop = WeakKeyDictionary()

    def current(self, role: str) -> LockConnection:
        """The running event loop's connection for `role`."""
        by_role = self._by_loop.setdefault(asyncio.get_running_loop(), {})
        return by_role.setdefault(role, LockConnection(self.address, role))


class DatabaseAgentLock:
    """The right to run the agent of one thread, and to keep servers off meanwhile.

    If its connection is lost, the task that took the lock is cancelled: another process may hold
    the lock by now. Not re-entrant: tasks that share a handle exclude each other, too.
    """

    def __init__(
        self,
        connections: LockConnections,
        thread: str,
        *,
        name: str | None = None,
        role: str = "circadian",
        timeout: float = 30.0,
    ) -> None:
        self._connections, self._role, self._timeout = connections, role, timeout
        self._what = called(thread, name)
        self._key = lock_key("agent", thread)
        self._holding: tuple[LockConnection, LockClaim] | None = None
        self._stop: asyncio.Timeout | None = None
        """Expires when the lock is lost: a timeout cancels its task and undoes that correctly."""

    async def acquire(self) -> None:
        """Take the lock.

        Raises:
            BusyError: another holder kept it for `timeout` seconds; the message names the process.
            DatabaseDown: there is no connection.
        """
        connection, claim = self._connections.current(self._role), LockClaim(self._key, self._lost)
        with clear_errors(self._connections.address.name):
            await connection.take(claim, self._what, self._timeout)
        self._holding = connection, claim
        self._stop = await asyncio.timeout(None).__aenter__()
        if claim.lost:  # before this task went on
            self._lost()

    async def release(self) -> None:
        """Give the lock back. Does nothing if it is not held."""
        holding, self._holding, self._stop = self._holding, None, None
        if holding is not None:
            connection, claim = holding
            await connection.give(claim)

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the lock back.

        Raises:
            DatabaseDown: the lock was lost and the task cancelled for it.
        """
        stop, self._stop = self._stop, None
        try:
            if stop is not None:
                await stop.__aexit__(kind, error, trace)
        except TimeoutError:
            raise DatabaseDown(
                f"the database {self._connections.address.name} closed the connection that held "
                "the lock, and the run was stopped; what had been accepted is kept: run again, and "
                "it goes on"
            ) from error
        finally:
            await self.release()

    def _lost(self) -> None:
        if self._stop is not None:
            self._stop.reschedule(asyncio.get_running_loop().time())


class DatabaseServerLock:
    """A server's right to run every agent of the database, shared with other servers.

    With `alone` it is shared with nobody, as while all vectors change. A lock whose connection is
    lost is retaken as soon as possible.
    """

    def __init__(self, address: Address, *, timeout: float = 30.0, alone: bool = False) -> None:
        self._address, self._timeout = address, timeout
        self._what = f"the database {address.name}"
        self._mode = "" if alone else "_shared"
        self._conn: AsyncConnection | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def acquire(self) -> None:
        """Take the lock. Raises as `DatabaseAgentLock.acquire`."""
        with clear_errors(self._address.name):
            conn = await connect(self._address, "server")
            try:
                await retry_while_contended(partial(self._attempt, conn), self._what)
            except BaseException:
                await conn.close()
                raise
        self._conn = conn
        self._keeper = asyncio.create_task(self._keep(), name=f"lock of {self._what}")

    async def release(self) -> None:
        """Give the lock back. Does nothing if it is not held."""
        keeper, self._keeper = self._keeper, None
        if keeper is None or self._conn is None:
            return
        keeper.cancel()
        await asyncio.wait({keeper})
        try:
            with suppress(psycopg.Error):  # a lost connection holds nothing
                await _free(self._conn)
        finally:
            await self._conn.close()

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.release()

    async def _keep(self) -> None:
        while self._conn is not None:
            await _until_lost(self._conn)
            await self._conn.close()
            log.warning("%s closed the connection that held the server's lock", self._what)
            self._conn = await self._retaken()
            log.warning("%s: the server's lock is taken again", self._what)

    async def _attempt(self, conn: AsyncConnection) -> Contention | None:
        if not await self._take(conn, "pg_try_advisory_lock"):
            return Contention(self._timeout, partial(_holder, conn, SERVERS))
        if not await _holders(conn, AGENTS):
            return None
        await _free(conn)
        return Contention(self._timeout, partial(_holder, conn, AGENTS))

    @retry(retry=retry_if_exception_type(psycopg.Error), wait=wait_fixed(RETRY))
    async def _retaken(self) -> AsyncConnection:
        conn = await connect(self._address, "server")
        try:
            # An agent that started meanwhile ends its run; no other starts one.
            await self._take(conn, "pg_advisory_lock")
        except BaseException:
            await conn.close()
            raise
        return conn

    async def _take(self, conn: AsyncConnection, function: str) -> bool:
        """Whether the lock was taken; a `function` that waits always takes it."""
        tried = await conn.execute(f"SELECT {function}{self._mode}(%s) AS taken", (SERVERS,))
        return await tried.fetchone() != {"taken": False}


async def connect(address: Address, role: str) -> AsyncConnection:
    """A connection for locks, named after its process so that others can say who holds them."""
    name = f"{_SIGN}:{os.getpid()}:{role[:20]}:{_host()}"
    return await psycopg.AsyncConnection[DictRow].connect(
        address.conninfo, application_name=name, autocommit=True, row_factory=dict_row
    )


def named(holders: list[DictRow]) -> str:
    """How to call the first of the connections that hold a lock."""
    if not holders:
        return "another process"
    sign, *parts = str(holders[0]["name"]).split(":", 3)
    if sign != _SIGN or len(parts) < 3:
        return f"connection {holders[0]['pid']} ({holders[0]['name'] or 'unnamed'})"
    pid, role, host = parts
    return f"process {pid} ({role})" + ("" if host == _host() else f" on {host}")


async def _holder(conn: AsyncConnection, key: int) -> str:
    return named(await _holders(conn, key))


async def _holders(conn: AsyncConnection, key: int) -> list[DictRow]:
    found = await conn.execute(_HOLDERS, (key,))
    return await found.fetchall()


async def _free(conn: AsyncConnection) -> None:
    await conn.execute("SELECT pg_advisory_unlock_all()")


async def _until_lost(conn: AsyncConnection) -> None:
    """Wait as long as the connection stands. It serves nothing else meanwhile."""
    with suppress(psycopg.Error):
        async for _ in conn.notifies():  # none come; the loop ends with the connection
            pass


def _host() -> str:
    return socket.gethostname()[:24]
