"""Both homes of an installation for tests that must hold for either, and looking into their tables.

A test file that wants them has `from tests.support.homes import home as home`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from psycopg.conninfo import conninfo_to_dict
from pydantic import SecretStr

from memory.installation import folder as folders
from memory.installation.database import Database, open_database
from memory.installation.folder import DataFolder, open_folder
from memory.installation.opening import Installation
from memory.records import LOCAL_USER, thread_id
from memory.storage.postgres.connections import Pool, transaction
from memory.storage.sqlite.saver import CircadianSqliteSaver
from memory.storage.sqlite.store import CircadianSqliteStore

KINDS = ["folder", "database"]


@pytest.fixture(params=KINDS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Installation:
    """Every test that takes it holds for both."""
    return home_of(request, tmp_path)


def home_of(request: pytest.FixtureRequest, tmp_path: Path) -> Installation:
    if request.param == "folder":
        return folder_in(tmp_path)
    return open_database(SecretStr(request.getfixturevalue("postgres_url")), embedder="offline")


@pytest.fixture(params=KINDS)
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path | None:
    """What an agent is opened with: a folder, or None for the database that the variable names."""
    if request.param == "folder":
        return tmp_path / "data"
    monkeypatch.setenv("CIRCADIAN_DATABASE_URL", request.getfixturevalue("postgres_url"))
    return None


def folder_in(tmp_path: Path) -> DataFolder:
    """A data folder with the hashing embedder: the same at every call."""
    return open_folder(tmp_path / "data", embedder="offline")


@contextmanager
def held(data: Path, agent: str | None = "default", role: str = "circadian") -> Iterator[None]:
    """A data folder whose agent another process holds, as it seems; None: a server, all of it."""
    locks = data / "locks"
    one = folders.files_of_agent(locks, thread_id(LOCAL_USER, agent)) if agent else None
    files = folders.take(one or {locks / folders.FOLDER_FILE: True}, role)
    assert isinstance(files, list)
    try:
        yield
    finally:
        folders.close(files)


Opened = BaseCheckpointSaver[str] | BaseStore


async def fetch(opened: Opened, statement: str) -> list[tuple[Any, ...]]:
    """The rows that a statement gives, asked through the connection of a saver or a store.

    A table of writes is called `writes` in both.
    """
    if isinstance(opened, CircadianSqliteSaver | CircadianSqliteStore):
        return [tuple(row) for row in await opened.file.rows(statement)]
    async with _pool(opened).connection() as conn:
        found = await conn.execute(_renamed(statement))
        return [tuple(row.values()) for row in await found.fetchall()]


async def rows(opened: Opened, table: str, where: str = "TRUE") -> int:
    [[count]] = await fetch(opened, f"SELECT count(*) FROM {table} WHERE {where}")
    return int(count)


async def refuse(opened: Opened, event: str, table: str, when: str = "TRUE") -> None:
    """Let every `event` (INSERT, DELETE) on a row of `table` for which `when` holds fail.

    `when` speaks of NEW or OLD.
    """
    if isinstance(opened, CircadianSqliteSaver | CircadianSqliteStore):
        await opened.file.rows(
            f"CREATE TRIGGER refuse BEFORE {event} ON {table} WHEN {when}"
            " BEGIN SELECT RAISE(FAIL, 'refused'); END"
        )
        return
    async with transaction(_pool(opened)) as cursor:
        await cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql"
            " AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$"
        )
        await cursor.execute(
            f"CREATE TRIGGER refuse BEFORE {event} ON {_renamed(table)} FOR EACH ROW"
            f" WHEN ({when}) EXECUTE FUNCTION refuse()"
        )


def _pool(opened: Opened) -> Pool:
    pool = getattr(opened, "pool", None)
    assert isinstance(pool, Pool)
    return pool


def _renamed(text: str) -> str:
    return text.replace("writes", "checkpoint_writes")


def is_database(home: Installation) -> bool:
    return isinstance(home, Database)


def url_of(home: Installation) -> str:
    assert isinstance(home, Database)
    given = conninfo_to_dict(home.address.conninfo)
    return f"postgresql://{given['user']}:@/{given['dbname']}?host={given['host']}"


def variables(home: Installation) -> dict[str, str]:
    """The variables with which another process opens the same home."""
    if isinstance(home, DataFolder):
        return {"CIRCADIAN_DATA": str(home.path)}
    return {"CIRCADIAN_DATABASE_URL": url_of(home)}
