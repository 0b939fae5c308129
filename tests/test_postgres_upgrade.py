"""Databases that an earlier version made."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from memory import analysis
from memory.postgres import memories
from memory.postgres.pool import Connection
from memory.postgres.table import PostgresTable
from memory.postgres.write import scope_key
from memory.vectorstore.table import Row
from tests.postgres import Postgres, open_pool
from tests.tables import DIMENSION, MODEL, Open, miscounted, put, scope


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
