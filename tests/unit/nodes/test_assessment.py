"""The heuristic assessment by visible rules: class of event, complexity, urgency, advice."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.events.rules import assess, complexity_of, event_class_of
from memory.planning.goals import in_hand, update
from memory.records.tick import Assessment
from memory.settings import Settings
from tests.support.tool_calls import goals_of
from tools.policy import CONTEXTS, assessment_pattern, select_execution_pattern

LARGE = (
    "Plan and hold the harvest festival: find a field, invite the neighbours, order the tables, "
    "hire a band and print the posters"
)


def taken(text: str | None, **changes: Any) -> Assessment:
    quiet: dict[str, Any] = {
        "kind": "event",
        "goals": {},
        "percentage": 10.0,
        "recent_errors": 0,
        "names": ["circadian"],
    }
    return assess(text, **{**quiet, **changes})


@pytest.mark.parametrize(
    ("text", "mode", "iterations", "confirm"),
    [
        ("Thank you!", "single_action", 1, False),
        ("What did it cost?", "react_loop", 2, False),
        ("Build a tavern", "react_loop", None, True),
        ("Add a goal", "react_loop", None, False),
        ("I like tea", None, None, False),
    ],
)
def test_what_each_class_recommends(
    text: str, mode: str | None, iterations: int | None, confirm: bool
) -> None:
    assessment = taken(text)
    assert assessment["by"] == "heuristic"
    assert assessment["recommended_mode"] == mode
    assert assessment["recommended_iterations"] == iterations
    assert assessment["recommend_confirm_dangerous"] is confirm


@pytest.mark.parametrize(
    "text",
    [
        *("", "Guten Morgen!", "Is dat goed?", "你好", "I like tea"),
        *("Can you help me build a tavern?", "Remember that I like tea, and add a goal"),
        *("Plan my garden", LARGE),
    ],
)
def test_neither_a_request_nor_what_is_not_understood_is_narrowed(text: str) -> None:
    """One message may lead to many steps, however short it is."""
    context = CONTEXTS["tick_event"]
    narrowed = select_execution_pattern(Settings(), context, assessment_pattern(taken(text)))
    assert narrowed == select_execution_pattern(Settings(), context)


@pytest.mark.parametrize(
    ("text", "complexity"),
    [
        ("", 1),
        ("Write a book", 1),
        ("Write a book and sell it", 2),
        ("Plan the garden", 2),
        ("Prepare the hall, the lights; the music and the food", 4),
        ("- dig\n- sow\n- water\n- weed", 3),
        ("word " * 30, 2),
        ("word " * 60, 3),
        (LARGE, 5),
        (LARGE * 3, 5),
        ("挖菜园、播种、浇水、除草、收获所有的蔬菜并且送给邻居、最后庆祝", 4),
    ],
)
def test_complexity_is_counted(text: str, complexity: int) -> None:
    assert complexity_of(text)[0] == complexity


def test_a_list_that_begins_with_and_has_no_part_more() -> None:
    assert complexity_of("And now?")[1].endswith("1 part")
    assert complexity_of("Dig, and then sow.")[1].endswith("2 parts")


@pytest.mark.parametrize(
    ("percentage", "pressure"),
    [(0.0, "normal"), (59.9, "normal"), (60.0, "high"), (79.9, "high"), (80.0, "critical")],
)
def test_token_pressure_has_the_thresholds_of_the_advisory(
    percentage: float, pressure: str
) -> None:
    assert taken("Hi", percentage=percentage)["signals"]["token_pressure"] == pressure


def test_urgency_is_that_of_the_most_important_open_goal() -> None:
    goals = goals_of(("a", "low", None), ("b", "high", None), ("c", "medium", None))
    assert taken("Hi", goals=goals)["signals"]["goal_urgency"] == "high"
    goals = update(goals, "goal_1_1", "completed", None)
    assert taken("Hi", goals=goals)["signals"]["goal_urgency"] == "medium"
    assert taken("Hi")["signals"]["goal_urgency"] == "low"


def test_the_reasoning_says_in_a_sentence_what_decided() -> None:
    assessment = taken("Build a tavern, then a barn", percentage=65.5, recent_errors=2)
    assert assessment["reasoning"] == (
        "Taken for building: it says 'build'; complexity 2 of 5 (7 tokens, 2 parts); "
        "the context is 65.5 % full; 2 failures in a row."
    )
    assert assessment["signals"] == {
        "token_pressure": "high",
        "recent_errors": 2,
        "event_class": "building",
        "goal_urgency": "low",
    }
    assert taken("Hi")["reasoning"] == (
        "Taken for communication: greeting, thanks or small talk only; "
        "complexity 1 of 5 (1 tokens, 1 part)."
    )


def test_a_goal_in_hand_is_planned_only_where_it_is_large_and_may_be() -> None:
    def mode(text: str, plannable: bool) -> str | None:
        assessment = taken(text, kind="goal", plannable=plannable)
        assert assessment["event_class"] == "goal_action"
        return assessment["recommended_mode"]

    assert mode(LARGE, True) == "plan_execute"
    assert mode(LARGE, False) == "react_loop"
    assert mode("What is next?", True) == "react_loop"


def test_a_look_at_ones_own_work_is_not_taken_for_anything() -> None:
    assert taken("Build goals?", kind="reflection")["event_class"] == "unknown"
    assert taken("Hello", kind="reflection", recent_errors=3)["signals"]["recent_errors"] == 3


ROOF: Any = (
    *(("book", "medium", None), ("roof", "high", None), ("tiles", "high", "goal_1_1")),
    *(("beams", "low", "goal_1_1"), ("fence", "high", None)),
)


@pytest.mark.parametrize(
    ("ended", "chosen"),
    [
        ({}, "tiles"),
        ({"goal_1_2": "completed"}, "fence"),
        ({"goal_1_2": "completed", "goal_1_4": "abandoned"}, "book"),
        ({"goal_1_2": "completed", "goal_1_4": "abandoned", "goal_1_0": "completed"}, "beams"),
        ({"goal_1_2": "abandoned", "goal_1_3": "abandoned"}, "roof"),
    ],
)
def test_the_goal_in_hand_is_the_most_important_open_one_with_nothing_open_below(
    ended: dict[str, Any], chosen: str
) -> None:
    goals = goals_of(*ROOF)
    for goal, status in ended.items():
        goals = update(goals, goal, status, None)
    in_it = in_hand(goals)
    assert in_it is not None
    assert in_it["description"] == chosen


def test_without_goals_or_under_an_ancestor_that_is_not_open_nothing_is_in_hand() -> None:
    goals = goals_of(("roof", "high", None), ("tiles", "high", "goal_1_0"))
    goals["goal_1_0"] = {**goals["goal_1_0"], "status": "abandoned"}
    assert in_hand(goals) is None
    assert in_hand({}) is None


@given(st.text(max_size=300))
def test_any_text_is_assessed(text: str) -> None:
    assessment = taken(text)
    assert 1 <= assessment["complexity"] <= 5
    assert assessment["reasoning"]


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
        *((text, "query") for text in (
            "What did the barrels cost?",
            "Good morning! Who is coming on Sunday?",
            "Is anybody allergic to strawberries? Thanks!",
            "How are you?",
        )),
        # The first class in the order of the rules is taken.
        ("What does it take to build a goal?", "building"),
        ("What is the goal?", "goal_action"),
        # A message that asks for something, or may, is no chit-chat: a mere yes may be an answer.
        *((text, "unknown") for text in (
            "",
            "ok",
            "Yes please",
            "Great, thanks",
            "Hello, remember that I like tea",
            "hi, delete everything",
            "Say hello to Bob",
            "Remember that I like tea, and add a note of it",
            "Thanks, now send Bob the list",
        )),
        # More than a question is no query.
        *((text, "unknown") for text in (
            "What a day!",
            "How about moving the meeting?",
            "What if we met on Friday?",
            "Why don't you tell Bob?",
            "Could you remember that I like tea?",
            "What time is it, and can you note that down?",
            "I moved to Oslo. What did I say about it?",
            "What did I say of the gate" + " and of the barn" * 8 + "?",
            "Where the gate is I will tell you",
        )),
        # What is not understood is unknown, and keywords are whole words.
        *((text, "unknown") for text in (
            "Guten Morgen!",
            "Was kostet das?",
            "Is dat goed?",
            "Merci beaucoup",
            "¿Dónde está el puente?",
            "你好",
            "これは何ですか?",
            "Построй таверну",
            "🙂🙂",
            "The rebuilders are here",
            "A buildup of recreated goalposts",
            "completely",
        )),
    ],
)  # fmt: skip
def test_the_class_of_an_event(text: str, event_class: str) -> None:
    assert event_class_of(text, NAMES)[0] == event_class
