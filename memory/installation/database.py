"""An installation in a PostgreSQL database, which several hosts can share, and its writers' locks.

The locks are advisory: PostgreSQL drops one together with its connection, so a killed process
leaves none behind. All agents of an event loop share one connection; each server has its own. Both
first take a shared lock that shows their kind, then look for the other kind: of two that start at
once, at least one sees the other. A proxy must not change connections in between.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import psycopg
from langchain_core.embeddings import Embeddings
from psycopg.rows import DictRow, class_row, dict_row
from pydantic import SecretStr
from tenacity import retry, retry_if_exception_type, wait_fixed

from memory.errors import NOT_ACCEPTED, DatabaseDown, FolderError, NewerError
from memory.facts import postgres
from memory.facts.postgres import PostgresTable
from memory.installation.folder import (
    PRODUCT,
    SERVER_PATIENCE,
    Contention,
    InstalledMemory,
    Metadata,
    WantedEmbedder,
    WriterLock,
    called,
    retry_while_contended,
)
from memory.storage.postgres import (
    SESSION,
    Address,
    AsyncConnection,
    BlockingPool,
    Connection,
    address_of,
    clear_errors,
    lock_key,
)

T = TypeVar("T")

log = logging.getLogger("circadian")

_LOOK = """
SELECT current_setting('server_version'),
    coalesce(
        (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
        (SELECT default_version FROM pg_available_extensions WHERE name = 'vector')
    ),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')::int
"""


class Examined(NamedTuple):
    """The state of a database's server."""

    name: str
    """Host and database."""
    server: str
    """PostgreSQL's version."""
    vector: str | None
    """pgvector's version; None if the server does not have that extension."""
    connections: int
    """Open connections, this one included."""
    most: int
    """Connections that the server allows."""
    seconds: float
    """Time to connect and get the answer."""


def examine(url: SecretStr) -> Examined:
    """Examine the database at `url`; changes nothing. Blocking. Raises DatabaseDown, InputError."""
    address, began = address_of(url), time.monotonic()
    with _connected(address) as conn:
        row = conn.execute(_LOOK).fetchone()
    assert row is not None
    server, vector, connections, most = row
    return Examined(address.name, server, vector, connections, most, time.monotonic() - began)


DATABASE_SCHEMA = 3
"""The version of the tables. It counts every change that an older version cannot read."""


class Database(InstalledMemory):
    """An open database. Opening one writes nothing, unless it is new or of an older form."""

    def __init__(self, address: Address, head: Metadata, load: Callable[[], Embeddings]) -> None:
        super().__init__(head.embedder, head.dimension, load)
        self.address, self.name = address, address.name
        self._opened: BlockingPool | None = None
        self.lock_connections = LockConnections()

    @property
    def mem0_dir(self) -> Path:
        """A folder for files that Mem0 writes at import; nobody reads them."""
        return Path(self._scratch.name)

    @cached_property
    def _scratch(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="circadian-mem0-", ignore_cleanup_errors=True)

    def agent_lock(
        self, thread: str, *, name: str | None = None, timeout: float = 30.0
    ) -> WriterLock:
        """The right to run the agent of one thread. An event loop's locks share a connection."""
        place = self.lock_connections, self.address, thread
        return hold_agent(*place, name=name, patience=timeout)

    def server_lock(self, *, timeout: float = 30.0, alone: bool = False) -> WriterLock:
        """A server's right to run every agent, shared with other servers or `alone`."""
        return hold_server(self.address, patience=timeout, alone=alone)

    def close(self) -> None:
        """Close its connections. A later call opens them again."""
        self.semantic.close()
        pool, self._opened = self._opened, None
        if pool is not None:
            pool.close()
        self._scratch.cleanup()

    def open_facts(self) -> PostgresTable:
        """The table of facts, brought up to date. To be closed."""
        if self._opened is None:
            self._opened = BlockingPool(self.address)
        return PostgresTable(self._opened, model=self.embedder, dimension=self.dimension)


def open_database(
    url: SecretStr,
    *,
    embedder: str | None = None,
    offline: bool = False,
    embeddings: Embeddings | None = None,
    change: bool = False,
) -> Database:
    """Open the database at `url`; write its metadata if it is new. Blocking.

    An older version's is upgraded first. Raises as `open_folder`; also DatabaseDown.
    """
    address = address_of(url)
    wanted = WantedEmbedder(embedder, offline, embeddings)
    with _connected(address) as conn:
        head = _read(conn, address) or _make(conn, address, wanted.new(DATABASE_SCHEMA))
        if change and (new := wanted.changed(head)) != head:
            head = _write(conn, new)
        wanted.check(head, f"the database {address.name}")
        if head.schema_version < DATABASE_SCHEMA:
            _bring_up_to_date(conn, address)
    return Database(address, head, lambda: wanted.load(head.embedder))


def is_made(url: SecretStr) -> bool:
    """Whether the database at `url` holds an installation. Writes nothing; raises as above."""
    with _connected(address := address_of(url)) as conn:
        return _read(conn, address) is not None


@contextmanager
def _connected(address: Address) -> Iterator[Connection]:
    with (
        clear_errors(address.name, lambda: NOT_ACCEPTED),
        psycopg.connect(address.conninfo, autocommit=True) as conn,
    ):
        yield conn


def _read(conn: Connection, address: Address) -> Metadata | None:
    columns = "schema_version, embedder, dimension"
    with conn.cursor(row_factory=class_row(Metadata)) as cursor:
        try:
            head = cursor.execute(f"SELECT {columns} FROM circadian_head").fetchone()
        except psycopg.errors.UndefinedTable:
            return None
    if head is not None:
        _check_schema(head.schema_version, address)
    return head


def _check_schema(version: int, address: Address) -> None:
    if version > DATABASE_SCHEMA:
        raise NewerError(
            f"the database {address.name} was made by a newer Circadian (schema {version}, this "
            f"one reads {DATABASE_SCHEMA}); update Circadian"
        )


def _make(conn: Connection, address: Address, head: Metadata) -> Metadata:
    """Write the metadata, unless another process just did; return the stored metadata."""
    known = conn.execute("SELECT FROM pg_available_extensions WHERE name = 'vector'")
    if known.fetchone() is None:
        raise FolderError(
            f"the database {address.name} has no pgvector: install that extension on its server"
        )
    with conn.transaction():
        conn.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key("schema"),))
        conn.execute(
            "CREATE TABLE IF NOT EXISTS circadian_head ("
            " one BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one),"
            " schema_version INTEGER NOT NULL, embedder TEXT NOT NULL, dimension INTEGER NOT NULL)"
        )
        return _read(conn, address) or _write(conn, head)


def _bring_up_to_date(conn: Connection, address: Address) -> None:
    """Upgrade the tables, and the version that older programs check, in one transaction."""
    conn.execute(SESSION)
    with conn.transaction():
        postgres.bring_up_to_date(conn, address.name)
        conn.execute(
            "UPDATE circadian_head SET schema_version = %(form)s WHERE schema_version < %(form)s",
            {"form": DATABASE_SCHEMA},
        )


def _write(conn: Connection, head: Metadata) -> Metadata:
    conn.execute(
        "INSERT INTO circadian_head (schema_version, embedder, dimension)"
        " VALUES (%(schema_version)s, %(embedder)s, %(dimension)s)"
        " ON CONFLICT (one) DO UPDATE SET schema_version = EXCLUDED.schema_version,"
        " embedder = EXCLUDED.embedder, dimension = EXCLUDED.dimension",
        head.model_dump(),
    )
    return head


# The locks of agents and servers.

AGENTS, SERVERS = lock_key("agents"), lock_key("servers")

RETRY = 1.0
"""Seconds between two attempts of a server to retake a lost lock."""

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
    WHEN pg_try_advisory_lock(%s) THEN 'taken' ELSE 'held' END AS outcome,
    (SELECT schema_version FROM circadian_head) AS schema_version
"""

_FREE = "SELECT pg_advisory_unlock_all()"


@dataclass(eq=False)
class LockClaim:
    """An agent's lock, from the first attempt to take it until it is given back."""

    key: int
    held: bool = False
    lost: bool = False
    stop: asyncio.Timeout | None = None
    """Expires when the lock is lost: a timeout cancels its task and undoes that correctly."""

    def lose(self) -> None:
        """The connection is lost, and with it the lock."""
        self.held, self.lost = False, True
        if self.stop is not None:
            self.stop.reschedule(asyncio.get_running_loop().time())


Work = Callable[[AsyncConnection], Awaitable[Any]]

Questions = asyncio.Queue[tuple[Work, asyncio.Future[Any]] | None]
"""What the connection's task is to do; None: nobody needs the connection any longer."""


class _ConnectionLost(psycopg.OperationalError):
    """An open connection ended; another attempt opens a new one."""


class LockConnection:
    """The connection that holds the agents' locks of one event loop, from the first to the last.

    One task makes all statements in turn, so that each runs to its end even if its caller is
    cancelled: otherwise nobody would know whether it took the lock.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._asked: Questions | None = None
        self._serving: asyncio.Task[None] | None = None
        self.claims: dict[int, LockClaim] = {}
        """Held or being asked for. A lost claim stays until its run has ended and gives it back."""
        self._users = 0

    async def take(self, claim: LockClaim, what: str, patience: float) -> None:
        """Take the lock of `claim` for the agent called `what`. Call `give` after it, always."""
        self._users += 1
        await retry_while_contended(lambda: self._attempt(claim, patience), what)

    async def give(self, claim: LockClaim) -> None:
        """Give the lock back if it is held. Closes the connection after its last user."""
        self._users -= 1
        asked, serving = self._asked, self._serving
        own = self.claims.get(claim.key) is claim
        try:
            if asked is not None and serving is not None and not self._users:
                self._asked = None  # the next caller opens another
                asked.put_nowait(None)
                await asyncio.wait({serving})
            elif asked is not None and own and not claim.lost:
                with suppress(psycopg.Error):  # a lost connection holds nothing
                    await self._ask(partial(_rows, "SELECT pg_advisory_unlock(%s)", claim.key))
        finally:
            if own:
                del self.claims[claim.key]

    async def _attempt(self, claim: LockClaim, patience: float) -> Contention | None:
        refusal = Contention(patience, partial(self._holder, claim.key))
        if self.claims.setdefault(claim.key, claim) is not claim:
            return refusal
        try:
            outcome, version = await self._ask(partial(_try, claim))
        except _ConnectionLost:
            refusal = refusal._replace(patience=max(patience, SERVER_PATIENCE))
            outcome, version = "lost", 0
        except psycopg.Error:  # unlike a cancelled attempt, a failed one holds nothing
            del self.claims[claim.key]
            raise
        if outcome == "taken":
            # A newer program may have upgraded the database since it was opened.
            _check_schema(version, self._address)
            return None
        del self.claims[claim.key]
        if outcome == "served":
            return Contention(min(patience, SERVER_PATIENCE), partial(self._holder, SERVERS))
        return refusal

    async def _holder(self, key: int) -> str:
        if key in self.claims:
            return f"process {os.getpid()} ({PRODUCT})"
        return await self._ask(partial(_holder, key))

    async def _ask(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Have the connection's task do `work`. All callers share one attempt to connect."""
        if self._asked is None:
            self._asked = asyncio.Queue()
            self._serving = asyncio.create_task(self._serve(self._asked))
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._asked.put_nowait((work, answer))
        return await answer

    async def _serve(self, asked: Questions) -> None:
        """Connect and do what is asked, until nobody needs the connection or it is lost."""
        error: psycopg.Error = _ConnectionLost("the database closed the connection")
        opened, unanswered = False, list[asyncio.Future[Any]]()
        try:
            async with _named_connection(self._address, PRODUCT) as conn:
                await _rows("SELECT pg_advisory_lock_shared(%s)", AGENTS, conn)
                opened = True
                while (question := await _next(asked, conn)) is not None:
                    work, answer = question
                    unanswered.append(answer)
                    result = await work(conn)
                    unanswered.clear()
                    if not answer.cancelled():
                        answer.set_result(result)
        except psycopg.Error as broken:
            down = opened and isinstance(broken, psycopg.OperationalError)
            error = _ConnectionLost(*broken.args) if down else broken
        finally:
            self._end(asked, unanswered, error)

    def _end(
        self, asked: Questions, unanswered: list[asyncio.Future[Any]], error: psycopg.Error
    ) -> None:
        """The connection is gone: tell everybody who waits, or whose lock is lost with it."""
        if self._asked is asked:
            self._asked = None
            for claim in self.claims.values():
                if claim.held:
                    claim.lose()
        while not asked.empty():
            if (left := asked.get_nowait()) is not None:
                unanswered.append(left[1])
        for answer in unanswered:
            if not answer.cancelled():
                answer.set_exception(error)


LockConnections = WeakKeyDictionary[asyncio.AbstractEventLoop, LockConnection]
"""Those of an open database, by event loop."""


@asynccontextmanager
async def hold_agent(
    connections: LockConnections,
    address: Address,
    thread: str,
    *,
    name: str | None = None,
    patience: float = 30.0,
) -> AsyncIterator[None]:
    """Hold the right to run the agent of one thread, and keep servers off meanwhile.

    If its connection is lost, the task is cancelled, and DatabaseDown raised: another process may
    hold the lock by now. Raises BusyError after `patience` seconds, which names the process, and
    NewerError if a newer program has upgraded the database.
    """
    loop, claim = asyncio.get_running_loop(), LockClaim(lock_key("agent", thread))
    connection = connections.setdefault(loop, LockConnection(address))
    try:
        with clear_errors(address.name):
            await connection.take(claim, called(thread, name), patience)
        async with asyncio.timeout(None) as claim.stop:
            if claim.lost:  # before this task went on
                claim.lose()
            yield
    except TimeoutError as error:
        if not claim.lost:
            raise
        raise DatabaseDown(
            f"the database {address.name} closed the connection that held the lock, "
            "and the run was stopped; what had been accepted is kept: run again, and it goes on"
        ) from error
    finally:
        claim.stop = None
        await connection.give(claim)


@asynccontextmanager
async def hold_server(
    address: Address, *, patience: float = 30.0, alone: bool = False
) -> AsyncIterator[None]:
    """Hold a server's right to run every agent of the database, shared with other servers.

    With `alone` it is shared with nobody, as while all vectors change. A lock whose connection is
    lost is retaken as soon as possible. Raises as `hold_agent` until it is taken.
    """
    what, mode = f"the database {address.name}", "" if alone else "_shared"
    async with AsyncExitStack() as stack:
        with clear_errors(address.name):
            conn = await stack.enter_async_context(_named_connection(address, "server"))
            await retry_while_contended(partial(_try_to_serve, conn, mode, patience), what)
        keeper = asyncio.create_task(_keep(stack, conn, address, mode))
        try:
            yield
        finally:
            keeper.cancel()
            await asyncio.wait({keeper})


async def _keep(stack: AsyncExitStack, conn: AsyncConnection, address: Address, mode: str) -> None:
    """Retake the server's lock whenever it is lost. `stack`: closes the connection in the end."""
    while True:
        await _until_lost(conn)
        log.warning(
            "the database %s closed the connection that held the server's lock", address.name
        )
        conn = await _retaken(stack, address, mode)
        log.warning("the database %s: the server's lock is taken again", address.name)


@retry(retry=retry_if_exception_type(psycopg.Error), wait=wait_fixed(RETRY))
async def _retaken(stack: AsyncExitStack, address: Address, mode: str) -> AsyncConnection:
    """An agent that started meanwhile ends its run; no other starts one."""
    await stack.aclose()
    conn = await stack.enter_async_context(_named_connection(address, "server"))
    await _rows(f"SELECT pg_advisory_lock{mode}(%s)", SERVERS, conn)
    return conn


async def _try_to_serve(conn: AsyncConnection, mode: str, patience: float) -> Contention | None:
    [row] = await _rows(f"SELECT pg_try_advisory_lock{mode}(%s) AS taken", SERVERS, conn)
    if row["taken"] and not await _rows(_HOLDERS, AGENTS, conn):
        return None
    await conn.execute(_FREE)
    return Contention(patience, partial(_holder, AGENTS if row["taken"] else SERVERS, conn))


async def _try(claim: LockClaim, conn: AsyncConnection) -> tuple[str, int]:
    """(`taken`, `held` by a process, or `served` by a server; version of the tables)."""
    found = await conn.execute(_TRY, (SERVERS, claim.key))
    [row] = await found.fetchall()
    claim.held = row["outcome"] == "taken"
    return row["outcome"], row["schema_version"]


async def _rows(query: str, key: int, conn: AsyncConnection) -> list[DictRow]:
    found = await conn.execute(query, (key,))
    return await found.fetchall()


async def _holder(key: int, conn: AsyncConnection) -> str:
    return named(await _rows(_HOLDERS, key, conn))


async def connect(address: Address, role: str) -> AsyncConnection:
    """A connection for locks, named after its process so that others can say who holds them."""
    name = f"{PRODUCT}:{os.getpid()}:{role}:{_host()}"
    return await psycopg.AsyncConnection[DictRow].connect(
        address.conninfo, application_name=name, autocommit=True, row_factory=dict_row
    )


@asynccontextmanager
async def _named_connection(address: Address, role: str) -> AsyncIterator[AsyncConnection]:
    conn = await connect(address, role)
    try:
        yield conn
    finally:
        with suppress(psycopg.Error):  # a lost connection holds nothing
            # Closing alone would free the locks only when the server notices.
            await conn.execute(_FREE)
        await conn.close()


async def _next(asked: asyncio.Queue[T], conn: AsyncConnection) -> T:
    """What is asked next. Raises OperationalError as soon as the idle connection is lost."""
    if not asked.empty():
        return asked.get_nowait()
    question, end = asyncio.ensure_future(asked.get()), asyncio.ensure_future(_until_lost(conn))
    try:
        await asyncio.wait({question, end}, return_when=asyncio.FIRST_COMPLETED)
        if question.done():
            return question.result()
        raise psycopg.OperationalError("the database closed the connection")
    finally:
        question.cancel()
        end.cancel()
        await asyncio.wait({end})  # it reads from the connection


async def _until_lost(conn: AsyncConnection) -> None:
    """Wait as long as the connection stands. It serves nothing else meanwhile."""
    with suppress(psycopg.Error):
        async for _ in conn.notifies():  # none come; the loop ends with the connection
            pass


def named(holders: list[DictRow]) -> str:
    """How to call the first of the connections that hold a lock."""
    if not holders:
        return "another process"
    sign, *parts = str(holders[0]["name"]).split(":", 3)
    if sign != PRODUCT or len(parts) < 3:
        return f"connection {holders[0]['pid']} ({holders[0]['name'] or 'unnamed'})"
    pid, role, host = parts
    return f"process {pid} ({role})" + ("" if host == _host() else f" on {host}")


def _host() -> str:
    return socket.gethostname()[:24]
