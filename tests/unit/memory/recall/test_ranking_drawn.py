"""Ranking what was drawn from other memories: behind them, unless it says more."""

from collections.abc import Sequence
from typing import Any

import pytest

from memory.facts.table import Row
from memory.recall.merging import says_again
from memory.recall.ranking import Candidate, scaled, stretched
from memory.text.analysis import read_query, terms
from tests.unit.memory.recall.test_ranking import fact, placed, row


def insight(one: str, text: str, *sources: str, **fields: Any) -> Row:
    drawn = {"session": one, "source_events": [f"event {source}" for source in sources]}
    return row(one, text, **{**drawn, **fields})


def asked(
    query: str, *worded: tuple[Row, float], near: Sequence[tuple[Row, float]] = ()
) -> dict[str, Candidate]:
    found = placed(read_query(query, ["Ana"]), near, worded)
    return {one.row.payload["op"]: one for one in found}


SAID = (row("a", "The harp is old"), row("b", "I sold the harp", speaker="Ana"))


@pytest.mark.parametrize(
    "text",
    [
        "The harp comes up in 2 memories: old, sold",
        "Ana speaks of the harp in 2 memories; the newest (2026-03-01): I sold the harp",
    ],
)
def test_an_insight_that_says_no_more_of_the_query_stands_as_its_evidence_on_the_whole(
    text: str,
) -> None:
    drawn = insight("i", text, "a", "b", speaker="Ana")
    found = asked("Is the harp of Ana in 2026 old?", (SAID[0], 3.0), (SAID[1], 1.0), (drawn, 9.0))
    assert found["i"].score == pytest.approx((found["a"].score + found["b"].score) / 2)
    assert found["i"].parts["evidence"] < 0
    assert found["i"].score == pytest.approx(sum(found["i"].parts.values()))
    assert not {"evidence"} & (found["a"].parts.keys() | found["b"].parts.keys())
    assert list(found) == ["a", "i", "b"]


def test_evidence_that_was_not_found_counts_for_nothing() -> None:
    worded = [(SAID[0], 3.0), (SAID[1], 1.0)]
    two, four = (
        insight(one, "The harp", "a", "b", *more) for one, more in (("i", ()), ("j", "cd"))
    )
    found = asked("The harp?", *worded, (two, 9.0), (four, 9.0))
    assert found["j"].score == pytest.approx(found["i"].score / 2)


def test_an_insight_that_has_a_word_of_the_query_more_stands_for_itself() -> None:
    drawn = insight("i", "Ana parts with instruments like the harp", "a", "b")
    found = asked("Which instruments, harp or not?", (SAID[0], 3.0), (SAID[1], 1.0), (drawn, 9.0))
    assert next(iter(found)) == "i"
    assert "evidence" not in found["i"].parts


def test_how_near_an_insight_is_in_meaning_is_its_own() -> None:
    drawn = insight("i", "The harp", "a", "b")
    near = [(drawn, 0.9), (SAID[0], 0.2)]
    found = asked("The harp?", (SAID[0], 3.0), (SAID[1], 1.0), (drawn, 9.0), near=near)
    bare = {
        one: sum(part for name, part in found[one].parts.items() if name != "meaning")
        for one in found
    }
    assert bare["i"] == pytest.approx((bare["a"] + bare["b"]) / 2)
    assert found["i"].parts["meaning"] > 0


def test_what_was_drawn_from_nothing_that_is_known_stands_for_itself() -> None:
    notes = [insight("i", "The harp", "gone"), insight("j", "The harp"), row("k", "The harp")]
    found = asked("The harp?", *((one, 2.0) for one in notes))
    assert all("evidence" not in one.parts for one in found.values())


def test_an_insight_that_does_not_fit_better_than_its_evidence_is_left_where_it_is() -> None:
    drawn = insight("i", "The harp", "a", "b")
    found = asked("The harp?", (SAID[0], 3.0), (SAID[1], 2.9), (drawn, 0.1))
    assert "evidence" not in found["i"].parts


def test_what_repeats_the_words_of_others_does_not_measure_them() -> None:
    drawn = insight("i", "The harp", "a")
    assert scaled([(drawn, 8.0), (SAID[0], 4.0)]) == {"row i": 1.0, "row a": 1.0}
    assert scaled([(drawn, 8.0)]) == {"row i": 1.0}


@pytest.mark.parametrize("measure", [scaled, stretched])
def test_a_fact_made_of_an_entry_does_not_measure_what_was_said(measure: Any) -> None:
    entries = [(SAID[0], 0.8), (SAID[1], 0.4)]
    found = measure([*entries, (fact("f", "The harp", "a"), 0.9), (fact("g", "Oboe", "a"), 0.0)])
    assert found == {**measure(entries), "row f": 1.0}


@pytest.mark.parametrize(
    ("text", "fields", "again"),
    [
        ("The harp is old", {}, True),
        ("Ana: the harp is old", {"speaker": "Ana"}, True),
        ("The harp is old and dear", {}, False),
        ("The harp", {}, False),
        ("The harp is old", {"other_words": ["lyre"]}, False),
        ("The harp is old", {"invalid_at": "2026-03-02T00:00:00+00:00"}, False),
        ("The harp is old", {"source_entries": ["gone"]}, False),
    ],
)
def test_a_fact_says_an_entry_again_if_it_adds_nothing_of_the_query(
    text: str, fields: dict[str, Any], again: bool
) -> None:
    entries = {"a": row("a", "The big harp is old")}
    wanted = terms("the lyre or harp")
    assert says_again(fact("f", text, "a", **fields), entries, wanted) is again
