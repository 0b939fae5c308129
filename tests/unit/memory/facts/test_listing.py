"""Pages of a list of memories: what is on them and in what order, the same in both databases."""

from typing import Any

import pytest

from memory.facts.table import Listing, MemoryTable
from memory.text import terms
from tests.support.tables import ids, put, scope


@pytest.fixture
def people(table: MemoryTable) -> MemoryTable:
    told: dict[str, Any] = {"importance": 2, "source_events": ["told"]}
    put(table, "ana", "a", "Boats are red", speaker="Ana", valid_from="2026-03-03", **told)
    put(
        table,
        "ana",
        "b",
        "A red house",
        entities=["Ana", "Ö'Neil"],
        valid_from="2026-03-01",
        disputed=["x"],
    )
    put(table, "ana", "c", "Reddish", kind="episode", speaker="Cid", valid_from="2026-03-02")
    put(
        table,
        "ana",
        "d",
        "Red boats sail",
        speaker="Dan",
        importance=9,
        valid_from="2026-03-03",
        source_entries=["said"],
    )
    put(table, "ben", "e", "Boats are red", speaker="Ana", valid_from="2026-03-03")
    return table


LISTS: list[tuple[dict[str, Any], str]] = [
    ({}, "dcba"),
    ({"descending": False}, "abcd"),
    ({"order": "valid_from"}, "dacb"),
    ({"order": "valid_from", "descending": False}, "bcad"),
    ({"terms": terms("red")}, "dba"),
    ({"terms": terms("BOAT red")}, "da"),
    ({"terms": ["re"]}, ""),
    ({"names": ["Ana"]}, "ba"),
    ({"names": ["Dan", "Ö'Neil"]}, "db"),
    ({"names": ["an"]}, ""),
    ({"citing": ["told", "said"]}, "da"),
    ({"citing": ["tol"]}, ""),
    ({"has": "disputed"}, "b"),
    ({"lacks": "disputed", "names": ["Ana"]}, "a"),
    ({"filters": {"kind": "episode"}}, "c"),
    ({"filters": {"importance": {"gte": 2}}, "order": "importance"}, "da"),
    ({"filters": {"kind": "fact"}, "terms": terms("red"), "names": ["Ana"]}, "ba"),
]


def test_a_list_shows_what_it_asks_for_in_its_order(people: MemoryTable) -> None:
    for wanted, expected in LISTS:
        filters = {**scope("ana"), **wanted.get("filters", {})}
        rows, total = people.listed(Listing(**{**wanted, "filters": filters}))
        shown = [f"ana-{op}" for op in expected]
        assert (ids(rows), total) == (shown, len(expected)), wanted


def test_pages_together_are_the_whole_list(people: MemoryTable) -> None:
    pages = [people.listed(Listing(scope("ana"), limit=3, offset=place)) for place in (0, 3, 6)]
    assert [total for _, total in pages] == [4, 4, 4]
    assert [ids(rows) for rows, _ in pages] == [["ana-d", "ana-c", "ana-b"], ["ana-a"], []]


def test_a_filter_that_no_column_has_is_refused(people: MemoryTable) -> None:
    with pytest.raises(ValueError, match="colour"):
        people.listed(Listing({"colour": "red"}))
