"""Filters of the table of memories: equality, lists and ranges, the same in both databases."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.facts.table import MemoryTable, split
from tests.support.tables import direction, ids, nearest, payload, put, scope


def _fill(table: MemoryTable) -> None:
    put(table, "ana", "a", speaker="Ana", trust=0.9, valid_from="2026-03-01")
    put(table, "ana", "b", speaker="Ben", trust=0.3, valid_from="2026-03-02")
    put(table, "ana", "c", speaker=None, trust=0.6)
    put(table, "ana", "d", kind="episode", importance=7, valid_from="2026-03-03")


def found(table: MemoryTable, filters: Mapping[str, object]) -> list[list[str]]:
    """The ids of the rows that match: selected, by meaning, and by words."""
    near = nearest(table, direction(1.0), filters, 99)
    worded = table.keywords(["text"], filters, 99)
    return [ids(table.select(filters)), ids(near), ids(worded)]


FILTERS: list[tuple[dict[str, Any], str]] = [
    ({"speaker": "Ana"}, "a"),
    ({"speaker": ["Ana", "Ben", "Ana"]}, "ab"),
    ({"speaker": []}, ""),
    ({"speaker": ["Ana\0"]}, ""),
    ({"speaker": None}, "cd"),
    ({"importance": 7}, "d"),
    ({"trust": [0.9, 0.3]}, "ab"),
    ({"trust": {"gt": 0.6}}, "a"),
    ({"trust": {"gte": 0.6}}, "ac"),
    ({"trust": {"gte": 0.3, "lt": 0.9}}, "bc"),
    ({"trust": {"lte": 0.3}}, "b"),
    ({"valid_from": {"gte": "2026-03-02"}}, "bd"),
    ({"kind": ["episode"]}, "d"),
    ({"op": "a", "speaker": "Ben"}, ""),
    ({"id": ["ana-a", "ana-d", "nobody"]}, "ad"),
    ({}, "abcd"),
]


def test_a_filter_passes_the_rows_that_it_describes(table: MemoryTable) -> None:
    put(table, "ben", "a", speaker="Ana", trust=0.9, importance=7)
    for filters, expected in FILTERS:
        _fill(table)
        own = {"user_id": "ana", **filters}
        named = [f"ana-{op}" for op in expected]
        assert found(table, own) == [named] * 3, filters
        assert table.count(own) == len(named), filters
        assert table.delete(own) == len(named), filters
        assert table.count({}) == 5 - len(named), filters
        table.delete({"user_id": "ana"})


def test_filters_apply_before_ranking(table: MemoryTable) -> None:
    for number in range(60):
        put(table, "ana", f"{number}", "boat boat", speaker="Ana", invalid_at="2026-03-02")
        put(table, "ben", f"{number}", "boat boat", speaker="Ben")
    put(table, "ana", "far", "boat and other words", vector=direction(0.1, 1.0), speaker="Ben")
    wanted = {**scope("ana"), "speaker": "Ben", "invalid_at": None}
    assert ids(nearest(table, direction(1.0), wanted, 1)) == ["ana-far"]
    assert ids(table.keywords(["boat"], wanted, 1)) == ["ana-far"]


def test_a_filter_without_a_scope_ranks_over_all_scopes(table: MemoryTable) -> None:
    put(table, "ana", "a", "fox", vector=direction(1.0, 1.0))
    put(table, "ben", "a", "fox and many other words of no use", vector=direction(1.0))
    assert ids(nearest(table, direction(1.0), {"agent_id": "agent"}, 1)) == ["ben-a"]
    assert sorted(ids(table.keywords(["fox"], {}, 5))) == ["ana-a", "ben-a"]
    assert sorted(ids(table.select({"user_id": ["ana", "ben"]}))) == ["ana-a", "ben-a"]


UNKNOWN: list[tuple[dict[str, Any], str]] = [
    ({"speaker": {"ne": "Ana"}}, "ne"),
    ({"speaker": {"gte": "Ana", "near": 1}}, "near"),
    ({"speaker": {"contains": "A"}}, "contains"),
    ({"speaker": {"in": ["Ana"]}}, "in"),
    ({"speaker": {}}, "speaker"),
    ({"speaker": {"gt": None}}, "None"),
    ({"trust": {"gt": True}}, "True"),
    ({"trust": "0.5"}, "0.5"),
    ({"speaker": 5}, "5"),
    ({"speaker": ["Ana", None]}, "None"),
    ({"speaker": object()}, "object"),
    ({"trust": float("nan")}, "nan"),
    ({"OR": [{"speaker": "Ana"}]}, "OR"),
    ({"AND": [{"user_id": "ben"}]}, "AND"),
    ({"$not": [{"op": "z"}]}, "not"),
    ({"note": 1}, "note"),
    ({"": 1}, "''"),
]


def test_an_unknown_filter_is_an_error_that_names_it_and_changes_nothing(
    table: MemoryTable,
) -> None:
    _fill(table)
    calls = (table.select, table.count, table.delete, table.count_unembedded)
    for filters, named in UNKNOWN:
        wanted = {**scope("ana"), **filters}
        for call in calls:
            with pytest.raises(ValueError, match="filter") as caught:
                call(wanted)
            assert named in str(caught.value)
        with pytest.raises(ValueError, match="filter"):
            nearest(table, direction(1.0), wanted, 5)
        with pytest.raises(ValueError, match="filter"):
            table.keywords(["text"], wanted, 5)
        assert table.count({}) == 4, filters


def test_filters_are_split_into_a_scope_and_tests_of_a_row() -> None:
    assert split({**scope("ana"), "kind": "fact"}) == (scope("ana"), {"kind": "fact"})
    assert split({"user_id": ["ana"], "agent_id": None}) == (
        {"agent_id": None},
        {"user_id": ["ana"]},
    )


TEXTS = st.text(alphabet="aAbß%_'\" é", max_size=3)
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, -1.5, 2.0])
TEXT_FIELDS, NUMBER_FIELDS = ("speaker", "session", "invalid_at"), ("trust", "importance")
STORED = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(TEXT_FIELDS, st.none() | TEXTS),
        **dict.fromkeys(NUMBER_FIELDS, st.none() | NUMBERS),
    },
)


def _asked(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    bounds = st.dictionaries(st.sampled_from(["gt", "gte", "lt", "lte"]), values, min_size=1)
    return st.none() | values | st.lists(values, max_size=3) | bounds


ASKED = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(TEXT_FIELDS, _asked(TEXTS)),
        **dict.fromkeys(NUMBER_FIELDS, _asked(NUMBERS)),
    },
)


def passes(row: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    return all(_holds(row.get(name), wanted) for name, wanted in filters.items())


def _holds(value: Any, wanted: Any) -> bool:
    if wanted is None or value is None:
        return value is wanted
    if isinstance(wanted, list):
        return value in wanted
    if not isinstance(wanted, dict):
        return bool(value == wanted)
    tests = {
        "gt": lambda bound: value > bound,
        "gte": lambda bound: value >= bound,
        "lt": lambda bound: value < bound,
        "lte": lambda bound: value <= bound,
    }
    return all(tests[operator](bound) for operator, bound in wanted.items())


_users = count()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=st.lists(STORED, min_size=1, max_size=4), asked=ASKED)
def test_filters_mean_the_same_as_in_plain_python(
    table: MemoryTable, rows: list[dict[str, Any]], asked: dict[str, Any]
) -> None:
    user = f"user{next(_users)}"
    with table.transaction():
        for op, row in enumerate(rows):
            table.insert(f"{user}-{op}", direction(1.0), payload(user, f"{op}", "text", **row))
    stored = [{"invalid_at": None, **row} for row in rows]
    expected = [f"{user}-{op}" for op, row in enumerate(stored) if passes(row, asked)]
    wanted = {**scope(user), **asked}
    assert found(table, wanted) == [expected] * 3
    assert table.count(wanted) == len(expected)
