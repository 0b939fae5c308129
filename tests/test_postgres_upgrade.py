"""Databases that an earlier version made."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence

import psycopg
import pytest
from pydantic import SecretStr

from memory import analysis
from memory.errors import MemoryStoreError, NewerError
from memory.postgres import database, memories
from memory.postgres import text as words
from memory.postgres.database import Database, open_database
from memory.postgres.pool import Connection
from memory.postgres.table import PostgresTable
from memory.postgres.write import scope_key
from memory.vectorstore.table import Row
from tests.postgres import Postgres, open_pool
from tests.tables import DIMENSION, MODEL, Open, miscounted, put, scope

TODAY = database.DATABASE_SCHEMA


@pytest.fixture
def table(open_postgres: Open) -> PostgresTable:
    opened = open_postgres()
    assert isinstance(opened, PostgresTable)
    return opened


def test_a_database_made_before_words_were_counted_for_each_kind_is_brought_up_to_date(
    table: PostgresTable, postgres: Postgres
) -> None:
    rows = [("e1", "episode", "red fox"), ("e2", "episode", "a fox, a den"), ("f", "fact", "fox")]
    for op, kind, text in rows:
        put(table, "ana", op, text, kind=kind)
    put(table, "ana", "hidden", "fox", kind="fact", terms=[])
    url = postgres.database()
    with open_pool(url) as pool:
        with pool.connection() as connection:
            for version, statement in enumerate(memories.STATEMENTS[:3]):
                connection.execute(statement)
                connection.execute("CREATE TABLE IF NOT EXISTS memory_migrations (v INTEGER)")
                connection.execute("INSERT INTO memory_migrations VALUES (%s)", (version,))
            fill_as_before(connection, table.select({}))
        old = PostgresTable(pool, model=MODEL, dimension=DIMENSION)
        assert scores(old) == scores(table)
        assert len(scores(old)) == 3
        assert miscounted(pool) == []
        put(old, "ana", "g", "a fox again", kind="fact")
        assert miscounted(pool) == []
        with pool.connection() as connection:
            done = connection.execute("SELECT count(*) FROM memory_migrations").fetchall()
        assert done == [(len(memories.STATEMENTS),)]
    postgres.drop(url)


@pytest.fixture
def older(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A database that a program of the first form made, and has open."""
    monkeypatch.setattr(database, "DATABASE_SCHEMA", 1)
    opened = open_database(SecretStr(postgres_url), embedder="offline")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE memory_migrations (v INTEGER PRIMARY KEY)")
        for version, statement in enumerate(memories.STATEMENTS[:3]):
            connection.execute(statement)
            connection.execute("INSERT INTO memory_migrations VALUES (%s)", (version,))
    return opened


def kept(url: str, statement: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        [value] = connection.execute(statement).fetchone() or [None]
        return value


FORM = "SELECT schema_version FROM circadian_head"
APPLIED = "SELECT count(*) FROM memory_migrations"


def test_a_program_of_the_first_form_that_is_running_sees_that_its_tables_were_changed(
    older: Database, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    older.check()
    monkeypatch.setattr(database, "DATABASE_SCHEMA", TODAY)
    open_database(SecretStr(postgres_url))
    found = kept(postgres_url, FORM), kept(postgres_url, APPLIED)
    assert found == (TODAY, len(memories.STATEMENTS))
    monkeypatch.setattr(database, "DATABASE_SCHEMA", 1)
    with pytest.raises(NewerError, match=rf"schema {TODAY}, this one reads 1\); update"):
        older.check()


def test_tables_that_cannot_be_changed_are_not_counted_as_if_they_were(
    older: Database, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "DATABASE_SCHEMA", TODAY)
    todays = memories.STATEMENTS
    broken = (*todays, "CREATE TABLE added (); ALTER TABLE missing ADD x INTEGER")
    monkeypatch.setattr(memories, "STATEMENTS", broken)
    with pytest.raises(MemoryStoreError, match="missing"):
        open_database(SecretStr(postgres_url))
    assert (kept(postgres_url, FORM), kept(postgres_url, APPLIED)) == (1, 3)
    assert kept(postgres_url, "SELECT to_regclass('added')") is None
    monkeypatch.setattr(memories, "STATEMENTS", todays)
    open_database(SecretStr(postgres_url))
    assert kept(postgres_url, FORM) == TODAY


def test_what_brings_old_tables_up_to_date_does_not_change_with_what_words_are_counted_by_today(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("ADD_WORDS", "REMOVE_WORDS", "COUNT_WORDS", "RANKED"):
        monkeypatch.setattr(words, name, "of another version")
    spec = importlib.util.find_spec("memory.postgres.memories")
    assert spec is not None
    assert spec.loader is not None
    another = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(another)
    assert another.STATEMENTS == memories.STATEMENTS


def scores(table: PostgresTable) -> dict[str, float]:
    return {row.id: score for row, score in table.keywords(["fox", "red"], scope("ana"), 10)}


def fill_as_before(connection: Connection, rows: Sequence[Row]) -> None:
    """Write rows as an earlier version did, with statistics of the whole scope."""
    key = scope_key(("ana", "agent"))
    connection.execute(
        "INSERT INTO memory_scopes (key, user_id, agent_id) VALUES (%s, 'ana', 'agent')", (key,)
    )
    for row in rows:
        found = [] if row.payload["op"] == "hidden" else analysis.terms(row.payload["data"])
        connection.execute(
            "INSERT INTO memories (scope, id, payload, terms) VALUES (1, %s, %s::jsonb, %s)",
            (row.id, json.dumps(row.payload), found or None),
        )
    connection.execute(
        "INSERT INTO memory_terms (scope, term, seq, count, length)"
        " SELECT scope, term, seq, count(*), cardinality(terms)"
        " FROM memories, unnest(terms) AS term GROUP BY seq, term"
    )
    connection.execute(
        "UPDATE memory_scopes SET (rows, length) = (SELECT count(*), sum(cardinality(terms))"
        " FROM memories WHERE cardinality(terms) > 0)"
    )
    connection.execute(
        "INSERT INTO memory_analysis (version) VALUES (%s)", (analysis.ANALYSIS_VERSION,)
    )
