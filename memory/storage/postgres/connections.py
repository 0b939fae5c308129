"""PostgreSQL: addresses, connection pools, whole transactions, clear errors and migrations.

A database that is down is reported within three seconds, whatever was asked of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.generators import execute
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import set_json_dumps
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout
from pydantic import SecretStr

from memory.errors import (
    NOT_ACCEPTED,
    UNSURE,
    DatabaseDown,
    InputError,
    MemoryStoreError,
    NewerError,
    consequence,
)

_DEFAULTS = {
    "application_name": "circadian",
    "connect_timeout": "2",
    # Notice a host that is gone in half a minute, not in two hours.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}


@dataclass(frozen=True)
class Address:
    """Where a database is."""

    conninfo: str = field(repr=False)
    """The parameters for libpq, password included: never shown."""
    name: str
    """Host and database, for messages."""


def address_of(url: SecretStr) -> Address:
    """Parse CIRCADIAN_DATABASE_URL; no connection. Raises InputError, which does not repeat it."""
    try:
        parts = conninfo_to_dict(url.get_secret_value())
    except psycopg.ProgrammingError:
        parts = {}
    given = {name: str(value) for name, value in parts.items() if value is not None}
    host, database = given.get("host", "localhost"), given.get("dbname", "")
    # An unencoded part of a password ends up in the host or the database.
    if not database or "@" in host + database:
        raise InputError(
            "CIRCADIAN_DATABASE_URL must read postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with "
            "%40 for an @ in the password, %2F for a / and so on"
        )
    return Address(make_conninfo(**{**_DEFAULTS, **given}), f"{host}/{database}")


def storable(value: Any) -> Any:
    """`value` with every NUL replaced, which PostgreSQL cannot store in text or JSON."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


TIMEOUT = 2.0
"""Seconds to wait for a connection."""

ANSWER = 1.0
"""Seconds in which an open connection has to answer before it is used."""

SIZE = 8
"""Connections of one pool, at most. They are opened when they are needed."""

_POOLED: dict[str, Any] = {
    "min_size": 0,
    "max_size": SIZE,
    "max_idle": 60.0,
    "timeout": TIMEOUT,
    "reconnect_timeout": TIMEOUT,
}
"""Seconds, for both kinds of pools."""

SESSION = (
    # How long a statement waits for another process's transaction.
    "SELECT set_config('lock_timeout', '30s', false),"
    # A process that hangs in a transaction blocks all others from what it changed.
    " set_config('idle_in_transaction_session_timeout', '60s', false)"
)

_DOWN = ("08", "57P01", "57P02", "57P03", "53300")
"""SQLSTATEs of a database that goes down, comes up, or takes no more connections."""

Asked = TypeVar("Asked")
Found = TypeVar("Found")

AsyncConnection = psycopg.AsyncConnection[DictRow]

Connection = psycopg.Connection[tuple[Any, ...]]

Cursor = psycopg.AsyncCursor[DictRow]


class Pool(AsyncConnectionPool[AsyncConnection]):
    """A pool as LangGraph's saver and store need it: autocommit, rows as dicts.

    Callers wait for a free connection first, so that the timeout measures the database alone.
    """

    def __init__(self, address: Address) -> None:
        _quiet()
        self._turns = asyncio.Semaphore(SIZE)
        # Unprepared: psycopg loses statements that it prepares inside a pipeline, and each is
        # planned for its own values.
        super().__init__(
            address.conninfo,
            name=address.name,
            kwargs={"autocommit": True, "prepare_threshold": None, "row_factory": dict_row},
            **_POOLED,
            configure=_configure,
            check=self._check_answer,
            open=False,
        )

    @asynccontextmanager
    async def connection(  # the signature is the base class's
        self,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> AsyncIterator[AsyncConnection]:
        """A connection that answers."""
        async with self._turns, super().connection(timeout) as conn:
            yield conn

    @asynccontextmanager
    async def cursor(self) -> AsyncIterator[Cursor]:
        """A cursor whose statements are transactions of their own. Raises psycopg's errors."""
        async with self.connection() as conn, conn.cursor(binary=True) as cursor:
            yield cursor

    async def _check_answer(self, conn: AsyncConnection) -> None:
        try:
            conn.pgconn.send_query(b"")
            await conn.wait(execute(conn.pgconn), timeout=ANSWER)
            if conn.closed:
                raise psycopg.OperationalError("the database closed the connection")
        except psycopg.OperationalError:
            # The pool pauses after a second bad connection. After a restart all are bad.
            await conn.close()
            await self.drain()
            raise


class BlockingPool(ConnectionPool[Connection]):
    """A pool for threads, as the table of memories needs it. Open from the start; to be closed."""

    def __init__(self, address: Address) -> None:
        _quiet()
        self._turns = threading.Semaphore(SIZE)
        super().__init__(
            address.conninfo,
            name=address.name,
            kwargs={"autocommit": True},
            **_POOLED,
            configure=_configure_blocking,
            check=self._check_answer,
            open=True,
        )

    @contextmanager
    def connection(self, timeout: float | None = None) -> Iterator[Connection]:
        """A connection that answers."""
        with self._turns, super().connection(timeout) as conn:
            yield conn

    def _check_answer(self, conn: Connection) -> None:
        """See `Pool`."""
        try:
            conn.pgconn.send_query(b"")
            conn.wait(execute(conn.pgconn), timeout=ANSWER)
            if conn.closed:
                raise psycopg.OperationalError("the database closed the connection")
        except psycopg.OperationalError:
            conn.close()
            self.drain()
            raise


@asynccontextmanager
async def transaction(pool: Pool) -> AsyncIterator[Cursor]:
    """Commit what the block did as a whole, or roll back on any exception, cancellation included.

    Statements are sent together, up to the next fetched result; the error of a statement is raised
    there, or at the end. Raises DatabaseDown, or MemoryStoreError where it refused.
    """
    committing = False
    with clear_errors(pool.name, lambda: unsure() if committing else consequence()):
        async with pool.connection() as conn:
            try:
                async with conn.pipeline(), conn.cursor(binary=True) as cursor:
                    await conn.execute("BEGIN")
                    yield cursor
                    committing = True
                    await conn.execute("COMMIT")
            except BaseException:
                await conn.rollback()  # does nothing where no transaction is open
                raise


@asynccontextmanager
async def reading(pool: Pool) -> AsyncIterator[Cursor]:
    """A cursor whose statements are transactions of their own. Raises as `transaction`."""
    with clear_errors(pool.name):
        async with pool.cursor() as cursor:
            yield cursor


LANES = 2
"""Shared statements of one kind that are under way at once: one may wait for another process."""


def _is_down(error: Exception) -> bool:
    """Whether the database cannot be reached; otherwise it refused what it was asked."""
    if not isinstance(error, psycopg.OperationalError):
        return False
    return (error.sqlstate or "08").startswith(_DOWN)


class Shared(Generic[Asked, Found]):
    """Statements of many callers as one: what waits while `LANES` are under way is sent together.

    So agents that read or write at once share a round trip and a commit. Raises psycopg's errors.
    All callers get the error if the database cannot be reached, and those that wait do, too, if it
    gave no connection: each would wait as long again. If it refuses, each part is sent again alone,
    so that only the caller at fault gets the error.
    """

    def __init__(self, send: Callable[[Sequence[Asked]], Awaitable[Sequence[Found]]]) -> None:
        """`send`: the answers to all parts, from one statement."""
        self._send = send
        self._lanes = 0
        self._waiting: list[tuple[Asked, asyncio.Future[Found]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, asked: Asked) -> Found:
        """The answer to one part. A cancelled caller's part is not sent any more, or ends first.

        Otherwise a write could outlive the caller's lock of the agent.
        """
        if self._lanes < LANES:
            self._lanes += 1
            try:
                return (await self._send([asked]))[0]
            except PoolTimeout as error:
                self._refuse(error)
                raise
            finally:
                self._next()
        answer: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, answer))
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            left = [one for one in self._waiting if one[1] is not answer]
            if len(left) < len(self._waiting):
                self._waiting = left
            else:
                await asyncio.wait([answer])
            raise

    def _next(self) -> None:
        """Give a lane that became free to all that wait."""
        if not self._waiting:
            self._lanes -= 1
            return
        together, self._waiting = self._waiting, []
        # In an empty context: a caller's own would be wrong for the others.
        task = asyncio.create_task(self._serve(together), context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _refuse(self, error: PoolTimeout) -> None:
        """Tell all that wait. Nothing of theirs was sent."""
        for _, answer in self._waiting:
            answer.set_exception(error)
        self._waiting = []

    async def _serve(self, together: Sequence[tuple[Asked, asyncio.Future[Found]]]) -> None:
        try:
            await self._answer(together)
        finally:
            for _, answer in together:
                answer.cancel()  # does nothing where it is known
            self._next()

    async def _answer(self, together: Sequence[tuple[Asked, asyncio.Future[Found]]]) -> None:
        try:
            found = await self._send([asked for asked, _ in together])
        except Exception as error:  # noqa: BLE001  # the callers get it
            if isinstance(error, PoolTimeout):
                self._refuse(error)
            if len(together) == 1 or _is_down(error):
                for _, answer in together:
                    answer.set_exception(error)
            else:
                await asyncio.gather(*(self._answer([one]) for one in together))
        else:
            for (_, answer), result in zip(together, found, strict=True):
                answer.set_result(result)


async def write(pool: Pool, statement: str, params: Sequence[object]) -> None:
    """Run one statement, which is a transaction of its own. Raises as `transaction`."""
    async with reading(pool) as cursor:
        # Nobody knows whether a statement that got no answer was carried out.
        with clear_errors(pool.name, unsure):
            await cursor.execute(statement, params)


def unsure() -> str:
    """What an error says of a write that got no answer."""
    return UNSURE if consequence() == NOT_ACCEPTED else consequence()


@contextmanager
def clear_errors(name: str, means: Callable[[], str] = consequence) -> Iterator[None]:
    """Turn errors of psycopg into one clear DatabaseDown or MemoryStoreError on the database."""
    try:
        yield
    except psycopg.Error as error:
        told = (str(error).splitlines() or [type(error).__name__])[0][:200]
        if _is_down(error):
            raise DatabaseDown(
                f"the database {name} cannot be reached ({told}): {means()}. Start it, or mend "
                "CIRCADIAN_DATABASE_URL, and try again"
            ) from error
        raise MemoryStoreError(f"the database {name} refused ({told}): {means()}") from error


async def _configure(conn: AsyncConnection) -> None:
    set_json_dumps(_dumps, conn)
    await conn.execute(SESSION)


def _configure_blocking(conn: Connection) -> None:
    set_json_dumps(_dumps, conn)
    conn.execute(SESSION)


def _dumps(value: Any) -> str:
    """JSON that `jsonb` accepts: without NUL in any text."""
    text = json.dumps(value)
    return json.dumps(storable(value)) if "\\u0000" in text else text


def _quiet() -> None:
    """Silence the pool's warnings: each is raised as a clear error, too."""
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)


def lock_key(*names: str) -> int:
    """The number of the advisory lock for these names (64 bits, signed)."""
    digest = hashlib.sha256("\n".join(("circadian", *names)).encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


async def hold(cursor: Cursor, *names: str) -> None:
    """Hold these names until the transaction ends; waits for other holders."""
    await cursor.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(*names),))


async def migrate(cursor: Cursor, table: str, statements: Sequence[str]) -> None:
    """Apply the `statements` that `table` does not count as applied, in the cursor's transaction.

    LangGraph's own setup applies them one by one, and fails if two processes do so at once.
    CONCURRENTLY cannot be used in a transaction; on empty tables it has no use either. Raises
    NewerError if the table counts more.
    """
    await hold(cursor, "schema")
    await cursor.execute("SELECT to_regclass(%s) IS NULL AS missing", (table,))
    if await _value(cursor, "missing"):
        await cursor.execute(f"CREATE TABLE {table} (v INTEGER PRIMARY KEY)")
    await cursor.execute(f"SELECT coalesce(max(v), -1) AS done FROM {table}")
    done: int = await _value(cursor, "done")
    if done >= len(statements):
        raise NewerError(
            f"the database was made by a newer Circadian ({table} {done + 1}, this one reads "
            f"{len(statements)}); update Circadian"
        )
    for version, statement in enumerate(statements[done + 1 :], start=done + 1):
        await cursor.execute(statement.replace(" CONCURRENTLY", ""))
        await cursor.execute(f"INSERT INTO {table} (v) VALUES (%s)", (version,))


async def _value(cursor: Cursor, name: str) -> Any:
    row = await cursor.fetchone()
    return row[name] if row else None
