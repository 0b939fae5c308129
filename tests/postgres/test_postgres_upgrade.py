"""Upgrades of the tables of memories in PostgreSQL, by a made-up step."""

import psycopg
import pytest
from pydantic import SecretStr

from memory.errors import MemoryStoreError, NewerError
from memory.facts.postgres import table as memories
from memory.installation import database
from memory.installation.database import Database, open_database
from memory.records.records import FactDraft
from tests.support.facts import ANA, draft

TODAY = database.DATABASE_SCHEMA
FORM = "SELECT schema_version FROM circadian_head"
APPLIED = "SELECT max(v) FROM memory_migrations"
STEP = "CREATE TABLE added (); ALTER TABLE memories ADD COLUMN note TEXT DEFAULT 'made up'"


@pytest.fixture
async def older(postgres_url: str) -> Database:
    """A database of the first form with a fact, opened by a program of that form."""
    opened = open_database(SecretStr(postgres_url), embedder="offline")
    known: FactDraft = draft("a", "red fox")
    await opened.semantic.add(ANA, [known])
    return opened


@pytest.fixture
def newer(older: Database, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """From now on programs have one more step, and count it in the database's form."""
    monkeypatch.setattr(database, "DATABASE_SCHEMA", TODAY + 1)
    monkeypatch.setattr(memories, "UPGRADES", (STEP,))
    return monkeypatch


def kept(url: str, statement: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        [value] = connection.execute(statement).fetchone() or [None]
        return value


async def test_an_upgrade_keeps_the_facts_and_is_counted(
    older: Database, newer: pytest.MonkeyPatch, postgres_url: str
) -> None:
    for _ in range(2):
        opened = open_database(SecretStr(postgres_url))
        [fact] = await opened.semantic.all(ANA)
        assert fact["text"] == "red fox"
        opened.close()
    assert kept(postgres_url, "SELECT note FROM memories") == "made up"
    found = kept(postgres_url, FORM), kept(postgres_url, APPLIED)
    assert found == (TODAY + 1, memories.FIRST_VERSION + 1)
    older.close()


async def test_a_running_older_program_sees_the_upgrade(
    older: Database, newer: pytest.MonkeyPatch, postgres_url: str
) -> None:
    open_database(SecretStr(postgres_url)).close()
    newer.setattr(database, "DATABASE_SCHEMA", TODAY)
    newer.setattr(memories, "UPGRADES", ())
    with pytest.raises(NewerError, match=rf"schema {TODAY + 1}, this one reads {TODAY}\); update"):
        async with older.agent_lock("t"):
            pytest.fail("the lock was taken")
    older.close()


def test_a_failed_upgrade_is_neither_made_nor_counted(
    older: Database, newer: pytest.MonkeyPatch, postgres_url: str
) -> None:
    newer.setattr(memories, "UPGRADES", (f"{STEP}; ALTER TABLE missing ADD x INTEGER",))
    with pytest.raises(MemoryStoreError, match="missing"):
        open_database(SecretStr(postgres_url))
    found = kept(postgres_url, FORM), kept(postgres_url, APPLIED)
    assert found == (TODAY, memories.FIRST_VERSION)
    assert kept(postgres_url, "SELECT to_regclass('added')") is None
    newer.setattr(memories, "UPGRADES", (STEP,))
    open_database(SecretStr(postgres_url)).close()
    assert kept(postgres_url, FORM) == TODAY + 1
    older.close()
