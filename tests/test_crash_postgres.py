"""A tick killed at any point on PostgreSQL: its event is handled exactly once, as in a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash_worker import Job, Point
from tests.test_crash_tick import BUILD, DURING, NEXT, WRITES, handled_once
from tests.workers import workers


@pytest.fixture
def job(tmp_path: Path, postgres_url: str) -> Job:
    return Job(data=str(tmp_path / "data"), database=postgres_url, inputs=[{"events": [BUILD]}])


async def test_an_undisturbed_tick_has_the_points_that_it_has_in_a_folder(job: Job) -> None:
    in_folder = workers().done(replace(job, database=None, name="in a folder"))["counts"]
    assert workers().done(job)["counts"] == in_folder


@pytest.mark.parametrize("call", [1, 2, 3])
async def test_killed_while_the_model_is_asked(job: Job, call: int) -> None:
    workers().kill_at_hold(replace(job, point=Point("model", call, "before", hold=True)))
    await handled_once(job, list(NEXT)[call - 1], repeated=1)


@pytest.mark.parametrize("name", DURING)
async def test_killed_when(job: Job, name: str) -> None:
    workers().killed(replace(job, point=DURING[name]))
    await handled_once(job, list(NEXT)[len(name) % 3], repeated=0)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("nth", range(2, WRITES))
async def test_killed_at_any_write(job: Job, nth: int, when: str) -> None:
    workers().killed(replace(job, point=Point("write", nth, when)))
    await handled_once(job, list(NEXT)[nth % 3], repeated=1)
