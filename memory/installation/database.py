"""An installation in a PostgreSQL database, which several hosts can share."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import psycopg
from langchain_core.embeddings import Embeddings
from psycopg.rows import class_row
from pydantic import SecretStr

from memory.errors import NOT_ACCEPTED, FolderError, NewerError
from memory.facts import SemanticMemory, postgres
from memory.facts.postgres import PostgresTable
from memory.installation.database_locks import (
    LockConnections,
    hold_agent,
    hold_server,
)
from memory.installation.locks import WriterLock
from memory.installation.metadata import Metadata, WantedEmbedder
from memory.storage.postgres import (
    SESSION,
    Address,
    BlockingPool,
    Connection,
    address_of,
    clear_errors,
    lock_key,
)

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
    """Examine the database at `url`; changes nothing. Blocking, three seconds at most.

    Raises:
        DatabaseDown: the database cannot be reached.
        InputError: `url` is not a connection string.
    """
    address, began = address_of(url), time.monotonic()
    with _connected(address) as conn:
        row = conn.execute(_LOOK).fetchone()
    assert row is not None
    server, vector, connections, most = row
    return Examined(address.name, server, vector, connections, most, time.monotonic() - began)


DATABASE_SCHEMA = 3
"""The version of the tables that this program reads and writes. The first released one is 2.

It counts every change, to any table, that an older version cannot read.
"""


class Database:
    """An open database. Opening one writes nothing, unless it is new or of an older form."""

    def __init__(self, address: Address, head: Metadata, load: Callable[[], Embeddings]) -> None:
        """`head`: the stored metadata; `load`: loads the embedder, called once."""
        self.address = address
        self.name = address.name
        self.embedder, self.dimension = head.embedder, head.dimension
        self._load = load
        self._opened: BlockingPool | None = None
        self.lock_connections = LockConnections()

    @cached_property
    def embeddings(self) -> Embeddings:
        """The embedder. Raises InputError if it cannot be loaded, as without its key."""
        return self._load()

    def semantic(self) -> SemanticMemory:
        """The database's facts: the same object at every call."""
        return self._semantic

    @cached_property
    def _semantic(self) -> SemanticMemory:
        return SemanticMemory(
            self._open_table,
            mem0_dir=Path(self._scratch.name),
            dimension=self.dimension,
            embeddings=lambda: self.embeddings,
        )

    @cached_property
    def _scratch(self) -> tempfile.TemporaryDirectory[str]:
        """A folder for files that Mem0 writes at import; nobody reads them."""
        return tempfile.TemporaryDirectory(prefix="circadian-mem0-", ignore_cleanup_errors=True)

    def agent_lock(
        self, thread: str, *, name: str | None = None, timeout: float = 30.0
    ) -> WriterLock:
        """The right to run the agent of one thread; an event loop's locks share a connection."""
        place = self.lock_connections, self.address
        return WriterLock(partial(hold_agent, *place, thread, name=name, patience=timeout))

    def server_lock(self, *, timeout: float = 30.0, alone: bool = False) -> WriterLock:
        """A server's right to run every agent, shared with other servers or `alone`."""
        return WriterLock(partial(hold_server, self.address, patience=timeout, alone=alone))

    def check(self) -> None:
        """Check that no newer version has upgraded the database since it was opened."""
        pool = self._opened
        with (
            clear_errors(self.name),
            _connected(self.address) if pool is None else pool.connection() as conn,
        ):
            _read(conn, self.address)

    def close(self) -> None:
        """Close its connections. A later call opens them again."""
        self.semantic().close()
        pool, self._opened = self._opened, None
        if pool is not None:
            pool.close()
        self._scratch.cleanup()

    def _open_table(self) -> PostgresTable:
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

    The embedder is chosen and recorded as `open_folder` does it. A database of an older version is
    upgraded first. Raises as `open_folder`; also DatabaseDown, and FolderError without pgvector.
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
    address = address_of(url)
    with _connected(address) as conn:
        return _read(conn, address) is not None


@contextmanager
def _connected(address: Address) -> Iterator[Connection]:
    with (
        clear_errors(address.name, lambda: NOT_ACCEPTED),
        psycopg.connect(address.conninfo, autocommit=True) as conn,
    ):
        yield conn


def _read(conn: Connection, address: Address) -> Metadata | None:
    if conn.execute("SELECT to_regclass('circadian_head')").fetchone() == (None,):
        return None
    with conn.cursor(row_factory=class_row(Metadata)) as cursor:
        head = cursor.execute(
            "SELECT schema_version, embedder, dimension FROM circadian_head"
        ).fetchone()
    if head is not None and head.schema_version > DATABASE_SCHEMA:
        raise NewerError(
            f"the database {address.name} was made by a newer Circadian (schema "
            f"{head.schema_version}, this one reads {DATABASE_SCHEMA}); update Circadian"
        )
    return head


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
