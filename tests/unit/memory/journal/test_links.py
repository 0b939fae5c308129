"""Links go both ways, whatever is linked and unlinked; what others linked is left alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.journal.links import End, after, ends_named, fact_ops
from memory.night.undo import inverse
from memory.records.operations import link, link_facts, link_memories, unlink
from memory.records.records import Operation

AT, LATER = "2026-05-03T02:00:00+00:00", "2026-05-04T02:00:00+00:00"
FACTS = {"op1": "f1", "op2": "f2", "op3": "f3"}
"""Fact ids by operation id; op4 is of a fact that does not exist."""
ENTRIES = ("event_20260501_e1", "event_20260501_e2")


def linked(ends: dict[str, End]) -> dict[str, list[str]]:
    return {id_: end["linked_to"] for id_, end in ends.items() if end["linked_to"]}


def relation(kind: str, at: str = AT, reason: str = "because") -> dict[str, str]:
    return {"relation": kind, "reason": reason, "created": at}


def test_both_ends_store_the_link_and_its_relation() -> None:
    ends = after({}, [link_facts("op1", "op2", "supersedes", AT, "moved")], FACTS)
    assert linked(ends) == {"f1": ["f2"], "f2": ["f1"]}
    assert ends["f1"]["relations"] == {
        "f2": {"relation": "supersedes", "reason": "moved", "at": AT}
    }
    assert ends["f2"]["relations"]["f1"] == ends["f1"]["relations"]["f2"]


@pytest.mark.parametrize(
    ("operation", "named", "facts"),
    [
        (link("event_20260501_e1", "op1", AT, "made"), ("event_20260501_e1", "f1"), {"op1"}),
        (link_facts("op1", "op2", "relates", AT, "both"), ("f1", "f2"), {"op1", "op2"}),
        (link_memories("insight_1_x", "f1", AT, "evidence"), ("insight_1_x", "f1"), set()),
        (unlink("f1", "gone", relation("relates"), "gone"), ("f1", "gone"), set()),
        (link_facts("op1", "op4", "relates", AT, "both"), None, {"op1", "op4"}),
        (link_facts("op4", "op1", "relates", AT, "both"), None, {"op1", "op4"}),
        (link_facts("op1", "op1", "relates", AT, "itself"), None, {"op1"}),
    ],
)
def test_facts_are_named_by_operation_id_and_missing_ones_not_linked(
    operation: Operation, named: tuple[str, str] | None, facts: set[str]
) -> None:
    assert ends_named(operation, FACTS) == named
    assert fact_ops(operation) == facts


def test_two_operations_that_made_one_fact_do_not_link_it_to_itself() -> None:
    twice = {"op1": "f1", "op2": "f1"}
    assert after({}, [link_facts("op1", "op2", "duplicates", AT, "same")], twice) == {}


def test_the_first_relation_of_a_pair_stays() -> None:
    one = link_facts("op1", "op2", "relates", AT, "both")
    other = link_facts("op2", "op1", "contradicts", LATER, "no")
    ends = after({}, [one, other], FACTS)
    assert ends["f1"]["relations"]["f2"]["relation"] == "relates"
    assert ends["f2"]["relations"]["f1"]["relation"] == "relates"


def test_an_undo_keeps_an_earlier_link() -> None:
    standing = after({}, [link_facts("op1", "op2", "relates", AT, "both")], FACTS)
    night = [
        link_facts("op2", "op1", "contradicts", LATER, "no"),
        link_facts("op1", "op3", "relates", LATER, "both"),
    ]
    done = after(standing, night, FACTS)
    assert linked(after(done, inverse(night), FACTS)) == {"f1": ["f2"], "f2": ["f1"]}


PAIRS = st.one_of(
    st.tuples(st.sampled_from(ENTRIES), st.sampled_from(["op1", "op2", "op3", "op4"])).map(
        lambda pair: link(*pair, AT, "made")
    ),
    st.tuples(
        st.sampled_from(["op1", "op2", "op3", "op4"]),
        st.sampled_from(["op1", "op2", "op3", "op4"]),
        st.sampled_from(["relates", "duplicates", "contradicts"]),
        st.sampled_from([AT, LATER]),
    ).map(lambda four: link_facts(four[0], four[1], four[2], four[3], "because")),
    st.tuples(
        st.sampled_from(["insight_20260503_a", *ENTRIES]), st.sampled_from(["f1", "f2", *ENTRIES])
    ).map(lambda pair: link_memories(*pair, AT, "evidence")),
)
OPERATIONS = st.lists(st.tuples(PAIRS, st.booleans()), max_size=30)


def mixed(given_: list[tuple[Operation, bool]]) -> list[Operation]:
    return [inverse([one])[0] if away else one for one, away in given_]


@given(OPERATIONS)
def test_links_are_symmetric_and_never_dangle_whatever_is_linked_and_unlinked(
    given_: list[tuple[Operation, bool]],
) -> None:
    ends = after({}, mixed(given_), FACTS)
    known: set[Any] = {*FACTS.values(), *ENTRIES, "insight_20260503_a"}
    for id_, end in ends.items():
        assert end["linked_to"] == sorted(set(end["linked_to"]))
        assert set(end["relations"]) == set(end["linked_to"])
        assert id_ not in end["linked_to"]
        for other in end["linked_to"]:
            assert id_ in ends[other]["linked_to"]
            assert ends[other]["relations"][id_] == end["relations"][other]
    assert {*ends, *(one for end in ends.values() for one in end["linked_to"])} <= known


@given(OPERATIONS)
def test_linking_is_idempotent(given_: list[tuple[Operation, bool]]) -> None:
    links = [one for one, _ in given_]
    once = after({}, links, FACTS)
    assert after(once, links, FACTS) == once


@given(OPERATIONS, OPERATIONS)
def test_undone_links_leave_the_earlier_state(
    before: list[tuple[Operation, bool]], night: list[tuple[Operation, bool]]
) -> None:
    standing = after({}, mixed(before), FACTS)
    made = [
        {**one, "after": {**one["after"], "created": "2026-06-01T02:00:00+00:00"}}
        for one, _ in night
    ]
    back = after(after(standing, made, FACTS), inverse(made), FACTS)  # type: ignore[arg-type] # parts
    assert linked(back) == linked(standing)
