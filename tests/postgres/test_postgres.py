"""The embedded PostgreSQL that tests stand on."""

import time
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from memory.storage.postgres.connections import BlockingPool
from tests.support.facts import running
from tests.support.postgres import Postgres


def test_every_test_gets_an_empty_database_with_pgvector(
    postgres: Postgres, postgres_url: str, postgres_pool: BlockingPool
) -> None:
    other = postgres.database()
    with postgres_pool.connection() as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE TABLE here AS SELECT '[1,2]'::vector AS one")
    with psycopg.connect(other) as connection:
        row = connection.execute("SELECT to_regclass('here')").fetchone()
    assert row == (None,)
    postgres.drop(other)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(other)


KILLED = """
import os, signal
from tests.support.postgres import running_postgres
with running_postgres() as server:
    print(server.url(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_no_server_and_no_folder() -> None:
    with running(KILLED) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        process.wait(30)
    folder = Path(str(conninfo_to_dict(url)["host"])).parent
    deadline = time.monotonic() + 20
    while folder.exists():
        assert time.monotonic() < deadline, "it stands yet"
        time.sleep(0.05)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
