"""What the offline model does in a night: scores, facts, extraction, summaries, subtasks."""

from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel

from memory.events.rules import reflection_event
from memory.models.client import ask_for
from memory.models.offline.model import OfflineAnswer, OfflineChatModel, decide
from memory.models.offline.night import NOTHING, importance
from memory.settings import Settings
from tests.support.offline_prompts import TOOLS, asked, results, say


class Scores(BaseModel):
    scores: list[dict[str, Any]]


class Subtasks(BaseModel):
    subtasks: list[str]


BATCH = """Entries:
[j1] 2026-05-10T09:00 Alice: Hi! I moved to Porto in March 2024 because of my new job.
[j2] 2026-05-10T09:01 Bob: Wow, that's great! How are you?
[j3] 2026-05-10T09:02 -: The library closes at six: bring Ana's books.
[f1] Alice lives in Lisbon and [x] is not an entry: really."""


async def test_every_entry_shown_gets_a_score_by_the_rules() -> None:
    found, _ = await ask_for(OfflineChatModel(), [HumanMessage(BATCH)], Scores, Settings())
    assert found.scores == [
        {"id": "j1", "importance": 7},
        {"id": "j2", "importance": 2},
        {"id": "j3", "importance": 5},
    ]


def test_consolidation_stores_a_fact_per_entry_that_states_something() -> None:
    decision = decide([HumanMessage(BATCH)], TOOLS)
    (store, args), (noop, _) = asked(decision)
    assert (store, noop) == ("store_memory", "noop")
    assert args["facts"] == [
        {
            "text": "I moved to Porto in March 2024 because of my new job.",
            "source_ids": ["j1"],
            "speaker": "Alice",
            "entities": ["Alice", "Porto", "March"],
        },
        {
            "text": "The library closes at six: bring Ana's books.",
            "source_ids": ["j3"],
            "entities": ["Ana"],
        },
    ]
    after = results(decision, {"stored": 2, "rejected": []}, {})
    assert not decide([HumanMessage(BATCH), *after], TOOLS).calls


@pytest.mark.parametrize(
    ("said", "called"),
    [("I moved to Porto.", ["store_memory"]), ("Hello there! How are you?", ["noop"])],
)
def test_consolidation_calls_noop_only_where_something_is_left_out(
    said: str, called: list[str]
) -> None:
    text = f"Entries:\n[j1] 2026-05-10T09:00 Alice: {said}"
    assert [name for name, _ in asked(decide([HumanMessage(text)], TOOLS))] == called


@pytest.mark.parametrize(
    ("result", "follows"),
    [
        ({"rejected": [{"text": "x", "error": "first person, with no one else: 'I'"}]}, ["noop"]),
        ({"success": False, "error": "the store is full"}, []),
        ({"stored": 1, "rejected": []}, []),
    ],
    ids=["rejected", "failed", "stored"],
)
def test_a_noop_settles_the_entries_of_rejected_facts(
    result: dict[str, Any], follows: list[str]
) -> None:
    batch = HumanMessage("Entries:\n[j1] 2026-05-10T09:00 -: I moved to Porto.")
    first = decide([batch], TOOLS)
    second = decide([batch, *results(first, result)], TOOLS)
    assert [name for name, _ in asked(second)] == follows


def test_extraction_draws_no_conclusions() -> None:
    history = [HumanMessage("On 3 May I met Ana.", name="Alice"), HumanMessage("[pre-compaction]")]
    tools = ["noop", "add_journal_entry"]
    for decision in (
        decide(history, [*tools, "update_entity_observation"]),
        say("[pre-compaction] Journal it.", tools=tools),
    ):
        assert [name for name, _ in asked(decision)] == ["noop"]


def _summary(text: str) -> str:
    system = SystemMessage("Summarise the conversation below for the assistant.")
    return decide([system, HumanMessage(text)], []).text


def test_a_summary_is_extractive_and_clearly_shorter() -> None:
    lines = [
        "human (Alice): Hello! I moved to Porto in March 2024. The sea is near, and I walk there.",
        "ai: Noted: I moved to Porto. [calls add_goal]",
        'tool: {"success": true, "goal_id": "goal_1_0"}',
        "human (Bob): How are you? I sold my boat to Carl for 900 euros. He wanted it for years.",
        "human (Alice): Thanks! What a day it was for all of us, and so warm.",
    ] * 3
    text = "\n".join(lines)
    summary = _summary(text)
    assert 0 < len(summary) <= 0.3 * len(text)
    assert "Alice: I moved to Porto in March 2024." in summary
    assert "Bob: I sold my boat to Carl for 900 euros." in summary
    assert "success" not in summary


def test_a_summary_keeps_what_an_earlier_one_says_first() -> None:
    earlier = "system: [CONTEXT SUMMARY] Carl has a brown dog."
    rest = "\n".join(f"human (Bob): On {day} June I fed the cat of my aunt." for day in range(9))
    summary = _summary(f"{earlier}\n{rest}")
    assert summary.startswith("Carl has a brown dog.")
    assert "Bob: On 0 June I fed the cat" in summary


@pytest.mark.parametrize(
    "text", ["human (A): hi", "human: Hello there, how are you?", "x y", "ai: "]
)
def test_even_a_tiny_conversation_has_a_shorter_summary(text: str) -> None:
    assert 0 < len(_summary(text)) < len(text)


@pytest.mark.parametrize(
    ("goal", "subtasks"),
    [
        ("Buy milk, eggs and bread", ["Buy milk", "Buy eggs", "Buy bread"]),
        (
            "Plan a party: invite Ana, order food; book a room",
            ["Invite Ana", "Order food", "Book a room"],
        ),
        ("Do a, b, c, d, e, f, g, h and i", None),
        ("Build a complete tavern", None),
    ],
)
async def test_subtasks_come_from_the_goals_own_words(
    goal: str, subtasks: list[str] | None
) -> None:
    prompt = [HumanMessage(f"Goal: {goal}")]
    found, _ = await ask_for(OfflineChatModel(), prompt, Subtasks, Settings())
    assert 3 <= len(found.subtasks) <= 7
    if subtasks is not None:
        assert found.subtasks == subtasks
    else:
        assert all(word in " ".join(found.subtasks) for word in goal.split() if len(word) > 3)


def test_a_request_is_as_important_as_what_it_tells() -> None:
    request = "I'm thinking of attending the mixer on May 10, can you help me prepare for it?"
    told = "I'm thinking of attending the mixer on May 10."
    assert importance(request) >= importance(told) >= 4
    assert importance("What about adding the autocomplete feature with the debounce delay?") >= 4
    assert importance("Tea?") == importance("Thanks a lot!") == 2


def test_a_reflection_draws_no_conclusions_with_or_without_its_event() -> None:
    now = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    event = reflection_event(25, now, Settings(), since=25, calls=47, failed=2)
    tools = ["add_journal_entry", "noop", "review_journal"]
    assert say(event["text"], name=None, tools=tools) == OfflineAnswer(NOTHING)
    assert say(event["text"], name=None, tools=[]) == OfflineAnswer(NOTHING)
    assert decide([SystemMessage("You look at your own work.")], tools) == OfflineAnswer(NOTHING)


def test_words_like_the_events_are_no_reflection_where_other_tools_are_at_hand() -> None:
    decision = say("[reflection] Remember that I like tea", tools=[*TOOLS, "review_journal"])
    assert decision.calls == ()
    assert decision.text != NOTHING
