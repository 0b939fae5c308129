"""Tables of memories for tests: both databases, and rows to put into them.

The fixtures are registered for every test by conftest.py: `table` is each of the two in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from memory.facts.sqlite.table import SqliteTable
from memory.facts.table import Filters, MemoryTable, Row, Vector, unit

if TYPE_CHECKING:
    from memory.storage.postgres.connections import BlockingPool

DIMENSION = 8
MODEL = "words"
DATABASES = ("sqlite", "postgres")

Open = Callable[..., MemoryTable]
"""Opens the database of this test: (model=, dimension=) -> a table."""


def scope(user: str, agent: str = "agent") -> dict[str, object]:
    return {"user_id": user, "agent_id": agent}


def payload(user: str, op: str | None, text: str = "text", **fields: Any) -> dict[str, Any]:
    return {"data": text, **scope(user), "op": op, "invalid_at": None, **fields}


def direction(*numbers: float, dimension: int = DIMENSION) -> Vector:
    return unit([*numbers, *[0.0] * (dimension - len(numbers))], dimension)


def random_vectors(count: int, dimension: int = DIMENSION, seed: int = 7) -> list[Vector]:
    rows = np.random.default_rng(seed).normal(size=(count, dimension))
    return [unit(row, dimension) for row in rows.astype(np.float32)]


def put(
    table: MemoryTable,
    user: str,
    op: str,
    text: str = "text",
    vector: Vector | None = None,
    **fields: Any,
) -> None:
    given = direction(1.0) if vector is None else vector
    table.insert(f"{user}-{op}", given, payload(user, op, text, **fields))


def ids(found: Iterable[Row | tuple[Row, float]]) -> list[str]:
    return [one.id if isinstance(one, Row) else one[0].id for one in found]


def nearest(
    table: MemoryTable, vector: Vector, filters: Filters, limit: int
) -> list[tuple[Row, float]]:
    """The rows nearest to one vector."""
    [found] = table.nearest([vector], filters, limit)
    return found


def near(table: MemoryTable, vector: Vector, user: str, limit: int = 10) -> list[str]:
    return ids(nearest(table, vector, scope(user), limit))


def worded(table: MemoryTable, user: str, *terms: str, **filters: object) -> list[str]:
    return ids(table.keywords(list(terms), {**scope(user), **filters}, 10))


def miscounted(pool: BlockingPool) -> list[tuple[Any, ...]]:
    """The kinds of each scope in PostgreSQL of which other words are counted than stand."""
    with pool.connection() as connection:
        return connection.execute(
            "WITH standing AS (SELECT scope, kind, count(*) AS rows, sum(cardinality(terms)) AS n"
            "  FROM memories WHERE cardinality(terms) > 0 GROUP BY scope, kind),"
            " indexed AS (SELECT scope, kind, sum(count) AS n FROM memory_terms GROUP BY 1, 2)"
            " SELECT scope, kind, k.rows, k.length, s.rows, s.n, i.n FROM memory_kinds AS k"
            " FULL JOIN standing AS s USING (scope, kind)"
            " FULL JOIN indexed AS i USING (scope, kind)"
            " WHERE (coalesce(k.rows, 0), coalesce(k.length, 0), coalesce(s.n, 0))"
            "  <> (coalesce(s.rows, 0), coalesce(s.n, 0), coalesce(i.n, 0))"
        ).fetchall()


@pytest.fixture
def open_sqlite(tmp_path: Path) -> Iterator[Open]:
    tables: list[SqliteTable] = []

    def open_table(*, model: str = MODEL, dimension: int = DIMENSION) -> MemoryTable:
        tables.append(SqliteTable(tmp_path / "facts.db", model=model, dimension=dimension))
        return tables[-1]

    yield open_table
    for table in tables:
        table.close()


@pytest.fixture
def open_postgres(postgres_pool: BlockingPool) -> Open:
    from memory.facts.postgres.table import PostgresTable

    def open_table(*, model: str = MODEL, dimension: int = DIMENSION) -> MemoryTable:
        return PostgresTable(postgres_pool, model=model, dimension=dimension)

    return open_table


@pytest.fixture(params=DATABASES)
def open_table(request: pytest.FixtureRequest) -> Open:
    """Opens the database of this test, each of the two in turn."""
    opener: Open = request.getfixturevalue(f"open_{request.param}")
    return opener


@pytest.fixture
def table(open_table: Open) -> MemoryTable:
    return open_table()
