"""The class of an event: what takes something away from a tick is given to the plain cases only."""

from __future__ import annotations

import pytest

from memory.events.assessment import event_class_of

NAMES = ["Circadian"]


@pytest.mark.parametrize(
    ("text", "event_class"),
    [
        *((text, "communication") for text in (
            "Hello",
            "Good morning, Circadian!",
            "Hi there! Nice to see you again.",
            "Thank you, see you tomorrow!",
            "Thanks for all your help :)",
            'Bob says, "Good evening, all"',
            "Ada whispers to you: goodbye",
        )),
        *((text, "building") for text in (
            "Build a tavern",
            "Can you help me build a tavern?",
            "Hello! Please create a project.",
            "spawn three sheep, then destroy the old wall",
        )),
        *((text, "goal_action") for text in (
            "Add a goal: fix the roof",
            "What are my goals?",
            "Thanks! The second task is complete.",
        )),
        *((text, "observation") for text in (
            "look",
            "Look around.",
            "Please look at the old chest",
            "Circadian examine the ledger!",
            "inspect the gate",
        )),
        *((text, "movement") for text in (
            "Go to the inn",
            "walk north",
            "move back to the old mill.",
            "enter the tavern",
        )),
        *((text, "query") for text in (
            "What did the barrels cost?",
            "Good morning! Who is coming on Sunday?",
            "Is anybody allergic to strawberries? Thanks!",
            "How are you?",
        )),
    ],
)  # fmt: skip
def test_the_class_of_an_event(text: str, event_class: str) -> None:
    assert event_class_of(text, NAMES)[0] == event_class


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ok",
        "Yes please",
        "Great, thanks",
        "Hello, remember that I like tea",
        "hi, delete everything",
        "Say hello to Bob",
        "Remember that I like tea, and add a note of it",
        "Thanks, now send Bob the list",
    ],
)
def test_a_message_that_asks_for_something_or_may_is_no_chit_chat(text: str) -> None:
    """A mere yes may be the answer to a question."""
    assert event_class_of(text, NAMES)[0] == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        "Look, I need three things from you",
        "look up the price of tea",
        "Look at the gate and mend it",
        "Inspect the gate. Then mend it.",
        "Go on for ever",
        "go to the next step",
        "Go to the inn and order a beer",
        "Go to the inn?",
        "Look: here",
        "move the meeting to Friday",
        "move to production",
        "enter the numbers",
        "Enter the tavern, then tell me what you see",
    ],
)
def test_a_word_of_looking_or_going_alone_makes_no_single_action(text: str) -> None:
    assert event_class_of(text, NAMES)[0] == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        "What a day!",
        "How about moving the meeting?",
        "What if we met on Friday?",
        "Why don't you tell Bob?",
        "Could you remember that I like tea?",
        "What time is it, and can you note that down?",
        "I moved to Oslo. What did I say about it?",
        "What did I say of the gate" + " and of the barn" * 8 + "?",
        "Where the gate is I will tell you",
    ],
)
def test_more_than_a_question_is_no_query(text: str) -> None:
    assert event_class_of(text, NAMES)[0] == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        "Guten Morgen!",
        "Was kostet das?",
        "Is dat goed?",
        "Merci beaucoup",
        "¿Dónde está el puente?",
        "你好",
        "これは何ですか?",
        "Построй таверну",
        "🙂🙂",
    ],
)
def test_what_is_not_understood_is_unknown(text: str) -> None:
    assert event_class_of(text, NAMES)[0] == "unknown"


def test_keywords_are_whole_words() -> None:
    for text in ("The rebuilders are here", "A buildup of recreated goalposts", "completely"):
        assert event_class_of(text)[0] == "unknown"


def test_a_word_of_any_length_takes_no_longer_than_its_letters() -> None:
    # Searched from each of its letters, it would take until the time limit of the test.
    assert event_class_of("x" * 400_000)[0] == "unknown"


def test_the_first_class_in_the_order_of_the_rules_is_taken() -> None:
    assert event_class_of("What does it take to build a goal?")[0] == "building"
    assert event_class_of("What is the goal?")[0] == "goal_action"
