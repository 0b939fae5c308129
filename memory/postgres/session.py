"""The connection that holds the locks of all agents that one event loop runs.

PostgreSQL lets a session take a lock twice, and drops all of them with the connection. So which of
these agents has a lock is kept here too, and each of them is told when the connection is lost.

Agents and servers each show that they are there, by a lock that they share with their own kind, and
then look for the other kind: of two that begin at once at least one sees the other.
"""

from __future__ import annotations

import asyncio
import math
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import psycopg
from psycopg.rows import DictRow, dict_row

from memory.lock import SERVER_PATIENCE, Refusal, patiently
from memory.postgres.address import Address
from memory.postgres.pool import AsyncConnection
from memory.postgres.schema import lock_key

T = TypeVar("T")

AGENTS, SERVERS = lock_key("agents"), lock_key("servers")

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
class Claim:
    """An agent's lock, from when it is asked for until it is given back."""

    key: int
    tell: Callable[[], None]
    """Called when the connection is lost, and with it the lock."""
    lost: bool = False
    asking: bool = False
    """A statement that may yet take the lock is sent, or waits for its turn."""


class AgentSession:
    """The connection, open as long as anybody holds a lock by it, or waits for one.

    Of one event loop. What asks for a lock and gives it back may be cancelled at any point: a
    statement that was sent is brought to its end in a task of its own.
    """

    def __init__(self, address: Address, role: str) -> None:
        self._address, self._role = address, role
        self._conn: AsyncConnection | None = None
        self._watch: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._held: dict[int, Claim] = {}
        """By key. One that was lost stays until it is given back: its run goes on until then."""
        self._users = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._refused = (-math.inf, "")
        """When the database last let nobody connect, by the loop's clock, and how it said so."""

    async def take(self, claim: Claim, what: str, timeout: float) -> None:  # noqa: ASYNC109
        """Take the lock of `claim` for the agent called `what`.

        Raises:
            BusyError: another kept it for `timeout` seconds; the message says which process.
            psycopg.Error: there is no connection.
        """
        self._users += 1
        try:
            await patiently(lambda: self._steady(self._attempt(claim, timeout)), what)
        except BaseException:
            await self.give(claim)
            raise

    async def give(self, claim: Claim) -> None:
        """Give the lock back, where it is held, and close what nobody uses any more."""
        self._users -= 1
        await self._steady(self._free(claim))

    async def _attempt(self, claim: Claim, timeout: float) -> Refusal | None:  # noqa: ASYNC109
        """Take the lock, or say why not."""
        claim.asking = True
        try:
            return await self._taken(claim, timeout)
        finally:
            claim.asking = False

    async def _taken(self, claim: Claim, timeout: float) -> Refusal | None:  # noqa: ASYNC109
        refusal = Refusal(timeout, partial(self._holder, claim.key))
        if claim.key in self._held:
            return refusal
        asked = _now()
        opened, outcome = False, "held"
        try:
            async with self._statements():
                opened = self._conn is not None
                if claim.key not in self._held:  # nor taken in the turns before
                    outcome = await self._try(claim.key, asked)
                if outcome == "taken":
                    self._held[claim.key] = claim
                    return None
        except psycopg.OperationalError:
            if not opened:
                raise
            # A connection of before, that was lost since: there may be another.
            return refusal._replace(patience=math.inf)
        if outcome == "served":
            return Refusal(min(timeout, SERVER_PATIENCE), partial(self._holder, SERVERS))
        return refusal

    async def _try(self, key: int, asked: float) -> str:
        """Whether the lock is `taken`, `held` by another, or a server runs: `served`."""
        conn = await self._connected(asked)
        await conn.execute("SELECT pg_advisory_lock_shared(%s)", (AGENTS,))
        tried = await conn.execute(_TRY, (SERVERS, key))
        outcome = str((await tried.fetchall())[0]["outcome"])
        if outcome != "taken":
            await conn.execute("SELECT pg_advisory_unlock_shared(%s)", (AGENTS,))
        return outcome

    async def _free(self, claim: Claim) -> None:
        if self._conn is None and not claim.asking:  # nothing is held by it, nobody is to be told
            self._forget(claim)
            return
        with suppress(psycopg.Error):  # a connection that is lost holds nothing
            async with self._statements():
                if self._forget(claim) and not claim.lost and self._conn is not None:
                    await self._conn.execute(
                        "SELECT pg_advisory_unlock(%s), pg_advisory_unlock_shared(%s)",
                        (claim.key, AGENTS),
                    )

    def _forget(self, claim: Claim) -> bool:
        """Whether the lock was this claim's; it is so no more."""
        if self._held.get(claim.key) is not claim:
            return False
        del self._held[claim.key]
        return True

    async def _holder(self, key: int) -> str:
        """Who holds the lock."""
        return await self._steady(self._asked(key))

    async def _asked(self, key: int) -> str:
        asked = _now()
        async with self._statements():
            if key in self._held:
                return f"process {os.getpid()} ({self._role})"
            return await holder(await self._connected(asked), key)

    @asynccontextmanager
    async def _statements(self) -> AsyncIterator[None]:
        """A turn to send statements.

        One that fails, or is cancelled, ends the connection: what it did is not known.
        """
        async with self._turn:
            try:
                await self._unwatched()
                yield
            except BaseException:
                await self._lose()
                raise
            if self._conn is not None and self._users:
                self._watch = asyncio.create_task(self._watched(self._conn))
            elif self._conn is not None:
                conn, self._conn = self._conn, None
                await conn.close()

    async def _unwatched(self) -> None:
        """End the watch, which has the connection to itself."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()
            await asyncio.wait({watch})

    async def _connected(self, asked: float) -> AsyncConnection:
        """The connection, for one who asked at that moment.

        One attempt that fails is the answer to all who waited for it: a database that does not
        answer would keep each of them through those of all the others.
        """
        refused, told = self._refused
        if self._conn is None and asked <= refused:
            raise psycopg.OperationalError(told)
        try:
            self._conn = self._conn or await connect(self._address, self._role)
        except psycopg.OperationalError as error:
            self._refused = _now(), str(error)
            raise
        return self._conn

    async def _watched(self, conn: AsyncConnection) -> None:
        await until_lost(conn)
        if conn is self._conn:
            await self._lose()

    async def _lose(self) -> None:
        """Close the connection and tell all whose locks are lost with it."""
        conn, self._conn = self._conn, None
        if conn is None:
            return
        for claim in [one for one in self._held.values() if not one.lost]:
            claim.lost = True
            claim.tell()
        await conn.close()

    async def _steady(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which comes to its end also where its caller is cancelled."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)


class AgentSessions:
    """The sessions of one open database: one for each event loop, and for each role in it."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._of: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, AgentSession]]
        self._of = WeakKeyDictionary()

    def now(self, role: str) -> AgentSession:
        """The running loop's."""
        of = self._of.setdefault(asyncio.get_running_loop(), {})
        return of.setdefault(role, AgentSession(self._address, role))


async def connect(address: Address, role: str) -> AsyncConnection:
    """A connection for locks, signed with who holds them."""
    name = f"{_SIGN}:{os.getpid()}:{role[:20]}:{_host()}"
    return await psycopg.AsyncConnection[DictRow].connect(
        address.conninfo, application_name=name, autocommit=True, row_factory=dict_row
    )


async def until_lost(conn: AsyncConnection) -> None:
    """Wait as long as the connection stands. It serves nobody else meanwhile."""
    with suppress(psycopg.Error):
        async for _ in conn.notifies():  # none come: it ends when the connection is lost
            pass


async def holders(conn: AsyncConnection, key: int) -> list[DictRow]:
    """The other connections that hold a lock."""
    found = await conn.execute(_HOLDERS, (key,))
    return await found.fetchall()


async def holder(conn: AsyncConnection, key: int) -> str:
    """Who else holds the lock, as the connection is signed."""
    rows = await holders(conn, key)
    if not rows:
        return "another process"
    sign, *parts = str(rows[0]["name"]).split(":", 3)
    if sign != _SIGN or len(parts) < 3:
        return f"connection {rows[0]['pid']} ({rows[0]['name'] or 'unnamed'})"
    pid, role, host = parts
    return f"process {pid} ({role})" + ("" if host == _host() else f" on {host}")


def _now() -> float:
    return asyncio.get_running_loop().time()


def _host() -> str:
    return socket.gethostname()[:24]
