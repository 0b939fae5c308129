"""Heuristic importance and trust."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.events.rules import entry_for_event
from memory.journal.entries import TRUST, heuristic_importance, mentions, names_project
from memory.messages.convert import valid_event
from memory.settings import Settings


def score(text: str, **more: object) -> int:
    arguments = {"direct": False, "mentioned": False, "known_entities": (), **more}
    return heuristic_importance(text, **arguments)  # type: ignore[arg-type]


def test_it_starts_at_two() -> None:
    assert score("The rain has stopped") == 2


def test_a_direct_message_adds_three() -> None:
    assert score("The rain has stopped", direct=True) == 5


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
    value = score(text, direct=True, mentioned=mentioned, sender_bonus=bonus, known_entities=["Bo"])
    assert 1 <= value <= 10


@pytest.mark.parametrize("text", ["@Ada come", "Ask (@Ada)!", "hello,@Ada", "hi @ada_2"])
def test_an_at_sign_at_the_start_of_a_word_is_a_mention(text: str) -> None:
    assert mentions(text)


@pytest.mark.parametrize(
    "text",
    [
        "Write to ada@example.org",
        "a.b+c@example.org",
        "2 @ 3 coins",
        "@",
        "https://example.org/@ada",
    ],
)
def test_an_address_or_a_lone_sign_is_no_mention(text: str) -> None:
    assert not mentions(text)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("build_tavern", "The build_tavern plan"),
        ("build_tavern", "We BUILD  tavern walls"),
        ("build-tavern", "On build tavern: walls"),
        ("tavern", "The tavern's roof, (tavern)"),
        ("c++", "Learning c++ now"),
        ("x", "Plan X is on"),
    ],
)
def test_a_project_is_named_by_its_key_as_whole_words(key: str, text: str) -> None:
    assert names_project(text, key)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("a", "Talk and eat"),
        ("e", "An e-mail came"),
        ("t", "They don't"),
        ("s", "The tavern's roof"),
        ("art", "We start the party"),
        ("build_tavern", "Build the tavern"),
        ("-", "This - or that"),
        ("", "Nothing"),
    ],
)
def test_a_key_inside_other_words_names_no_project(key: str, text: str) -> None:
    assert not names_project(text, key)


def test_an_event_is_scored_and_related_by_whole_words() -> None:
    raw = {"id": "e1", "at": "2026-03-02T09:00:00+00:00", "sender": "Ada"}
    event = valid_event({**raw, "text": "Mail ada@example.org about the old mill"})
    entry = entry_for_event(event, known_entities=(), projects=["a", "old_mill", "mil"])
    assert (entry["importance"], entry["related_projects"]) == (5, ["old_mill"])


@pytest.mark.parametrize(
    ("sender", "addressed", "source", "importance"),
    [
        ("Ada", True, "direct", 7),
        ("Ada", False, "direct", 4),
        ("Bot", True, "inference", 7),
        ("system", True, "environmental", 7),
    ],
)
def test_who_speaks_decides_the_trust_and_to_whom_the_importance(
    sender: str, addressed: bool, source: str, importance: int
) -> None:
    """A mention in a room is no direct message, though it is said to the assistant."""
    raw = {"id": "e1", "at": "2026-03-02T09:00:00+00:00", "sender": sender, "channel": "hall"}
    event = valid_event({**raw, "text": "@circadian the rain stopped", "addressed": addressed})
    settings = Settings(assistants=["Bot"])
    entry = entry_for_event(event, known_entities=(), projects=(), settings=settings)
    assert (entry["source_type"], entry["importance"]) == (source, importance)
    assert entry["source_trust"] == TRUST[entry["source_type"]]


def test_everything_at_once_is_ten() -> None:
    text = "Alice, the goal of the quest"
    arguments = {"direct": True, "mentioned": True, "known_entities": ["Alice"]}
    assert score(text, sender_bonus=2, **arguments) == 10


def test_trust_is_by_source() -> None:
    assert TRUST == {
        "direct": 0.9,
        "observation": 0.8,
        "inference": 0.6,
        "compaction": 0.6,
        "environmental": 0.3,
    }
