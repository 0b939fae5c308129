"""Several processes on one agent: posting while another runs, and waiting for one's turn."""

import asyncio
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import PutOp

from memory.errors import BusyError
from memory.events import inbox
from memory.storage.access import write_batch
from tests.support.agents import Opening, entries, opened
from tests.support.clock import Clock
from tests.support.crash_worker import START, Job, Point, Points, running
from tests.support.homes import KINDS
from tests.support.kills import workers
from tests.support.scripted import logged_calls, scripted


def event(name: str) -> dict[str, Any]:
    return {"id": name, "text": f"This is {name}", "sender": "Ada", "at": START}


def runs(name: str) -> dict[str, Any]:
    return {"events": [event(name)]}


@pytest.fixture(params=KINDS)
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Job:
    url = request.getfixturevalue("postgres_url") if request.param == "database" else None
    return Job(data=str(tmp_path / "data"), database=url, inputs=[runs("first")])


def held(job: Job) -> int:
    """Start a process that stands in its first model call; its pid."""
    pid = workers().start(replace(job, point=Point("model", 1, "before", hold=True)))
    workers().until(job.reached)
    return pid


def other(job: Job, **changes: Any) -> Job:
    """A job on the same data that leaves the first one's files alone."""
    made = replace(job, inputs=[], name="second")
    return replace(made, **changes)


async def test_posting_does_not_wait_for_the_run_that_holds_the_agent(job: Job) -> None:
    pid = held(job)
    posted = workers().done(other(job, post=[event("posted")]))["posted"]
    assert posted["accepted"] == ["posted"]
    os.kill(pid, signal.SIGKILL)
    workers().wait(pid)
    async with running(job, Points(job)) as (agent, run):
        report = (await run(None))["report"]
        assert len(await entries(agent)) == 2
    assert [tick["event_id"] for tick in report["ticks"]] == ["first", "posted"]


async def test_the_run_in_hand_takes_what_is_posted_meanwhile(job: Job) -> None:
    slow = replace(job, delay=1.5)
    pid = workers().start(slow)
    await asyncio.to_thread(workers().until, job.log)
    workers().done(other(job, post=[event("posted")]))
    report = workers().ended(slow, pid)["reports"][0]
    assert [tick["event_id"] for tick in report["ticks"]] == ["first", "posted"]


async def test_a_second_run_waits_and_then_works(job: Job) -> None:
    slow = replace(job, delay=0.5)
    first = workers().start(slow)
    workers().until(job.log)
    waiting = other(job, inputs=[runs("second")])
    second = workers().start(waiting)
    reports = [workers().ended(slow, first), workers().ended(waiting, second)]
    told = [[one["event_id"] for one in r["reports"][0]["ticks"]] for r in reports]
    ticks = {(one["tick"], one["event_id"]) for r in reports for one in r["reports"][0]["ticks"]}
    assert sorted(event_id for _, event_id in ticks) == ["first", "second"]
    assert ("first" in told[0], told[1]) == (True, ["second"])
    assert [r["error"] for r in reports] == [None, None]


async def test_a_second_run_that_waited_in_vain_is_told_and_its_message_is_kept(
    job: Job, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0.3")
    pid = held(job)
    began = time.monotonic()
    if job.database:
        monkeypatch.setenv("CIRCADIAN_DATABASE_URL", job.database)
    data = None if job.database else Path(job.data)
    async with opened(data, scripted("One.", "Two."), clock) as agent:
        with pytest.raises(BusyError, match=rf"is in use by process {pid} \(.*\): wait until"):
            await agent.ainvoke(runs("second"))
        assert 0.3 <= time.monotonic() - began < 5
        os.kill(pid, signal.SIGKILL)
        workers().wait(pid)
        report = (await agent.ainvoke(None))["report"]
    assert [tick["event_id"] for tick in report["ticks"]] == ["first", "second"]


async def test_an_id_sent_by_two_processes_is_handled_once(job: Job) -> None:
    jobs = [replace(job, name=str(number), inputs=[runs("same")]) for number in range(4)]
    pids = [workers().start(one) for one in jobs]
    reports = [workers().ended(*pair)["reports"][0] for pair in zip(jobs, pids, strict=True)]
    # A run that waited for its turn reports the tick in which another one answered its message.
    handled = {(one["tick"], one["event_id"]) for report in reports for one in report["ticks"]}
    assert handled == {(1, "same")}
    assert len(logged_calls(job.log)) == 1
    async with running(job, Points(job)) as (agent, run):
        again = await run(runs("same"))
        assert len(await entries(agent)) == 1
    assert again["report"]["skipped"] == ["same"]
    assert [message.type for message in again["messages"]] == ["human", "ai"]


async def test_what_one_process_learned_and_asks_the_others_know(job: Job, clock: Clock) -> None:
    """Journal, inbox, facts and questions are shared; a question is answered by another process."""
    build = {"id": "b", "text": "Build a tavern", "sender": "Ada", "at": START}
    launch = {"id": "l", "text": "Launch to the moon", "sender": "Ada", "at": START}
    report = workers().done(replace(job, inputs=[{"events": [build]}]))["reports"][0]
    assert [tick["event_id"] for tick in report["ticks"]] == ["b"]
    workers().done(other(job, inputs=[{"events": [launch]}], post=[event("waits")]))
    assert not job.launched.exists()
    async with running(job, Points(job)) as (agent, _):
        facts = await agent.resources.semantic.all(agent.scope)
        assert [fact["text"] for fact in facts] == ["Ada wants a tavern."]
        assert {"b", "l"} <= {source for one in await entries(agent) for source in one["sources"]}
    answered = workers().done(other(job, name="third", inputs=[{"decide": [0, "yes"]}]))
    assert job.launched.read_text() == "the moon\n"
    told = [tick["reply"] for tick in answered["reports"][0]["ticks"]]
    assert told == ["launched"]


async def test_an_id_that_arrives_late_is_not_handled_again(opening: Opening) -> None:
    """Between a post's look and its write another process may have handled the id."""
    async with opening(scripted("Hello.")) as agent:
        await agent.ainvoke(runs("late"))
        late = {"event": event("late"), "received_at": START, "order": "0/000001"}
        place = agent.scope.namespace(inbox.INBOX)
        await write_batch(
            agent.store, [PutOp(place, "late", {**late, "attempts": 0, "error": None})]
        )
        assert await inbox.waiting(agent.store, agent.scope) == []
        out = await agent.ainvoke(runs("late"))
        assert (await agent.post(event("late"))).skipped == ["late"]
    assert (out["report"]["ticks"], out["report"]["skipped"]) == ([], ["late"])
