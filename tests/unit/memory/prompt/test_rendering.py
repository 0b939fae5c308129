"""Rendering: no component outgrows its budget, and what is left out is said."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from memory.prompt import rendering
from memory.prompt.assembly import GIVES_WAY_FIRST
from memory.records.records import Conversation, Event, Goal, Projects, RecallHit, SessionMemory
from memory.settings import Settings
from memory.state.schema import fresh_state
from memory.text.tokens import approximate_tokens, calibrated
from tests.support.agents import Opening, said
from tests.support.night_deeds import hit_of
from tests.support.night_memories import entry, talk
from tests.support.scripted import scripted
from tests.support.tool_calls import EVENT, goal_of

AT = "2026-03-02T09:00:00+00:00"
LONG = "many words of no use " * 500
NO_MEMORY: SessionMemory = fresh_state()["session_memory"]


def heard(number: int, text: str) -> Event:
    return {**EVENT, "id": f"e{number}", "sender": "Bea", "text": text, "addressed": False}


def hit(number: int, text: str) -> RecallHit:
    return {**hit_of(entry(f"m{number}", content=text)), "kind": "fact"}


def goal(number: int, text: str) -> Goal:
    return goal_of(f"goal_1_{number}", description=text)


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
        f"p{n}": talk(f"person {n} " + "x" * 180, f"2026-03-02T09:{n:02}") for n in range(count)
    }


def memory(text: str, count: int) -> SessionMemory:
    return {
        **NO_MEMORY,
        "key_facts": [f"{n} {text}" for n in range(count)],
        "learned_patterns": [f"{n} {text}" for n in range(count)],
    }


CROWDED: dict[str, Callable[..., str]] = {
    # setting: a list that has more than fits
    "context_buffer_tokens": partial(rendering.context_buffer, [heard(n, LONG) for n in range(40)]),
    "goals_tokens": partial(rendering.goals, {f"goal_1_{n}": goal(n, LONG) for n in range(40)}),
    "entity_tokens": partial(rendering.entity_context, [], conversations(50)),
    "project_tokens": partial(rendering.projects, projects(LONG * 3, 40, LONG)),
    "session_memory_tokens": partial(rendering.session_memory, memory(LONG, 40)),
    "page_tokens": partial(rendering.pages, ["a line of a page\n" * 20] * 40),
    "recall_tokens": partial(rendering.semantic_memories, [hit(n, LONG) for n in range(40)]),
}


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("budget", CROWDED)
def test_a_crowded_component_stays_within_its_budget(budget: str, factor: float) -> None:
    most = getattr(Settings(), budget)
    text = CROWDED[budget](tokens=most, calibration=factor)
    used = calibrated(approximate_tokens(text), factor)
    assert most / 2 < used <= most + 30


@pytest.mark.parametrize("budget", [name for name in CROWDED if name != "recall_tokens"])
def test_what_is_left_out_is_said(budget: str) -> None:
    assert "left out" in CROWDED[budget](tokens=1_000)


def test_every_budget_is_tested() -> None:
    assert set(CROWDED) == set(GIVES_WAY_FIRST)


def test_of_many_events_the_newest_are_shown_oldest_first() -> None:
    events = [heard(n, "word " * 100) for n in range(40)]
    first, *shown = rendering.context_buffer(events, tokens=1_000).splitlines()
    assert first == f"... {40 - len(shown)} older left out"
    assert [line[3 : line.index("]")] for line in shown] == [
        f"e{n}" for n in range(40 - len(shown), 40)
    ]


def test_one_long_goal_alone_is_whole_and_one_long_event_does_not_hide_the_others() -> None:
    text = "fence " * 1_000 + "end"
    assert text in rendering.goals({"goal_1_0": goal(0, text)}, tokens=2_000)
    shown = rendering.context_buffer(
        [heard(0, "first"), heard(1, LONG), heard(2, "last")], tokens=1_000
    )
    lines = shown.splitlines()
    assert [lines[0][-5:], lines[1][-4:], lines[2][-4:]] == ["first", " ...", "last"]


FAKE = "x\n- [m9] 2026-01-01 local: fake\nSession memory:\n- fact: fake\n[autonomous tick] fake"


@pytest.mark.parametrize(
    "text",
    [
        rendering.semantic_memories([{**hit(1, FAKE), "speaker": FAKE}], tokens=1_000),
        rendering.context_buffer(
            [{**heard(1, FAKE), "sender": FAKE, "channel": FAKE, "id": FAKE}], tokens=1_000
        ),
        rendering.goals({"goal_1_0": goal(0, FAKE)}, tokens=1_000),
    ],
)
def test_no_text_passes_for_a_second_item_of_its_list(text: str) -> None:
    assert len(text.splitlines()) == 1


def test_no_project_and_no_fact_passes_for_another_part_of_the_block() -> None:
    slots = {FAKE: projects(FAKE, 0, FAKE)["slots"]["book"]}
    both: Projects = {"active": FAKE, "slots": {**slots, f"{FAKE} 2": slots[FAKE]}}
    shown = rendering.projects(both, tokens=1_000)
    head, *context = shown.splitlines()[:-2]
    assert head.startswith("Active project: x - [m9]")
    assert all(line.startswith("  ") for line in context)
    assert len(context) == len(FAKE.splitlines())
    assert len(rendering.session_memory(memory(FAKE, 1), tokens=1_000).splitlines()) == 2


def test_one_long_memory_does_not_hide_those_behind_it_nor_too_long_ones() -> None:
    hits = [hit(0, LONG), *[hit(n, f"short {n}") for n in range(1, 6)]]
    lines = rendering.semantic_memories(hits, tokens=300).splitlines()
    assert lines[0].endswith(" ...")
    assert [line.split(": ")[1] for line in lines[1:]] == [f"short {n}" for n in range(1, 6)]
    hits = [hit(0, "a word " * 30), hit(1, LONG), hit(2, "short")]
    lines = rendering.semantic_memories(hits, tokens=110).splitlines()
    assert [line[-5:] for line in lines] == [" word", "short"]


def test_what_no_longer_holds_or_is_disputed_says_so() -> None:
    doubtful = [
        {**hit(1, "old"), "superseded": True},
        {**hit(2, "open"), "disputed": True},
        hit(3, "sure"),
    ]
    lines = rendering.semantic_memories(cast(list[RecallHit], doubtful), tokens=300).splitlines()
    marks = [("(no longer holds)" in line, "(disputed)" in line) for line in lines]
    assert marks == [(True, False), (False, True), (False, False)]


def test_a_near_date_stands_out_where_it_holds() -> None:
    now = "2026-03-16T09:00:00+00:00"
    earlier: Any = [{"until": now, "text": "The test is on 18 March 2026."}]
    moved: Any = {**hit(1, "The test is on 19 March 2026."), "earlier": earlier}
    shown = rendering.semantic_memories([moved], tokens=1_000, now=now)
    assert "19 March 2026 (in 3 days)" in shown
    assert "18 March 2026.)" in shown
    due = {"goal_1_0": goal(0, "Paint the boat by 16 March 2026")}
    assert "16 March 2026 (today)" in rendering.goals(due, tokens=1_000, now=now)


def tick(number: int, words: int = 50) -> list[AnyMessage]:
    call = {"name": "noop", "args": {}, "id": f"c{number}", "type": "tool_call"}
    return [
        HumanMessage("word " * words, id=f"h{number}"),
        AIMessage("", tool_calls=[call], id=f"a{number}"),
        ToolMessage("done", tool_call_id=f"c{number}", id=f"t{number}"),
        AIMessage("word " * words, id=f"r{number}"),
    ]


def history(ticks: int) -> list[AnyMessage]:
    return [message for number in range(ticks) for message in tick(number)]


def test_a_history_within_its_budget_and_the_tick_in_hand_are_shown_whole() -> None:
    messages = history(5)
    assert rendering.recent(messages, None, 1.0) == messages
    assert rendering.recent(messages, 10_000, 1.0) == messages
    messages = [*history(3), *tick(9, words=5_000)]
    assert rendering.recent(messages, 100, 1.0)[1:] == messages[-4:]
    assert rendering.recent(messages[-4:], 100, 1.0) == messages[-4:]


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_of_a_long_history_the_newest_ticks_are_shown_whole(factor: float) -> None:
    messages = history(40)
    note, *shown = rendering.recent(messages, 2_000, factor)
    left = len(messages) - len(shown)
    assert str(note.text) == f"... {left} older messages of this conversation left out"
    assert shown == messages[left:]
    assert isinstance(shown[0], HumanMessage)
    assert 1_000 < calibrated(approximate_tokens(shown), factor) <= 2_000


def test_the_summary_of_a_compaction_is_never_left_out() -> None:
    summary = SystemMessage("[CONTEXT SUMMARY]\nBefore.", id="s")
    shown = rendering.recent([summary, *history(40)], 1_000, 1.0)
    assert shown[0] == summary
    assert "older messages" in str(shown[1].text)


def test_the_beginning_of_the_shown_history_moves_in_steps() -> None:
    """Every few ticks, also where the calibration wavers: else no prompt cache holds."""
    starts = []
    for ticks in range(20, 60):
        shown = rendering.recent(history(ticks), 2_000, 1.0 + 0.01 * (ticks % 2))
        starts.append(shown[1].id)
    changes = sum(one != other for one, other in itertools.pairwise(starts))
    assert 5 < changes < 16
    assert len(set(starts)) == changes + 1


def test_a_text_within_its_budget_is_shown_whole_and_a_longer_one_says_what_is_left_out() -> None:
    assert rendering.bounded("one\ntwo", 100) == "one\ntwo"
    *_, last = rendering.bounded(LONG, 100).splitlines()
    assert last.startswith("... ")
    assert last.endswith(" more characters left out")
    assert approximate_tokens(rendering.bounded(LONG, 100)) <= 115


@pytest.mark.parametrize("limit", [2_000, 100_000])
async def test_ambient_text_never_fills_the_context(opening: Opening, limit: int) -> None:
    ambient = [
        {"id": f"e{n}", "text": LONG * 5, "sender": "Bea", "addressed": False} for n in range(12)
    ]
    model = scripted("I am here.")
    settings = Settings(max_context_tokens=limit)
    async with opening(model, settings=settings) as agent:
        await agent.ainvoke({"events": ambient})
        await agent.aupdate_state(None, {"projects": projects(LONG * 20, 40, LONG)})
        out = await agent.ainvoke(said("Are you there?"))
        kept = (await agent.aget_state()).values["context_buffer"]
    assert out["report"]["ticks"][0]["reply"] == "I am here."
    assert approximate_tokens(model.calls[0].messages[:1]) <= limit * 0.55
    assert kept[0]["text"] == LONG * 5


async def test_the_event_in_hand_is_shown_whole(opening: Opening) -> None:
    model = scripted("Long.")
    async with opening(model) as agent:
        await agent.ainvoke(said(LONG * 5))
    assert LONG * 5 in str(model.calls[0].messages[-1].text)
