"""Nearest neighbours in PostgreSQL are exact, however many rows and whatever the filter."""

from collections.abc import Iterable

import numpy as np
import pytest

from memory.facts.table import MemoryTable, Vector
from tests.support.tables import Open, ids, near, nearest, put, random_vectors, scope

DIMENSION = 16
ROWS = 240
VECTORS = random_vectors(ROWS, DIMENSION)


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


def best(wanted: Vector, numbers: Iterable[int], limit: int) -> list[str]:
    order = sorted(numbers, key=lambda number: -float(VECTORS[number] @ wanted))
    return [f"ana-{number}" for number in order[:limit]]


def test_a_filter_never_leaves_too_few(large: MemoryTable) -> None:
    few = {**scope("ana"), "kind": "episode"}
    many = {**scope("ana"), "op": [str(one) for one in range(110)]}
    for number in (0, 7, 150):
        wanted = VECTORS[number]
        assert near(large, wanted, "ana", 10) == best(wanted, range(ROWS), 10)
        assert ids(nearest(large, wanted, few, 10)) == best(wanted, range(0, ROWS, 10), 10)
        assert ids(nearest(large, wanted, many, 10)) == best(wanted, range(110), 10)
        assert len(nearest(large, wanted, scope("ana"), 10_000)) == ROWS
        assert len(near(large, wanted, "ben", 20)) == 9


def test_what_is_written_and_removed_later_is_found_as_it_is(large: MemoryTable) -> None:
    new = random_vectors(1, DIMENSION, seed=8)[0]
    put(large, "ana", "new", vector=new)
    assert near(large, new, "ana", 1) == ["ana-new"]
    large.update("ana-new", VECTORS[5], None)
    assert set(near(large, VECTORS[5], "ana", 2)) == {"ana-5", "ana-new"}
    large.delete({"id": "ana-5"})
    assert near(large, VECTORS[5], "ana", 1) == ["ana-new"]
    put(large, "ana", "zero", vector=np.zeros(DIMENSION, np.float32))
    assert "ana-zero" in near(large, new, "ana", ROWS + 1)


def test_another_embedder_finds_what_it_embedded_itself(
    large: MemoryTable, open_postgres: Open
) -> None:
    other = open_postgres(model="it's 100% {where}", dimension=3)
    assert nearest(other, random_vectors(1, 3)[0], scope("ana"), 5) == []
    vectors = random_vectors(ROWS, 3)
    names = [f"ana-{number}" for number in range(ROWS)]
    other.set_vectors(dict(zip(names, vectors, strict=True)))
    assert near(other, vectors[17], "ana", 1) == ["ana-17"]
    assert near(large, VECTORS[0], "ana", 5) == []


@pytest.mark.slow
def test_ten_of_ten_are_found_for_each_of_fifty_users_among_ten_thousand_random_rows(
    table: MemoryTable,
) -> None:
    vectors = random_vectors(10_000, DIMENSION, seed=9)
    for start in range(0, 10_000, 500):
        with table.transaction():
            for number in range(start, start + 500):
                put(table, f"user{number % 50}", f"{number}", vector=vectors[number])
    for user in range(50):
        order = sorted(range(user, 10_000, 50), key=lambda one: -float(vectors[one] @ vectors[0]))
        expected = [f"user{user}-{number}" for number in order[:10]]
        assert near(table, vectors[0], f"user{user}") == expected
    assert len(nearest(table, vectors[0], {"agent_id": "agent"}, 10)) == 10
