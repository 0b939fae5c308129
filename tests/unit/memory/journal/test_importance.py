"""Heuristic importance and trust."""

import pytest

from memory.events.rules import entry_for_event
from memory.journal.entries import TRUST, heuristic_importance, mentions, names_project
from memory.messages.convert import valid_event
from memory.settings import Settings


def score(text: str, **more: object) -> int:
    arguments = {"direct": False, "mentioned": False, "known_entities": (), **more}
    return heuristic_importance(text, **arguments)  # type: ignore[arg-type]


RAIN = "The rain has stopped"
ALL = "Alice and Bob: the goal of this quest, a goal and a task"


@pytest.mark.parametrize(
    ("text", "more", "importance"),
    [
        (RAIN, {}, 2),
        (RAIN, {"direct": True}, 5),
        (RAIN, {"mentioned": True}, 4),
        ("Our goal is near", {}, 3),
        ("Goals!", {}, 3),
        ("the QUEST begins", {}, 3),
        ("two tasks", {}, 3),
        ("A quest is a task", {}, 3),
        ("goalkeeper, request, multitasking", {}, 2),
        ("I saw alice today", {"known_entities": ["Alice"]}, 3),
        ("I saw Mary  Ann today", {"known_entities": ["Mary Ann"]}, 3),
        ("What malice!", {"known_entities": ["Alice"]}, 2),
        ("Mary met Ann", {"known_entities": ["Mary Ann"]}, 2),
        ("Nobody is named", {"known_entities": ["", "  "]}, 2),
        (ALL, {"known_entities": ["Alice", "Bob"]}, 5),
        *((RAIN, {"sender_bonus": n}, 2 + max(0, min(n, 2))) for n in (-3, 0, 1, 2, 9)),
        (
            ALL,
            {"direct": True, "mentioned": True, "sender_bonus": 2, "known_entities": ["Bob"]},
            10,
        ),
    ],
)
def test_importance_adds_up(text: str, more: dict[str, object], importance: int) -> None:
    assert score(text, **more) == importance


@pytest.mark.parametrize(
    ("text", "is_mention"),
    [
        *((text, True) for text in ("@Ada come", "Ask (@Ada)!", "hello,@Ada", "hi @ada_2")),
        *((text, False) for text in ("Write to ada@example.org", "a.b+c@example.org", "@")),
        *((text, False) for text in ("2 @ 3 coins", "https://example.org/@ada")),
    ],
)
def test_an_at_sign_at_the_start_of_a_word_is_a_mention(text: str, is_mention: bool) -> None:
    assert mentions(text) is is_mention


@pytest.mark.parametrize(
    ("key", "text", "named"),
    [
        ("build_tavern", "The build_tavern plan", True),
        ("build_tavern", "We BUILD  tavern walls", True),
        ("build-tavern", "On build tavern: walls", True),
        ("tavern", "The tavern's roof, (tavern)", True),
        ("c++", "Learning c++ now", True),
        ("x", "Plan X is on", True),
        ("a", "Talk and eat", False),
        ("e", "An e-mail came", False),
        ("t", "They don't", False),
        ("s", "The tavern's roof", False),
        ("art", "We start the party", False),
        ("build_tavern", "Build the tavern", False),
        ("-", "This - or that", False),
        ("", "Nothing", False),
    ],
)
def test_a_project_is_named_by_its_key_as_whole_words(key: str, text: str, named: bool) -> None:
    assert names_project(text, key) is named


def test_an_event_is_scored_and_related_by_whole_words() -> None:
    raw = {"id": "e1", "at": "2026-03-02T09:00:00+00:00", "sender": "Ada"}
    event = valid_event({**raw, "text": "Mail ada@example.org about the old mill"})
    entry = entry_for_event(event, projects=["a", "old_mill", "mil"])
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
    entry = entry_for_event(event, settings=settings)
    assert (entry["source_type"], entry["importance"]) == (source, importance)
    assert entry["source_trust"] == TRUST[entry["source_type"]]


def test_trust_is_by_source() -> None:
    assert TRUST == {
        "direct": 0.9,
        "observation": 0.8,
        "inference": 0.6,
        "compaction": 0.6,
        "environmental": 0.3,
    }
