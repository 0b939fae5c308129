"""A tick killed at any point: its event is handled exactly once, whatever the next run brings."""

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from graph.api import AsyncAgent
from memory.entities import entities
from memory.events import inbox
from tests.support.agents import entries
from tests.support.crash_worker import START, Job, Point, Points, running
from tests.support.kills import counts, kill_at_each, points, workers
from tests.support.postgres import Postgres
from tests.support.scripted import logged_calls

BUILD = {"id": "e1", "text": "Build a tavern", "sender": "Ada", "at": START}
AND_NOW = {"id": "e2", "text": "And now?", "sender": "Ada", "at": START}
NEXT: dict[str, Any] = {
    "a new message": {"events": [AND_NOW]},
    "no input": None,
    "the same id again": {"events": [BUILD]},
}
LATER = "2026-03-02T11:00:00+00:00"
CALLS = 3
"""Model calls of an undisturbed tick."""
ACCEPTED = 3
"""On a server: the first write after which a kill loses nothing; a checkpoint holds the event."""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(data=str(tmp_path / "data"), inputs=[{"events": [BUILD]}])


@pytest.fixture
def chat(job: Job) -> Job:
    """On a server each run begins anew: what was in hand is done again."""
    message = {"role": "user", "content": BUILD["text"], "id": BUILD["id"], "name": "Ada"}
    return replace(job, plain=True, inputs=[{"messages": [message]}])


async def test_an_undisturbed_tick_asks_the_model_three_times(job: Job) -> None:
    assert counts(job)["model"] == CALLS


@pytest.mark.parametrize("call", [1, 2, 3])
async def test_killed_while_the_model_is_asked(job: Job, call: int) -> None:
    point = Point("model", call, "before", hold=True)
    workers().kill_at_hold(replace(job, point=point))
    await handled_once(job, point, repeated=call)


@pytest.mark.parametrize("kind", ["puts", "facts"])
async def test_killed_when_memory_is_written(job: Job, kind: str) -> None:
    where = points(job, kind, part="1/2" if kind == "puts" else "1/1")
    await kill_at_each(job, where, partial(handled_once, repeated=CALLS))


async def test_killed_before_a_checkpoint(job: Job) -> None:
    where = points(job, "checkpoint", when="before", first=2, part="1/6")
    await kill_at_each(job, where, partial(handled_once, repeated=CALLS))


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


async def test_killed_on_a_server(chat: Job) -> None:
    where = points(chat, "write", first=ACCEPTED, part="1/7")
    await kill_at_each(chat, where, partial(handled_once, repeated=CALLS))


@pytest.mark.slow
@pytest.mark.parametrize("given", NEXT)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_killed_at_any_write(job: Job, when: str, given: str) -> None:
    # Before the first write nothing is accepted.
    where = points(job, "write", when=when, first=2 if when == "before" else 1, last=1)
    await kill_at_each(job, where, partial(handled_once, repeated=CALLS, given=given))


@pytest.mark.slow
@pytest.mark.parametrize("given", NEXT)
async def test_killed_at_any_write_on_a_server(chat: Job, given: str) -> None:
    where = points(chat, "write", first=ACCEPTED)
    await kill_at_each(chat, where, partial(handled_once, repeated=CALLS, given=given))


@pytest.fixture
def elsewhere(tmp_path: Path, postgres_url: str) -> Job:
    return Job(data=str(tmp_path / "data"), database=postgres_url, inputs=[{"events": [BUILD]}])


async def test_an_undisturbed_tick_writes_as_often_as_in_a_folder(elsewhere: Job) -> None:
    in_folder = workers().done(replace(elsewhere, database=None, name="in a folder"))["counts"]
    assert workers().done(elsewhere)["counts"] == in_folder


@pytest.mark.parametrize(
    "call", [2, *(pytest.param(call, marks=pytest.mark.slow) for call in (1, 3))]
)
async def test_killed_on_postgres_while_the_model_is_asked(elsewhere: Job, call: int) -> None:
    point = Point("model", call, "before", hold=True)
    workers().kill_at_hold(replace(elsewhere, point=point))
    await handled_once(elsewhere, point, repeated=call)


@pytest.mark.parametrize(
    ("kind", "when"),
    [
        ("puts", "after"),
        ("facts", "after"),
        pytest.param("write", "before", marks=pytest.mark.slow),
        pytest.param("write", "after", marks=pytest.mark.slow),
    ],
)
async def test_killed_on_postgres_when_memory_is_written(
    elsewhere: Job, postgres: Postgres, kind: str, when: str
) -> None:
    edge = int(kind == "write")  # before the first write nothing is accepted
    in_folder = replace(elsewhere, database=None)
    part = "2/5" if kind == "puts" else "1/1"  # the slow run has every write
    for point in points(in_folder, kind, when=when, first=1 + edge, last=edge, part=part):
        own = replace(
            elsewhere,
            data=f"{elsewhere.data}{point.nth}",
            database=postgres.database(),
            point=point,
        )
        workers().killed(own)
        await handled_once(replace(own, point=None), point, repeated=CALLS)
        postgres.drop(str(own.database))


async def handled_once(job: Job, point: Point, *, repeated: int, given: str | None = None) -> None:
    """Run once more in this process: everything is there once.

    `repeated`: model calls at most that are made again, those of the tick in hand.
    `given`: the next run's input; None: another one for each point.
    """
    given = given or list(NEXT)[point.nth % 3]
    job = replace(job, now=LATER)
    async with running(job, Points(job)) as (agent, run):
        # The next run need not report a tick whose run has ended, and without a message it would
        # turn to the goal that the tick added.
        now = await agent.aget_state()
        done = now.values.get("tick") == 1 and (job.plain or not now.next)
        stood = {fact["id"] for fact in await agent.resources.semantic.all(agent.scope)}
        if done and given == "no input":
            await contains(agent, ["e1"])
            return
        report = (await run(NEXT[given]))["report"]
        events = ["e1", "e2"] if given == "a new message" else ["e1"]
        await contains(agent, events)
        assert stood <= {fact["id"] for fact in await agent.resources.semantic.all(agent.scope)}
        calls = len(logged_calls(job.log))
        assert CALLS <= calls - (len(events) - 1) <= CALLS + repeated
        assert report["failures"] == []
        told = [tick["event_id"] for tick in report["ticks"]] + report["skipped"]
        assert told == events or (done and told == events[1:])


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
    prompt = await inbox.prompt_of(agent.store, agent.scope, 1)
    assert prompt is not None
    assert "<semantic_memories>" not in prompt["front"], "a tick recalled what it had written"


def spoken(messages: list[BaseMessage]) -> list[tuple[str, str]]:
    """Who said what, without calls of tools and their answers."""
    said = [one for one in messages if one.type != "tool"]
    return [(one.type, str(one.text)) for one in said if one.text]
