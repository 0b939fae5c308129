"""A compaction killed at any point: one archive, one summary in the history, both the same."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memory import entities
from memory.compaction import MARK
from tests.agents import entries
from tests.crash_model import TOO_LONG
from tests.crash_worker import START, Job, Point, Points, running
from tests.scripted import logged_calls
from tests.workers import workers

SETTINGS = {"max_context_tokens": 1_000, "compact_preserve_window": 4}
LATER = "2026-03-02T11:00:00+00:00"
SLEEP = {"request": "sleep"}
HELLO = {"events": [{"id": "hello", "text": "Hi", "sender": "Ada", "at": START}]}
NEXT: dict[str, Any] = {"a new message": HELLO, "request: sleep": SLEEP, "no input": None}

EMERGENCY_WRITES, NIGHT_WRITES = 44, 58
EMERGENCY = {
    "when facts are journaled": Point("puts", 2),
    "when a profile is written": Point("puts", 3),
    "when the summary is kept": Point("puts", 6),
    "when the archive is written": Point("puts", 7),
    "when the history is cut": Point("write", 28),
}
NIGHT = {
    "when compacting is applied": Point("puts", 5),
    "when the summary is kept": Point("puts", 11),
    "when the cut is planned": Point("puts", 12),
    "when the night is weighed": Point("puts", 13),
    "when the archive is written": Point("puts", 14),
    "when the night has ended": Point("puts", 15),
    "when the history was cut": Point("write", 51),
}


def said(number: int) -> dict[str, Any]:
    text = f"Message {number}: " + "word " * 80
    return {"events": [{"id": f"e{number}", "text": text, "sender": "Ada", "at": START}]}


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose agent has a history over both thresholds."""
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


async def test_an_undisturbed_compaction_has_these_points(emergency: Job, asleep: Job) -> None:
    assert workers().done(emergency)["counts"]["write"] == EMERGENCY_WRITES
    await compacted_once(emergency, "no input")
    shutil.rmtree(emergency.data)


async def test_an_undisturbed_night_has_these_points(asleep: Job) -> None:
    assert workers().done(asleep)["counts"]["write"] == NIGHT_WRITES
    await compacted_once(asleep, "no input")


@pytest.mark.parametrize("plain", [False, True], ids=["", "on a server"])
@pytest.mark.parametrize("name", EMERGENCY)
async def test_killed_in_an_emergency(emergency: Job, name: str, plain: bool) -> None:
    job = replace(emergency, plain=plain)
    workers().killed(replace(job, point=EMERGENCY[name]))
    await compacted_once(job, list(NEXT)[len(name) % 3])


@pytest.mark.parametrize("plain", [False, True], ids=["", "on a server"])
@pytest.mark.parametrize("name", NIGHT)
async def test_killed_in_a_night(asleep: Job, name: str, plain: bool) -> None:
    job = replace(asleep, plain=plain)
    workers().killed(replace(job, point=NIGHT[name]))
    # On a server a message ends the dreaming, and then meets the emergency's own extraction.
    await compacted_once(job, list(NEXT)[1 + len(name) % 2 if plain else len(name) % 3])


@pytest.mark.parametrize("name", ["when the summary is kept", "when the archive is written"])
async def test_killed_where_an_extract_takes_the_place_of_a_summary(
    emergency: Job, asleep: Job, name: str
) -> None:
    """The refused summary is paid for once."""
    for job, point in ((emergency, EMERGENCY[name]), (asleep, NIGHT[name])):
        shutil.copytree(job.data, f"{job.data}.own")
        refused = {**job.settings, "compact_prompt": TOO_LONG}
        job = replace(job, data=f"{job.data}.own", settings=refused)
        workers().killed(replace(job, point=point))
        await compacted_once(job, "no input", starting="[extract")
        shutil.rmtree(job.data)
        job.log.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("given", NEXT)
@pytest.mark.parametrize("plain", [False, True], ids=["", "on a server"])
@pytest.mark.parametrize("nth", range(7, EMERGENCY_WRITES))
async def test_killed_in_an_emergency_at_any_write(
    emergency: Job, nth: int, plain: bool, given: str
) -> None:
    job = replace(emergency, plain=plain)
    workers().killed(replace(job, point=Point("write", nth)))
    await compacted_once(job, given)


@pytest.mark.slow
@pytest.mark.parametrize("given", NEXT)
@pytest.mark.parametrize("nth", range(4, NIGHT_WRITES))
async def test_killed_in_a_night_at_any_write(asleep: Job, nth: int, given: str) -> None:
    workers().killed(replace(asleep, point=Point("write", nth)))
    await compacted_once(asleep, given)


async def compacted_once(job: Job, given: str, *, starting: str = "They spoke; so says") -> None:
    """Run once more in this process: what was cut stands in one archive and in the history."""
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
