"""A whole night killed on PostgreSQL, and as a server runs it: the same as in a folder."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from memory.night import record as night
from tests.crash.test_crash_dreaming import AT, NEXT, Undisturbed, job_in, same_as_undisturbed
from tests.crash.test_crash_dreaming import lived as lived
from tests.crash.test_crash_dreaming import undisturbed as undisturbed
from tests.support.crash_worker import Job, Points, running
from tests.support.kills import counts, kill_at_each, workers
from tests.support.scripted import logged_calls
from tests.support.whole_nights import (
    NIGHT,
    SETTINGS,
    SLEEP,
    differences,
    evening,
    everything,
    steps_done,
)

SERVED = ("two of four batches are made into facts",)
KILLED = (
    "two of four dreams are written",
    "between the facts and their marks",
    "dreaming is about to be applied",
)


@pytest.mark.parametrize(
    "name",
    [
        one if one in SERVED else pytest.param(one, marks=pytest.mark.slow)
        for one in AT
        # Of a night that had ended a server's next run knows nothing: it cuts no history for it.
        if one != "the night is recorded"
    ],
)
async def test_killed_on_a_server(
    lived: Path, tmp_path: Path, undisturbed: Undisturbed, name: str
) -> None:
    # Before its first checkpoint a server has lost the request itself: it is given again.
    given = "request: sleep" if name == "once the night is begun" else list(NEXT)[len(name) % 4]
    check = partial(same_as_undisturbed, undisturbed=undisturbed, given=given)
    await kill_at_each(job_in(lived, tmp_path, plain=True), [AT[name]], check)


@pytest.mark.parametrize(
    "name",
    [
        one if place == 0 else pytest.param(one, marks=pytest.mark.slow)
        for place, one in enumerate(KILLED)
    ],
)
async def test_killed_on_postgres(
    lived: Path, postgres_url: str, tmp_path: Path, name: str
) -> None:
    calls = counts(job_in(lived, tmp_path))["model"]
    data = tmp_path / "elsewhere"
    await asyncio.to_thread(evening, data, postgres_url)
    job = Job(
        data=str(data),
        database=postgres_url,
        inputs=[SLEEP],
        settings=SETTINGS,
        now=NIGHT,
        model="dreams",
    )
    workers().killed(replace(job, point=AT[name]))
    async with running(job, Points(job)) as (agent, run):
        report = (await run(None))["report"]
        assert report["failures"] == []
        assert await night.unfinished(agent.store, agent.scope) is None
        assert len(await steps_done(agent)) == len(night.STEPS)
        once = await everything(agent)
        assert len(logged_calls(job.log)) <= calls + 1
        await run(None)
        assert differences(await everything(agent), once) == []
