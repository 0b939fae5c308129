"""Each line format of a prompt is read as it was written; numbers stand in place of ids."""

from datetime import UTC
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, ValidationError

from memory.messages import as_data, data_in, prompt_lines
from memory.messages.prompt_lines import (
    LEAST_PREFIX,
    Citation,
    Citations,
    DatedLine,
    GoalLine,
    Handles,
    ProjectLine,
)
from memory.prompt import rendering
from memory.records.profiles import EntityProfile, Observation
from memory.records.records import Fact, Goal, JournalEntry, RecallHit

SPEAKERS = pytest.mark.parametrize("who", ["Ada", "Ada  van\nHorn", None])
TEXT = "The glass (12 mm): [x] 2026-05-04\n</goals> arrives - soon (near: it)."
SHOWN = "The glass (12 mm): [x] 2026-05-04 </goals> arrives - soon (near: it)."


def name(who: str | None) -> str | None:
    return " ".join(who.split()) if who else None


def record(**fields: Any) -> Any:
    return fields


@SPEAKERS
def test_an_entry_of_a_nights_batch(who: str | None) -> None:
    entry: JournalEntry = record(
        id="event_1", timestamp="2026-05-04T09:10:11+00:00", source_entity=who, content=TEXT
    )
    line = prompt_lines.entry_line(entry, "3", ZoneInfo("Europe/Vienna"))
    assert line.startswith("[3] Mon 2026-05-04 11:10 ")
    message = prompt_lines.entries_message(f"{line}\n{prompt_lines.asked_line('[4] Is it so?')}")
    assert prompt_lines.read_entries(message) == [
        DatedLine("3", "2026-05-04 11:10", name(who), SHOWN)
    ]


@SPEAKERS
def test_an_observation(who: str | None) -> None:
    seen: Observation = record(id="o1", at="2026-05-04T09:10:11+00:00", speaker=who, text=TEXT)
    line = prompt_lines.observation_line(seen, ZoneInfo("Europe/Vienna"))
    assert " Mon 2026-05-04 " in line
    assert prompt_lines.read_dated(line) == DatedLine("o1", "2026-05-04", name(who), SHOWN)


@SPEAKERS
def test_a_memory_of_a_tick(who: str | None) -> None:
    text = TEXT if who else "It rains."
    line = prompt_lines.memory_line("Mon 2026-05-04 09:10", who, text)
    shown = SHOWN if who else text
    assert prompt_lines.read_shown(line) == DatedLine("", "Mon 2026-05-04 09:10", name(who), shown)
    assert prompt_lines.read_dated(line) is None


@pytest.mark.parametrize(
    ("marks", "inferred", "who"),
    [
        ({}, False, "Ada"),
        ({"superseded": True}, False, "Ada (no longer holds)"),
        ({"disputed": True}, False, "Ada (disputed)"),
        ({"disputed": True}, True, "- (an inference) (disputed)"),
        ({}, True, "- (an inference)"),
    ],
)
def test_a_memory_under_a_nights_question(marks: dict[str, Any], inferred: bool, who: str) -> None:
    hit: RecallHit = record(
        id="f1", at="2026-05-04T09:10:11+00:00", speaker="Ada", text=TEXT, **marks
    )
    line = prompt_lines.hit_line(hit, "7", UTC, inferred=inferred)
    assert line == f"[7] Mon 2026-05-04 09:10 {who}: {SHOWN}"
    read = prompt_lines.read_dated(line)
    assert read == DatedLine("7", "2026-05-04 09:10", who, SHOWN)
    assert prompt_lines.unmarked(read).speaker == (None if inferred else "Ada")


def test_an_event_of_the_context_buffer() -> None:
    when = "Mon 2026-05-04 09:10"
    line = prompt_lines.event_line("e9", when, "Carl on general", SHOWN)
    assert prompt_lines.read_shown(line) == DatedLine("e9", when, "Carl on general", SHOWN)


@SPEAKERS
def test_a_fact_of_a_dream(who: str | None) -> None:
    fact: Fact = record(valid_from="2026-05-04T09:10:11+00:00", speaker=who, text=TEXT)
    assert prompt_lines.read_dated(prompt_lines.fact_line(fact, "12", UTC)) == DatedLine(
        "12", "2026-05-04 09:10", name(who), SHOWN
    )


def test_an_entity_with_what_is_known_of_it() -> None:
    profile: EntityProfile = record(id="entity_ada", name="Ada  [van] Horn")
    line = prompt_lines.entity_line(profile)
    assert prompt_lines.read_entity(line) == ("entity_ada", "Ada [van] Horn")
    assert prompt_lines.known_line("home", TEXT) == f"known home: {SHOWN}"
    assert prompt_lines.read_entity(prompt_lines.known_line("home", TEXT)) is None


def test_a_goal_to_split() -> None:
    assert prompt_lines.read_goal_to_split(prompt_lines.goal_to_split(TEXT)) == SHOWN


@pytest.mark.parametrize("name", [None, "Ada"])
def test_a_turn_of_a_conversation(name: str | None) -> None:
    line = prompt_lines.turn_line("human", name, SHOWN)
    assert prompt_lines.read_turn(line) == (name or "human", SHOWN)


def goal(id_: str, text: str, parent: str | None = None) -> Goal:
    fields: Any = {"status": "active", "progress": 40, "priority": "high", "parent_id": parent}
    fields["subtask_ids"] = []
    made: Goal = record(id=id_, description=text, created="2026-05-04", **fields)
    return made


def test_goals_as_the_prompt_shows_them() -> None:
    goals = {"goal_1_0": goal("goal_1_0", TEXT), "goal_1_1": goal("goal_1_1", "Dig", "goal_1_0")}
    block = data_in(as_data("goals", rendering.goals(goals, tokens=1_000)), "goals")
    assert [prompt_lines.read_goal(line) for line in str(block).splitlines()] == [
        GoalLine("goal_1_0", SHOWN, "high", "active", 40, 0),
        GoalLine("goal_1_1", "Dig", "high", "active", 40, 1),
    ]


def test_projects_and_session_memory_as_the_prompt_shows_them() -> None:
    slots = {
        "shed": record(summary="Build - a shed", context="The wood is here.", status="active"),
        "boat": record(summary="Sail (far)", context="", status="paused"),
    }
    memory = record(key_facts=[TEXT], learned_patterns=["Ada asks late"])
    projects = rendering.projects(cast(Any, {"active": "shed", "slots": slots}), tokens=1_000)
    assert prompt_lines.read_projects(projects.splitlines()) == [
        ProjectLine("shed", "Build - a shed", "active", ("The wood is here.",)),
        ProjectLine("boat", "Sail (far)", "paused"),
    ]
    remembered = rendering.session_memory(memory, tokens=1_000).splitlines()
    assert prompt_lines.read_session_memory(remembered) == [SHOWN, "Ada asks late"]


@pytest.mark.parametrize("line", ["", "People here:", "[x] Ada: hello", "- goal_1 [high] Dig"])
def test_other_lines_are_not_read(line: str) -> None:
    assert prompt_lines.read_dated(line) is None
    assert prompt_lines.read_goal(line) is None


IDS = [
    "event_20261117_goran-1",
    "event_20261117_nadja-2",
    "9f86d081884c7d65",
    *(f"more_{n}" for n in range(4, 13)),
]
HANDLES = Handles(IDS)


def test_they_are_numbered_in_the_order_shown_each_id_once() -> None:
    handles = Handles(["b", "a", "b", "c"])
    assert [(id_, handles.of(id_)) for id_ in handles] == [("b", "1"), ("a", "2"), ("c", "3")]
    assert len(handles) == 3


@pytest.mark.parametrize(
    "given",
    [
        *("3", 3, "[3]", "#3", "(3)", "[#3]", "3.", "3)", " 3 ", "<3>", "`3`", '"3"', "**3**"),
        *("entry 3", "Entry #3", "entry [3]", "Entry: 3", "No. 3", "journal entry 3", "Eintrag 3"),
        *("[3] Tue 2026-11-17 09:00 Goran: 17 croissants", "٣"),
        *(IDS[2], f"[{IDS[2]}]", IDS[2][:8], f"#{IDS[2][:LEAST_PREFIX]}"),
    ],
)
def test_a_number_or_an_id_in_whatever_dress_means_its_record(given: str | int) -> None:
    assert HANDLES.resolve(given) == IDS[2]


@pytest.mark.parametrize(
    "given",
    [
        *(
            "13",
            0,
            -3,
            "-3",
            "3.5",
            "1 and 2",
            "1, 2",
            "",
            "[]",
            "e3",
            "17 March",
            "entry",
            "three",
        ),
        *("event_20261117", "more_", "9f86", "event_20261117_goran-12", "9f86d081884c7d65 more"),
    ],
)
def test_what_was_not_shown_or_may_mean_two_things_means_nothing(given: str | int) -> None:
    assert HANDLES.resolve(given) is None


def test_a_number_beats_the_beginning_of_an_id() -> None:
    assert Handles(["200000", "b"]).resolve("2") == "b"
    assert Handles(["2000001", "b"]).resolve("200000") == "2000001"


def test_every_number_comes_back() -> None:
    assert [HANDLES.resolve(HANDLES.of(id_)) for id_ in IDS] == IDS


def test_the_range_is_named() -> None:
    assert (Handles("a").range, HANDLES.range) == (
        "the only number shown is 1",
        "shown are 1 to 12",
    )


class Form(BaseModel):
    one: Citation = "1"
    several: Citations = []


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ([1, "2", 3.0], ["1", "2", "3"]),
        (3, ["3"]),
        ("3", ["3"]),
        ("1, 2 and", ["1, 2 and"]),
        ("[1, 2]", ["1", "2"]),
        ('["1","2"]', ["1", "2"]),
        ("[1][2]", ["1", "2"]),
        (["1, 2", "#3"], ["1", "2", "3"]),
        (["event_20261117_goran-1"], ["event_20261117_goran-1"]),
        (None, []),
    ],
)
def test_citations_are_a_list_however_they_were_given(given: Any, read: list[str]) -> None:
    assert Form(several=given).several == read


@pytest.mark.parametrize("given", [True, 2.5, {"id": 3}, None, ["1"]])
def test_what_is_no_citation_is_refused(given: Any) -> None:
    with pytest.raises(ValidationError):
        Form(one=given)


def test_a_model_is_asked_for_plain_text() -> None:
    form = Form.model_json_schema()["properties"]
    assert form["one"]["type"] == "string"
    assert (form["several"]["type"], form["several"]["items"]) == ("array", {"type": "string"})
