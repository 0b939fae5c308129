"""Heuristic importance and trust, as ruling 2 gives them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.importance import TRUST, heuristic_importance
from memory.records import SourceType


def score(text: str, source: SourceType = "observation", **more: object) -> int:
    arguments: dict[str, object] = {"mentioned": False, "known_entities": (), **more}
    return heuristic_importance(text, source_type=source, **arguments)  # type: ignore[arg-type]


def test_it_starts_at_two() -> None:
    assert score("The rain has stopped") == 2


@pytest.mark.parametrize(
    ("source", "expected"),
    [("direct", 5), ("observation", 2), ("inference", 2), ("environmental", 2), ("compaction", 2)],
)
def test_a_direct_message_adds_three_and_no_other_source_does(
    source: SourceType, expected: int
) -> None:
    assert score("The rain has stopped", source) == expected


def test_a_mention_adds_two() -> None:
    assert score("The rain has stopped", mentioned=True) == 4


@pytest.mark.parametrize("text", ["Our goal is near", "Goals!", "the QUEST begins", "two tasks"])
def test_each_kind_of_keyword_adds_one_as_a_whole_word(text: str) -> None:
    assert score(text) == 3


def test_quest_and_task_are_one_kind() -> None:
    assert score("A quest is a task") == 3


def test_a_known_name_adds_one_as_whole_words() -> None:
    assert score("I saw alice today", known_entities=["Alice"]) == 3
    assert score("I saw Mary  Ann today", known_entities=["Mary Ann"]) == 3
    assert score("What malice!", known_entities=["Alice"]) == 2
    assert score("Mary met Ann", known_entities=["Mary Ann"]) == 2
    assert score("Nobody is named", known_entities=["", "  "]) == 2


def test_all_three_kinds_add_three_however_often_they_occur() -> None:
    text = "Alice and Bob: the goal of this quest, a goal and a task"
    assert score(text, known_entities=["Alice", "Bob"]) == 5


def test_the_sender_adds_at_most_two_and_never_takes_away() -> None:
    assert [score("Hello", sender_bonus=bonus) for bonus in (-3, 0, 1, 2, 9)] == [2, 2, 3, 4, 4]


def test_keywords_inside_other_words_do_not_count() -> None:
    assert score("goalkeeper, request, multitasking") == 2


@given(st.text(max_size=50), st.booleans(), st.integers(-5, 5))
def test_it_is_always_within_one_to_ten(text: str, mentioned: bool, bonus: int) -> None:
    value = score(text, "direct", mentioned=mentioned, sender_bonus=bonus, known_entities=["Bo"])
    assert 1 <= value <= 10


def test_everything_at_once_is_ten() -> None:
    text = "Alice, the goal of the quest"
    assert score(text, "direct", mentioned=True, known_entities=["Alice"], sender_bonus=2) == 10


def test_trust_is_by_source() -> None:
    assert TRUST == {
        "direct": 0.9,
        "observation": 0.8,
        "inference": 0.6,
        "compaction": 0.6,
        "environmental": 0.3,
    }
