"""What batches that were thought out side by side made of the same fact: the first one counts."""

from __future__ import annotations

from memory.fact_changes import Rivals
from memory.operations import change_fact, settle_fact
from memory.records import Operation
from tests.night_memories import fact

OLD = fact("old", importance=3)
FIRST = change_fact(OLD, {"importance": 5}, [], "first", place="a")


def without_rivals(operations: list[Operation]) -> list[Operation]:
    """Those that count, of operations in this order."""
    rivals = Rivals()
    return [one for one in operations if rivals.allow(one)]


def test_a_second_change_of_the_same_value_is_left_out() -> None:
    second = change_fact(OLD, {"importance": 7}, [], "second", place="b")
    assert without_rivals([FIRST, second]) == [FIRST]


def test_the_same_change_twice_and_one_that_goes_on_from_it_stay() -> None:
    again = change_fact(OLD, {"importance": 5}, [], "again", place="b")
    after = change_fact(fact("old", importance=5), {"importance": 7}, [], "after", place="c")
    assert without_rivals([FIRST, again, after]) == [FIRST, again, after]


def test_other_fields_other_facts_and_lists_that_are_joined_stay() -> None:
    others = [
        change_fact(OLD, {"context": "Of beans."}, [], "light", place="context"),
        change_fact(fact("new"), {"importance": 7}, [], "other", place="d"),
        change_fact(OLD, {"disputed": ["x"]}, [], "one", place="x"),
        change_fact(OLD, {"disputed": ["y"]}, [], "two", place="y"),
        settle_fact("old", "seen"),
    ]
    assert without_rivals([FIRST, *others]) == [FIRST, *others]


def test_of_two_in_whose_place_one_holds_the_first_counts() -> None:
    taken = {"invalid_at": "2026-05-03", "superseded_by": "one"}
    first = change_fact(OLD, taken, [], "moved", place="one")
    second = change_fact(OLD, {**taken, "superseded_by": "two"}, [], "moved", place="two")
    assert without_rivals([first, second]) == [first]
