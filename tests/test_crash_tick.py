"""A tick killed at any point: its event is handled exactly once, whatever the next run brings."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from graph.handle import AsyncAgent
from memory import entities, inbox
from tests.agents import entries
from tests.crash_worker import START, Job, Point, Points, running
from tests.scripted import logged_calls
from tests.workers import workers

BUILD = {"id": "e1", "text": "Build a tavern", "sender": "Ada", "at": START}
AND_NOW = {"id": "e2", "text": "And now?", "sender": "Ada", "at": START}
NEXT: dict[str, Any] = {
    "a new message": {"events": [AND_NOW]},
    "no input": None,
    "the same id again": {"events": [BUILD]},
}
LATER = "2026-03-02T11:00:00+00:00"
CALLS, WRITES = 3, 45
"""Of an undisturbed tick: model calls, and durable writes (checkpoints, store, facts)."""

DURING = {
    "the event is in the inbox": Point("puts", 1),
    "the first checkpoint is written": Point("checkpoint", 1),
    "the tools of the first answer ran": Point("checkpoint", 17, "before"),
    "a tool wrote the journal": Point("puts", 2),
    "a tool wrote a fact": Point("facts", 1),
    "a tool wrote a profile": Point("puts", 3),
    "what was called is in the log": Point("puts", 4),
    "the tick's entry is in the journal": Point("puts", 6),
    "the event is settled": Point("puts", 7),
}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(data=str(tmp_path / "data"), inputs=[{"events": [BUILD]}])


@pytest.fixture
def chat(job: Job) -> Job:
    """On a server each run begins anew: what was in hand is done again."""
    message = {"role": "user", "content": BUILD["text"], "id": BUILD["id"], "name": "Ada"}
    return replace(job, plain=True, inputs=[{"messages": [message]}])


async def test_an_undisturbed_tick_has_these_points(job: Job) -> None:
    counts = workers().done(job)["counts"]
    assert (counts["model"], counts["write"]) == (CALLS, WRITES)


@pytest.mark.parametrize("call", [1, 2, 3])
async def test_killed_while_the_model_is_asked(job: Job, call: int) -> None:
    workers().kill_at_hold(replace(job, point=Point("model", call, "before", hold=True)))
    await handled_once(job, list(NEXT)[call - 1], repeated=1)


@pytest.mark.parametrize("name", DURING)
async def test_killed_when(job: Job, name: str) -> None:
    workers().killed(replace(job, point=DURING[name]))
    await handled_once(job, list(NEXT)[len(name) % 3], repeated=0)


@pytest.mark.parametrize("durability", ["async", "exit"])
async def test_killed_before_a_tick_that_is_done_was_checkpointed(
    job: Job, durability: str
) -> None:
    """An event leaves the inbox once a checkpoint on disk has its tick, and not before."""
    job = replace(job, inputs=[{"events": [BUILD, AND_NOW]}], options={"durability": durability})
    point = Point("model", CALLS + 1, "before", hold=True)
    workers().kill_at_hold(replace(job, point=point))
    async with running(job, Points(job)) as (agent, run):
        report = (await run(None))["report"]
        await contains(agent, ["e1", "e2"])
    assert [tick["event_id"] for tick in report["ticks"]] == ["e1", "e2"]


@pytest.mark.parametrize("nth", [3, 9, 16, 23, 30])
async def test_killed_on_a_server(chat: Job, nth: int) -> None:
    workers().killed(replace(chat, point=Point("write", nth)))
    await handled_once(chat, list(NEXT)[nth % 3], repeated=CALLS)


@pytest.mark.slow
@pytest.mark.parametrize("given", NEXT)
@pytest.mark.parametrize("nth", range(3, 34))
async def test_killed_at_any_write_on_a_server(chat: Job, nth: int, given: str) -> None:
    workers().killed(replace(chat, point=Point("write", nth)))
    await handled_once(chat, given, repeated=CALLS)


@pytest.mark.slow
@pytest.mark.parametrize("given", NEXT)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("nth", range(1, WRITES))
async def test_killed_at_any_write(job: Job, nth: int, when: str, given: str) -> None:
    if (nth, when) == (1, "before"):
        pytest.skip("nothing was accepted yet")
    workers().killed(replace(job, point=Point("write", nth, when)))
    await handled_once(job, given, repeated=1)


async def handled_once(job: Job, given: str, *, repeated: int) -> None:
    """Run once more in this process: everything is there once, and was paid for once."""
    job = replace(job, now=LATER)
    async with running(job, Points(job)) as (agent, run):
        report = (await run(NEXT[given]))["report"]
        events = ["e1", "e2"] if given == "a new message" else ["e1"]
        await contains(agent, events)
        calls = len(logged_calls(job.log))
        assert CALLS <= calls - (len(events) - 1) <= CALLS + repeated
        assert report["failures"] == []
        told = [tick["event_id"] for tick in report["ticks"]] + report["skipped"]
        assert told == events


async def contains(agent: AsyncAgent, events: list[str]) -> None:
    """What the agent knows is what these events bring, once each."""
    state = (await agent.aget_state()).values
    journal = await entries(agent)
    written = Counter((one["id"].split("_")[0], *one["sources"]) for one in journal)
    assert written == Counter([("note", "e1"), *(("event", one) for one in events)])
    assert (list(state["goals"]), state["goal_index"]) == (["goal_1_0"], 1)
    assert list(state["projects"]["slots"]) == ["tavern"]
    assert spoken(state["messages"]) == [
        ("human", "Build a tavern"),
        ("ai", "It is begun."),
        *([("human", "And now?"), ("ai", "Heard: And now?")] if "e2" in events else []),
    ]
    facts = await agent.resources.semantic.all(agent.scope)
    assert [fact["source_events"] for fact in facts] == [["e1"]]
    people = {one["name"]: one for one in await entities.everyone(agent.store, agent.scope)}
    assert sorted(people) == ["Ada", "Bea"]
    assert [one["text"] for one in people["Bea"]["observations"]] == ["Bea pours the beer."]
    assert people["Ada"]["relationship"]["interactions"] == len(events)
    assert (state["tick"], state["metrics"]["total_tool_calls"]) == (len(events), 5)
    assert await inbox.waiting(agent.store, agent.scope, state["handled"]) == []
    assert await inbox.set_aside(agent.store, agent.scope) == []


def spoken(messages: list[BaseMessage]) -> list[tuple[str, str]]:
    """Who said what, without calls of tools and their answers."""
    said = [one for one in messages if one.type != "tool"]
    return [(one.type, str(one.text)) for one in said if one.text]
