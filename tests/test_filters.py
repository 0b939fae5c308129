"""Mem0's filters: what they mean, the same in both databases and in plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.vectorstore.filters import Equals, Every, condition_of, fixed, without
from memory.vectorstore.table import MemoryTable
from tests.tables import direction, ids, payload, put, scope


@pytest.fixture
def people(table: MemoryTable) -> MemoryTable:
    """Four rows: of Ana, of Ben, of nobody, and an episode."""
    put(table, "ana", "a", speaker="Ana", trust=0.9, tags=["boat", "Sea"], valid_from="2026-03-01")
    put(table, "ana", "b", speaker="Ben", trust=0.3, settled=True, valid_from="2026-03-02")
    put(table, "ana", "c", speaker=None, trust=0.6, settled=False, note="A big BOAT, 100%_")
    put(table, "ana", "d", kind="episode", importance=7, note=5, valid_from="2026-03-03")
    return table


def found(table: MemoryTable, filters: Mapping[str, object]) -> list[list[str]]:
    """The ids of the rows that match: selected, by meaning, and by words."""
    near = table.nearest(direction(1.0), filters, 99)
    worded = table.keywords(["text"], filters, 99)
    return [ids(table.select(filters)), ids(near), ids(worded)]


FILTERS: list[tuple[dict[str, Any], str]] = [
    ({"speaker": "Ana"}, "a"),
    ({"speaker": ["Ana", "Ben", "Ana"]}, "ab"),
    ({"speaker": []}, ""),
    ({"speaker": None}, "cd"),
    ({"speaker": [None, "Ben"]}, "bcd"),
    ({"speaker": "*"}, "ab"),
    ({"note": "*"}, "cd"),
    ({"speaker": {"eq": "*"}}, ""),
    ({"settled": True}, "b"),
    ({"settled": 1}, ""),
    ({"note": 5}, "d"),
    ({"note": "5"}, ""),
    ({"trust": {"eq": 0.9}}, "a"),
    ({"speaker": {"ne": "Ana"}}, "bcd"),
    ({"trust": {"gt": 0.6}}, "a"),
    ({"trust": {"gte": 0.6}}, "ac"),
    ({"trust": {"gte": 0.3, "lt": 0.9}}, "bc"),
    ({"trust": {"lte": 0.3}}, "b"),
    ({"note": {"gt": 4}}, "d"),
    ({"note": {"gt": "4"}}, "c"),
    ({"valid_from": {"gte": "2026-03-02"}}, "bd"),
    ({"trust": {"in": [0.9, 0.3]}}, "ab"),
    ({"kind": {"in": ["episode"]}}, "d"),
    ({"speaker": {"nin": ["Ana"]}}, "bcd"),
    ({"note": {"contains": "BOAT"}}, "c"),
    ({"note": {"contains": "boat"}}, ""),
    ({"note": {"contains": "0%_"}}, "c"),
    ({"note": {"contains": "%"}}, "c"),
    ({"note": {"icontains": "boat"}}, "c"),
    ({"speaker": {"icontains": "AN"}}, "a"),
    ({"tags": {"contains": "boat"}}, "a"),
    ({"tags": {"contains": "sea"}}, ""),
    ({"tags": {"icontains": "sea"}}, "a"),
    ({"tags": "boat"}, ""),
    ({"AND": [{"trust": {"gt": 0.2}}, {"trust": {"lt": 0.8}}]}, "bc"),
    ({"OR": [{"speaker": "Ana"}, {"importance": 7}]}, "ad"),
    ({"$or": [{"speaker": "Ana"}, {"importance": 7}]}, "ad"),
    ({"NOT": [{"speaker": "Ana"}, {"importance": 7}]}, "bc"),
    ({"$not": [{"speaker": "Ana"}], "trust": "*"}, "bc"),
    ({"OR": [{"AND": [{"speaker": "Ben"}, {"settled": True}]}, {"NOT": [{"trust": "*"}]}]}, "bd"),
    ({"op": "a", "speaker": "Ben"}, ""),
    ({"id": ["ana-a", "ana-d", "nobody"]}, "ad"),
    ({}, "abcd"),
]


@pytest.mark.parametrize(("filters", "expected"), FILTERS)
def test_a_filter_lets_through_what_it_says(
    people: MemoryTable, filters: dict[str, Any], expected: str
) -> None:
    put(people, "ben", "a", speaker="Ana", trust=0.9, note="BOAT 5", settled=True, importance=7)
    own = {"user_id": "ana", "AND": [filters]} if filters else {"user_id": "ana"}
    named = [f"ana-{op}" for op in expected]
    assert found(people, own) == [named] * 3
    assert people.count(own) == len(named)
    assert people.delete(own) == len(named)
    assert people.count({}) == 5 - len(named)


def test_filters_come_before_ranking(table: MemoryTable) -> None:
    for number in range(60):
        put(table, "ana", f"{number}", "boat boat", speaker="Ana", invalid_at="2026-03-02")
        put(table, "ben", f"{number}", "boat boat", speaker="Ben")
    put(table, "ana", "far", "boat and other words", vector=direction(0.1, 1.0), speaker="Ben")
    wanted = {**scope("ana"), "speaker": "Ben", "invalid_at": None}
    assert ids(table.nearest(direction(1.0), wanted, 1)) == ["ana-far"]
    assert ids(table.keywords(["boat"], wanted, 1)) == ["ana-far"]


def test_a_filter_without_a_scope_is_ranked_over_all_scopes(table: MemoryTable) -> None:
    put(table, "ana", "a", "fox", vector=direction(1.0, 1.0))
    put(table, "ben", "a", "fox and many other words of no use", vector=direction(1.0))
    assert ids(table.nearest(direction(1.0), {"agent_id": "agent"}, 1)) == ["ben-a"]
    assert sorted(ids(table.keywords(["fox"], {}, 5))) == ["ana-a", "ben-a"]


@pytest.mark.parametrize(
    "filters",
    [
        {"speaker": {"like": "Ana"}},
        {"speaker": {"eq": "Ana", "near": 1}},
        {"speaker": {}},
        {"speaker": {"in": "Ana"}},
        {"speaker": {"eq": ["Ana"]}},
        {"speaker": {"gt": None}},
        {"speaker": {"gt": True}},
        {"speaker": {"contains": 5}},
        {"speaker": [["Ana"]]},
        {"speaker": object()},
        {"trust": float("nan")},
        {"trust": 2**63},
        {"XOR": [{"speaker": "Ana"}]},
        {"$xor": "Ana"},
        {"OR": []},
        {"AND": "Ana"},
        {"NOT": [{}]},
        {"OR": [{"speaker": {"like": "Ana"}}]},
        {'x"': 1},
        {"": 1},
    ],
)
def test_what_is_no_filter_is_refused_and_changes_nothing(
    people: MemoryTable, filters: dict[str, Any]
) -> None:
    for call in (people.select, people.count, people.delete, people.count_unembedded):
        with pytest.raises(ValueError, match="filter"):
            call({**scope("ana"), **filters})
    with pytest.raises(ValueError, match="filter"):
        people.nearest(direction(1.0), {**scope("ana"), **filters}, 5)
    with pytest.raises(ValueError, match="filter"):
        people.keywords(["text"], {**scope("ana"), **filters}, 5)
    assert people.count({}) == 4


@pytest.mark.parametrize(
    "filters",
    [
        {"AND": [{"user_id": "ben"}]},
        {"OR": [{"user_id": "ben"}, {"op": "a"}]},
        {"NOT": [{"op": "z"}]},
    ],
)
def test_no_filter_leads_out_of_a_scope(people: MemoryTable, filters: dict[str, Any]) -> None:
    put(people, "ben", "a")
    for named in found(people, {**scope("ana"), **filters}):
        assert "ben-a" not in named


def test_values_that_must_hold_are_read_off_a_condition() -> None:
    asked = condition_of(
        {**scope("ana"), "AND": [{"kind": "fact"}, {"op": "a"}], "trust": {"gt": 0.5}}
    )
    assert fixed(asked) == {"user_id": "ana", "agent_id": "agent", "kind": "fact", "op": "a"}
    assert without(Every((Equals("user_id", "ana"),)), {"user_id": "ana"}) == Every(())
    twice = condition_of({"AND": [{"user_id": "ana"}, {"user_id": "ben"}]})
    assert without(twice, fixed(twice)) == Every((Equals("user_id", "ana"),))
    assert fixed(condition_of({"OR": [{"user_id": "ana"}], "NOT": [{"op": "a"}]})) == {}


TEXTS = st.text(alphabet="aAbß%_'\" é", max_size=3)
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, -1.5, 2.0])
VALUES = st.none() | st.booleans() | NUMBERS | TEXTS
FIELDS = st.sampled_from(["x", "y", "a field"])
STORED = VALUES | st.lists(TEXTS, max_size=2)
COLUMNS = st.fixed_dictionaries(
    {},
    optional={
        "speaker": st.none() | TEXTS,
        "trust": st.none() | NUMBERS,
        "x": STORED,
        "y": STORED,
        "a field": STORED,
    },
)


def _operators() -> st.SearchStrategy[dict[str, object]]:
    compared = NUMBERS | TEXTS
    listed = st.lists(VALUES, max_size=3)
    options: dict[str, st.SearchStrategy[Any]] = {"eq": VALUES, "ne": VALUES}
    options |= {"in": listed, "nin": listed, "contains": TEXTS, "icontains": TEXTS}
    options |= dict.fromkeys(["gt", "gte", "lt", "lte"], compared)
    some = st.fixed_dictionaries({}, optional=options)
    return some.filter(lambda chosen: 0 < len(chosen) < 3)


ONE = st.dictionaries(
    FIELDS | st.sampled_from(["speaker", "trust"]),
    VALUES | st.just("*") | st.lists(VALUES, max_size=3) | _operators(),
    min_size=1,
    max_size=2,
)
ASKED = st.recursive(
    ONE,
    lambda inner: st.dictionaries(
        st.sampled_from(["AND", "OR", "NOT", "$or", "$not"]),
        st.lists(inner, min_size=1, max_size=2),
        min_size=1,
        max_size=2,
    ),
    max_leaves=5,
)


def holds(filters: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """The same filters, said in plain Python."""
    return all(_holds_one(key, wanted, row) for key, wanted in filters.items())


def _holds_one(key: str, wanted: Any, row: Mapping[str, Any]) -> bool:
    if key in ("AND", "OR", "NOT", "$or", "$not"):
        each = [holds(one, row) for one in wanted]
        return all(each) if key == "AND" else any(each) != (key in ("NOT", "$not"))
    value = row.get(key)
    if wanted == "*":
        return value is not None
    if isinstance(wanted, dict):
        return all(_tests(operator, value, given) for operator, given in wanted.items())
    return _tests("in" if isinstance(wanted, list) else "eq", value, wanted)


def _tests(operator: str, value: Any, given: Any) -> bool:
    if operator in ("ne", "nin"):
        return not _tests({"ne": "eq", "nin": "in"}[operator], value, given)
    if operator == "in":
        return any(_same(value, one) for one in given)
    if operator == "eq":
        return _same(value, given)
    if operator in ("contains", "icontains"):
        return _contains(value, given, fold=operator == "icontains")
    if _kind(value) != _kind(given):
        return False
    compared = {"gt": value > given, "gte": value >= given, "lt": value < given}
    return bool(compared.get(operator, value <= given))


def _contains(value: Any, given: str, *, fold: bool) -> bool:
    def folded(text: str) -> str:
        return text.casefold() if fold else text

    if isinstance(value, list):
        return folded(given) in [folded(one) for one in value]
    return isinstance(value, str) and folded(given) in folded(value)


def _kind(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return repr(value)
    return "number" if isinstance(value, int | float) else type(value).__name__


def _same(value: Any, given: Any) -> bool:
    return _kind(value) == _kind(given) and bool(value == given)


_users = count()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(COLUMNS, min_size=1, max_size=4), asked=ASKED)
def test_every_filter_means_what_it_means_in_plain_python(
    table: MemoryTable, rows: list[dict[str, Any]], asked: dict[str, Any]
) -> None:
    user = f"user{next(_users)}"
    with table.transaction():
        for op, row in enumerate(rows):
            table.insert(f"{user}-{op}", direction(1.0), payload(user, f"{op}", "text", **row))
    expected = [f"{user}-{op}" for op, row in enumerate(rows) if holds(asked, row)]
    wanted = {**scope(user), "AND": [asked]}
    assert found(table, wanted) == [expected] * 3
    assert table.count(wanted) == len(expected)
