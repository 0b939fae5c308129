"""A compaction killed at any point: one archive, one summary in the history, both the same."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memory.entities import entities
from memory.messages.convert import MARK
from tests.support.agents import entries
from tests.support.crash_model import TOO_LONG
from tests.support.crash_worker import START, Job, Point, Points, running
from tests.support.kills import copied, counts, kill_at_each, points, workers
from tests.support.scripted import logged_calls

SETTINGS = {"max_context_tokens": 1_000, "compact_preserve_window": 4}
LATER = "2026-03-02T11:00:00+00:00"
SLEEP = {"request": "sleep"}
HELLO = {"events": [{"id": "hello", "text": "Hi", "sender": "Ada", "at": START}]}
NEXT: dict[str, Any] = {"a new message": HELLO, "request: sleep": SLEEP, "no input": None}


def said(number: int) -> dict[str, Any]:
    text = f"Message {number}: " + "word " * 80
    return {"events": [{"id": f"e{number}", "text": text, "sender": "Ada", "at": START}]}


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("talk") / "data"
    settings = {**SETTINGS, "compact_enabled": False}
    workers().done(Job(data=str(data), inputs=[said(n) for n in range(8)], settings=settings))
    return data


@pytest.fixture
def job(talked: Path, tmp_path: Path) -> Job:
    data = tmp_path / "data"
    shutil.copytree(talked, data)
    return Job(data=str(data), settings=SETTINGS)


@pytest.fixture
def emergency(job: Job) -> Job:
    return replace(job, inputs=[said(8)])


@pytest.fixture
def asleep(job: Job) -> Job:
    return replace(job, inputs=[SLEEP])


async def test_undisturbed_it_is_compacted_once(emergency: Job, asleep: Job) -> None:
    for job in (copied(emergency, "awake"), copied(asleep, "asleep")):
        workers().done(job)
        await compacted_once(job, Point("write", 2))


@pytest.mark.parametrize("plain", [False, True], ids=["", "on a server"])
async def test_killed_in_an_emergency(emergency: Job, plain: bool) -> None:
    job = replace(emergency, plain=plain)
    await kill_at_each(job, points(job, "puts", first=2 + plain, part="1/6"), compacted_once)
    if not plain:
        await kill_at_each(job, points(job, "checkpoint", first=8, part="1/8"), compacted_once)


@pytest.mark.parametrize("plain", [False, True], ids=["", "on a server"])
async def test_killed_in_a_night(asleep: Job, plain: bool) -> None:
    job = replace(asleep, plain=plain)
    where = points(job, "puts", first=5, part="2/6" if plain else "1/6")
    await kill_at_each(job, where, compacted_once)


@pytest.mark.parametrize(
    "place", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
async def test_killed_where_an_extract_takes_the_place_of_a_summary(
    emergency: Job, asleep: Job, place: int
) -> None:
    """The refused summary is paid for once."""
    check = partial(compacted_once, given="no input", starting="[extract")
    refused = {**emergency.settings, "compact_prompt": TOO_LONG}
    for name, job, before_last in (("awake", emergency, 4), ("asleep", asleep, 5)):
        job = replace(copied(job, name), settings=refused)
        where = points(job, "puts", first=counts(job)["puts"] - before_last)
        await kill_at_each(job, where[place::3], check)


@pytest.mark.slow
@pytest.mark.parametrize("given", NEXT)
@pytest.mark.parametrize("plain", [False, True], ids=["", "on a server"])
async def test_killed_in_an_emergency_at_any_write(emergency: Job, plain: bool, given: str) -> None:
    job = replace(emergency, plain=plain)
    where = points(job, "write", first=7, last=1)
    await kill_at_each(job, where, partial(compacted_once, given=given))


@pytest.mark.slow
@pytest.mark.parametrize("given", NEXT)
async def test_killed_in_a_night_at_any_write(asleep: Job, given: str) -> None:
    where = points(asleep, "write", first=4, last=1)
    await kill_at_each(asleep, where, partial(compacted_once, given=given))


async def compacted_once(
    job: Job, point: Point, *, given: str | None = None, starting: str = "They spoke; so says"
) -> None:
    """Run once more in this process: the archive and the history hold the same summary, once.

    `given`: the next run's input; None: another one for each point. On a server a message ends the
    dreaming and then needs an extraction of its own, so that a night is given none.
    """
    asleep = job.plain and job.inputs == [SLEEP]
    given = given or list(NEXT)[1 + point.nth % 2 if asleep else point.nth % 3]
    job = replace(job, now=LATER)
    async with running(job, Points(job)) as (agent, run):
        report = (await run(NEXT[given]))["report"]
        messages = (await agent.aget_state()).values["messages"]
        journal = await entries(agent)
        (ada,) = await entities.everyone(agent.store, agent.scope)
    assert report["failures"] == []
    assert [one["text"] for one in ada["observations"]] == ["Ada numbers every message."]
    archives = [one["content"] for one in journal if one["id"].startswith("compact_")]
    markers = [str(one.text) for one in messages if str(one.text).startswith(MARK)]
    assert (len(archives), len(markers)) == (1, 1)
    assert archives[0].split("\n", 1)[1].startswith(starting)
    assert archives[0].split("\n", 1)[1] == markers[0].split("\n", 1)[1]
    assert len(messages) < 10
    assert len({one["id"] for one in journal if one["content"] == "Beans grow."}) == 1
    summaries = [one for one in logged_calls(job.log) if "human (Ada)" in one["last"][:40]]
    assert 1 <= len(summaries) <= 1 + job.plain
