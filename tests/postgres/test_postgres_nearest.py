"""Nearest neighbours in PostgreSQL: exact in small scopes, by an index in large ones."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from memory.facts.postgres import table as nearest
from memory.facts.postgres.table import PostgresTable
from memory.facts.table import MemoryTable, Vector
from memory.storage.postgres.connections import BlockingPool
from tests.support.postgres import Postgres, open_pool
from tests.support.tables import MODEL, Open, ids, near, put, random_vectors, scope

DIMENSION = 16
ROWS = 240
VECTORS = random_vectors(ROWS, DIMENSION)
USED = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'memory_vectors_1'"


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred rows are worth an index here."""
    monkeypatch.setattr(nearest, "WORTH_INDEXING", 100)
    monkeypatch.setattr(nearest, "LOOK_EVERY", 20)


@pytest.fixture
def table(open_postgres: Open) -> MemoryTable:
    return open_postgres(dimension=DIMENSION)


@pytest.fixture
def large(table: MemoryTable) -> MemoryTable:
    """Ana has many rows, of which every tenth is a window; Ben has a few."""
    for start in range(0, ROWS, 20):
        with table.transaction():
            for number in range(start, start + 20):
                kind = "fact" if number % 10 else "episode"
                put(table, "ana", f"{number}", vector=VECTORS[number], kind=kind)
    for number in range(9):
        put(table, "ben", f"{number}", vector=VECTORS[number])
    return table


def query(pool: BlockingPool, statement: str) -> list[tuple[Any, ...]]:
    with pool.connection() as connection:
        return connection.execute(statement).fetchall()


def indexes(pool: BlockingPool) -> list[str]:
    """Of which rows there are indexes that can be used."""
    rows = query(
        pool,
        "SELECT pg_get_expr(indpred, indrelid) FROM pg_index"
        " WHERE indpred IS NOT NULL AND indisvalid AND indrelid = 'memory_vectors'::regclass",
    )
    return [text for (text,) in rows]


def best(wanted: Vector, numbers: Iterable[int], limit: int) -> set[str]:
    order = sorted(numbers, key=lambda number: -float(VECTORS[number] @ wanted))
    return {f"ana-{number}" for number in order[:limit]}


def test_a_scope_that_grows_large_gets_an_index_of_its_own(
    large: MemoryTable, postgres_pool: BlockingPool
) -> None:
    [rows] = indexes(postgres_pool)
    assert rows == f"((scope = 1) AND (space = '{MODEL} {DIMENSION}'::text))"
    wanted = VECTORS[3]
    deadline = time.monotonic() + 30
    while query(postgres_pool, USED) == [(0,)]:
        found = near(large, wanted, "ana", 10)
        assert found[0] == "ana-3"
        assert len(set(found) & best(wanted, range(ROWS), 10)) >= 9
        assert len(near(large, wanted, "ben", 20)) == 9
        query(postgres_pool, "SELECT pg_stat_force_next_flush()")
        assert time.monotonic() < deadline, "the index was never used"
    [first, *_, last] = [score for _, score in large.nearest(wanted, scope("ana"), 10)]
    assert (round(first, 5), last > 0.4) == (1.0, True)


def test_a_filter_never_leaves_an_index_with_too_few(
    large: MemoryTable, postgres: Postgres, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "SEARCH_BREADTH", 1)
    name = postgres_url.split("?")[0].rsplit("/", 1)[1]
    postgres.execute(f"ALTER DATABASE {name} SET hnsw.max_scan_tuples = 1")
    with open_pool(postgres_url) as pool:
        table = PostgresTable(pool, model=MODEL, dimension=DIMENSION)
        few = {"kind": "episode"}
        many = {"op": [str(one) for one in range(110)]}
        for number in (0, 7, 150):
            wanted = VECTORS[number]
            assert set(near_of(table, wanted, few)) == best(wanted, range(0, ROWS, 10), 10)
            assert set(near_of(table, wanted, many)) == best(wanted, range(110), 10)
            assert len(table.nearest(wanted, scope("ana"), 10_000)) == ROWS


def near_of(table: MemoryTable, wanted: Vector, filters: Mapping[str, object]) -> list[str]:
    return ids(table.nearest(wanted, {**scope("ana"), **filters}, 10))


def test_what_is_written_and_removed_later_is_in_the_index(large: MemoryTable) -> None:
    new = random_vectors(1, DIMENSION, seed=8)[0]
    put(large, "ana", "new", vector=new)
    assert near(large, new, "ana", 1) == ["ana-new"]
    large.update("ana-new", VECTORS[5], None)
    assert set(near(large, VECTORS[5], "ana", 2)) == {"ana-5", "ana-new"}
    large.delete({"id": "ana-5"})
    assert near(large, VECTORS[5], "ana", 1) == ["ana-new"]
    put(large, "ana", "zero", vector=np.zeros(DIMENSION, np.float32))
    assert "ana-zero" in near(large, new, "ana", ROWS + 1)


def test_an_index_is_built_once(large: MemoryTable, postgres_pool: BlockingPool) -> None:
    built = query(postgres_pool, "SELECT 'memory_vectors_1'::regclass::oid")
    for number in range(60):
        put(large, "ana", f"more{number}", vector=VECTORS[number])
    assert query(postgres_pool, "SELECT 'memory_vectors_1'::regclass::oid") == built


def test_another_embedder_gets_its_own_index_in_the_place_of_the_old(
    large: MemoryTable, open_postgres: Open, postgres_pool: BlockingPool
) -> None:
    other = open_postgres(model="it's 100% {where}", dimension=3)
    assert other.nearest(random_vectors(1, 3)[0], scope("ana"), 5) == []
    vectors = random_vectors(ROWS, 3)
    names = [f"ana-{number}" for number in range(ROWS)]
    other.set_vectors(dict(zip(names[:90], vectors[:90], strict=True)))
    assert "words" in indexes(postgres_pool)[0], "it serves those who still use the old one"
    other.set_vectors(dict(zip(names[90:], vectors[90:], strict=True)))
    [rows] = indexes(postgres_pool)
    assert rows == "((scope = 1) AND (space = 'it''s 100% {where} 3'::text))"
    assert near(other, vectors[17], "ana", 1) == ["ana-17"]
    assert near(large, VECTORS[0], "ana", 5) == []


def test_an_index_that_cannot_be_made_costs_no_write(
    table: MemoryTable,
    postgres_pool: BlockingPool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(nearest, "BUILD_MEMORY", "no size")
    vectors = dict(enumerate(VECTORS[:140]))
    with caplog.at_level(logging.WARNING):
        for number, vector in vectors.items():
            put(table, "ana", f"{number}", vector=vector)
    assert "searches are slower" in caplog.text
    assert indexes(postgres_pool) == []
    assert near(table, VECTORS[3], "ana", 10)[0] == "ana-3"
    monkeypatch.undo()
    monkeypatch.setattr(nearest, "WORTH_INDEXING", 100)
    monkeypatch.setattr(nearest, "LOOK_EVERY", 1)
    put(table, "ana", "more", vector=VECTORS[0])
    assert len(indexes(postgres_pool)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("worth", [20_000, 150])
def test_ten_of_ten_are_found_for_each_of_fifty_users_among_ten_thousand_random_rows(
    table: MemoryTable, postgres_pool: BlockingPool, monkeypatch: pytest.MonkeyPatch, worth: int
) -> None:
    monkeypatch.setattr(nearest, "WORTH_INDEXING", worth)
    vectors = random_vectors(10_000, DIMENSION, seed=9)
    for start in range(0, 10_000, 500):
        with table.transaction():
            for number in range(start, start + 500):
                put(table, f"user{number % 50}", f"{number}", vector=vectors[number])
    assert bool(indexes(postgres_pool)) == (worth == 150)
    for user in range(50):
        order = sorted(range(user, 10_000, 50), key=lambda one: -float(vectors[one] @ vectors[0]))
        expected = [f"user{user}-{number}" for number in order[:10]]
        found = near(table, vectors[0], f"user{user}")
        assert len(set(found) & set(expected)) >= (10 if worth == 20_000 else 9)
        assert len(found) == 10
    assert len(table.nearest(vectors[0], {"agent_id": "agent"}, 10)) == 10
