"""A tick killed at any point on PostgreSQL: its event is handled exactly once, as in a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.test_crash_tick import BUILD, CALLS, handled_once
from tests.support.crash_worker import Job, Point
from tests.support.kills import points, workers
from tests.support.postgres import Postgres


@pytest.fixture
def job(tmp_path: Path, postgres_url: str) -> Job:
    return Job(data=str(tmp_path / "data"), database=postgres_url, inputs=[{"events": [BUILD]}])


async def test_an_undisturbed_tick_writes_as_often_as_in_a_folder(job: Job) -> None:
    in_folder = workers().done(replace(job, database=None, name="in a folder"))["counts"]
    assert workers().done(job)["counts"] == in_folder


@pytest.mark.parametrize(
    "call", [2, *(pytest.param(call, marks=pytest.mark.slow) for call in (1, 3))]
)
async def test_killed_while_the_model_is_asked(job: Job, call: int) -> None:
    point = Point("model", call, "before", hold=True)
    workers().kill_at_hold(replace(job, point=point))
    await handled_once(job, point, repeated=call)


@pytest.mark.parametrize(
    ("kind", "when"),
    [
        ("puts", "after"),
        ("facts", "after"),
        pytest.param("write", "before", marks=pytest.mark.slow),
        pytest.param("write", "after", marks=pytest.mark.slow),
    ],
)
async def test_killed_when_memory_is_written(
    job: Job, postgres: Postgres, kind: str, when: str
) -> None:
    edge = int(kind == "write")  # before the first write nothing is accepted
    in_folder = replace(job, database=None)
    part = "2/5" if kind == "puts" else "1/1"  # the slow run has every write
    for point in points(in_folder, kind, when=when, first=1 + edge, last=edge, part=part):
        own = replace(job, data=f"{job.data}{point.nth}", database=postgres.database(), point=point)
        workers().killed(own)
        await handled_once(replace(own, point=None), point, repeated=CALLS)
        postgres.drop(str(own.database))
