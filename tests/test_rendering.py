"""Rendering: no component outgrows its budget, and what is left out is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory import rendering
from memory.records import Conversation, Event, Goal, Projects, RecallHit, SessionMemory
from memory.settings import Settings
from memory.state import fresh_state
from memory.tokens import approximate_tokens, calibrated
from tests.agents import opened, said
from tests.clock import Clock
from tests.scripted import scripted

AT = "2026-03-02T09:00:00+00:00"
LONG = "many words of no use " * 500
NO_MEMORY: SessionMemory = fresh_state()["session_memory"]
NO_PROJECTS: Projects = {"active": None, "slots": {}}


def heard(number: int, text: str) -> Event:
    return {
        "id": f"e{number}",
        "at": AT,
        "sender": "Bea",
        "text": text,
        "channel": None,
        "addressed": False,
    }


def hit(number: int, text: str) -> RecallHit:
    return {
        "id": f"m{number}",
        "kind": "fact",
        "text": text,
        "score": 1.0,
        "sources": [],
        "at": AT,
        "speaker": "Ada",
    }


def goal(number: int, text: str) -> Goal:
    return {
        "id": f"goal_1_{number}",
        "description": text,
        "priority": "medium",
        "status": "active",
        "progress": 0,
        "created": AT,
        "parent_id": None,
        "subtask_ids": [],
        "auto_generated": False,
    }


def projects(context: str, others: int, summary: str = "a book") -> Projects:
    slot: Any = {
        "summary": summary,
        "context": context,
        "status": "active",
        "created_at": AT,
        "last_active": AT,
    }
    names = ["book", *[f"other {n}" for n in range(others)]]
    return {"active": "book", "slots": dict.fromkeys(names, slot)}


def conversations(count: int) -> dict[str, Conversation]:
    return {
        f"p{n}": {
            "entity": f"person {n} " + "x" * 180,
            "channel": None,
            "last_event": "e",
            "last_at": f"2026-03-02T09:{n:02}",
            "pending_actions": [],
        }
        for n in range(count)
    }


def memory(text: str, count: int) -> SessionMemory:
    return {
        **NO_MEMORY,
        "key_facts": [f"{n} {text}" for n in range(count)],
        "learned_patterns": [f"{n} {text}" for n in range(count)],
    }


CROWDED: dict[str, Callable[[Settings, float], str]] = {
    "context_buffer_tokens": lambda settings, factor: rendering.context_buffer(
        [heard(n, LONG) for n in range(40)], settings, factor
    ),
    "goals_tokens": lambda settings, factor: rendering.goals(
        {f"goal_1_{n}": goal(n, LONG) for n in range(40)}, settings, factor
    ),
    "entity_tokens": lambda settings, factor: rendering.entity_context(
        conversations(50), settings, factor
    ),
    "project_tokens": lambda settings, factor: rendering.character_context(
        settings, projects(LONG * 3, 40, LONG), NO_MEMORY, factor
    ),
    "session_memory_tokens": lambda settings, factor: rendering.character_context(
        settings, NO_PROJECTS, memory(LONG, 40), factor
    ),
    "recall_tokens": lambda settings, factor: rendering.semantic_memories(
        [hit(n, LONG) for n in range(40)], tokens=settings.recall_tokens, calibration=factor
    ),
}


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("budget", CROWDED)
def test_a_crowded_component_stays_within_its_budget(budget: str, factor: float) -> None:
    settings = Settings(persona="")
    text = CROWDED[budget](settings, factor)
    used = calibrated(approximate_tokens(text), factor)
    most = getattr(settings, budget)
    assert most / 2 < used <= most + 30


@pytest.mark.parametrize("budget", [name for name in CROWDED if name != "recall_tokens"])
def test_what_is_left_out_is_said(budget: str) -> None:
    assert "left out" in CROWDED[budget](Settings(), 1.0)


def test_every_budget_is_tested() -> None:
    assert set(CROWDED) == set(rendering.BUDGETS)


def test_of_many_events_the_newest_are_shown_oldest_first() -> None:
    events = [heard(n, "word " * 100) for n in range(40)]
    first, *shown = rendering.context_buffer(events).splitlines()
    assert first == f"... {40 - len(shown)} older left out"
    assert [line[3 : line.index("]")] for line in shown] == [
        f"e{n}" for n in range(40 - len(shown), 40)
    ]


def test_one_long_goal_alone_is_shown_whole() -> None:
    text = "fence " * 1_000
    assert text in rendering.goals({"goal_1_0": goal(0, text)})


def test_one_long_event_does_not_hide_the_others() -> None:
    shown = rendering.context_buffer([heard(0, "first"), heard(1, LONG), heard(2, "last")])
    lines = shown.splitlines()
    assert [lines[0][-5:], lines[1][-4:], lines[2][-4:]] == ["first", " ...", "last"]


def test_what_fits_is_shown_as_it_is() -> None:
    text = rendering.character_context(
        Settings(persona="P"), projects("chapter one", 1), memory("x", 1)
    )
    assert text.splitlines() == [
        "P",
        "Active project: book - a book",
        "chapter one",
        "Other projects:",
        "- other 0 (active): a book",
        "Session memory:",
        "- fact: 0 x",
        "- pattern: 0 x",
    ]


def test_one_long_memory_does_not_hide_those_behind_it() -> None:
    hits = [hit(0, LONG), *[hit(n, f"short {n}") for n in range(1, 6)]]
    lines = rendering.semantic_memories(hits, tokens=300).splitlines()
    assert lines[0].endswith(" ...")
    assert [line.split(": ")[1] for line in lines[1:]] == [f"short {n}" for n in range(1, 6)]


def test_a_memory_too_long_for_the_rest_is_skipped_and_the_next_is_tried() -> None:
    hits = [hit(0, "a word " * 30), hit(1, LONG), hit(2, "short")]
    lines = rendering.semantic_memories(hits, tokens=110).splitlines()
    assert [line[3:5] for line in lines] == ["m0", "m2"]


def test_memories_are_counted_as_the_provider_counts() -> None:
    hits = [hit(n, "word " * 20) for n in range(40)]
    once = rendering.semantic_memories(hits, tokens=600).splitlines()
    twice = rendering.semantic_memories(hits, tokens=600, calibration=2.0).splitlines()
    assert len(twice) == pytest.approx(len(once) / 2, abs=1)


@pytest.mark.parametrize("limit", [2_000, 8_000, 100_000])
async def test_ambient_text_never_fills_the_context(
    tmp_path: Path, clock: Clock, limit: int
) -> None:
    ambient = [
        {"id": f"e{n}", "text": LONG * 5, "sender": "Bea", "addressed": False} for n in range(12)
    ]
    model = scripted("I am here.")
    settings = Settings(max_context_tokens=limit)
    async with opened(tmp_path / "data", model, clock, settings=settings) as agent:
        await agent.ainvoke({"events": ambient})
        await agent.aupdate_state({"projects": projects(LONG * 20, 40, LONG)})
        out = await agent.ainvoke(said("Are you there?"))
        kept = (await agent.aget_state()).values["context_buffer"]
    assert out["report"]["ticks"][0]["reply"] == "I am here."
    assert approximate_tokens(model.calls[0].messages[:1]) <= limit * 0.55
    assert kept[0]["text"] == LONG * 5


async def test_the_event_in_hand_is_shown_whole(tmp_path: Path, clock: Clock) -> None:
    model = scripted("Long.")
    async with opened(tmp_path / "data", model, clock) as agent:
        await agent.ainvoke(said(LONG * 5))
    assert str(model.calls[0].messages[-1].text) == LONG * 5
