"""A whole night killed at any point: what stands after it is what an undisturbed night leaves.

As a program runs it, as a server does, and on PostgreSQL.
"""

import asyncio
import shutil
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memory.night import record as night
from memory.night.record import STEPS
from tests.support.crash_worker import Job, Point, Points, running
from tests.support.kills import counts, kill_at_each, points, run_of, workers
from tests.support.scripted import logged_calls
from tests.support.whole_nights import (
    NIGHT,
    SETTINGS,
    SLEEP,
    differences,
    evening,
    everything,
    standing,
    steps_done,
)

NEXT: dict[str, Any] = {
    "request: sleep": SLEEP,
    "no input": None,
    "a message in passing": {
        "events": [{"id": "hi", "text": "Hm", "sender": "Dora", "at": NIGHT, "addressed": False}]
    },
    "a preview wanted": "preview",
}

INSIGHT = "insight_20260415"
"""An insight of the night rests on other memories if something is heard before it is drawn."""

AT = {
    "once the night is begun": Point("put open_night", 1),
    "one of four scorings is written": Point("plan score_importance", 1),
    "the scorings are written": Point("plan score_importance", 4),
    "one of four batches is made into facts": Point("plan consolidate", 1),
    "two of four batches are made into facts": Point("plan consolidate", 2),
    "it is decided which facts are settled": Point("plan settle", 1),
    "before the first fact": Point("facts", 1, "before"),
    "in the middle of adding facts": Point("fact", 5),
    "between the facts and their marks": Point("facts", 1),
    "compacting is applied": Point("put undreamed", 1),
    "what compacting wrote is indexed": Point("put speakers", 1),
    "one of four dreams is written": Point("plan dream", 1),
    "two of four dreams are written": Point("plan dream", 2),
    "the orphans are found": Point("plan prune_links", 1),
    "attributes are made": Point("plan consolidate_entities", 1),
    "a reflection has its questions": Point("plan reflect", 1),
    "a reflection has its answers": Point("plan reflect", 2),
    "it is decided what is pruned": Point("plan prune", 1),
    "an extraction is on its way": Point("plan extract_facts", 1),
    "a summary is kept": Point("put summaries", 1),
    "a compaction is decided": Point("plan compact", 1),
    "the night is weighed": Point("put nights", 3),
    "dreaming is about to be applied": Point("put archives", 1, "before"),
    "dreaming is applied": Point("put archives", 1),
    "the night is recorded": Point("put open_night", 2),
}
ACCEPTED = 3
"""The first write after which a kill loses nothing: the request is in a checkpoint."""
FAST = (
    "two of four batches are made into facts",
    "one of four dreams is written",
    "a reflection has its questions",
    "a summary is kept",
    "dreaming is applied",
)
"""Tested in every run; the others with `-m slow`."""


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("whole") / "data"
    evening(data)
    return data


def job_in(lived: Path, folder: Path, **more: Any) -> Job:
    data = folder / "data"
    shutil.copytree(lived, data)
    return Job(data=str(data), inputs=[SLEEP], settings=SETTINGS, now=NIGHT, model="dreams", **more)


class Undisturbed:
    """What a night leaves that nothing disturbs."""

    def __init__(self, lived: Path, folder: Path) -> None:
        self._lived, self._folder = lived, folder
        self._found: tuple[dict[str, Any], Counter[str]] | None = None

    async def __call__(self) -> tuple[dict[str, Any], Counter[str]]:
        if self._found is None:
            job = job_in(self._lived, self._folder)
            workers().done(job)
            self._found = (await standing(job), asked(job))
        return self._found


@pytest.fixture(scope="module")
def undisturbed(lived: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed(lived, tmp_path_factory.mktemp("undisturbed"))


def asked(job: Job) -> Counter[str]:
    """The calls of all processes: what was asked for, and how it began."""
    return Counter(f"{call['tools']} {call['last']}" for call in logged_calls(job.log))


def given_after(job: Job, point: Point) -> str:
    """Another input for each point; before the night begins, a message would be part of it.

    After its last write the night has ended: to ask for sleep would begin another one.
    """
    begun = point.kind != "write" or point.nth > run_of(job)["first"]["put open_night"]
    names = list(NEXT) if begun else ["request: sleep", "no input"]
    if point.kind == "write" and point.when == "after" and point.nth == counts(job)["write"]:
        names = ["no input"]
    return names[(point.nth + len(point.kind)) % len(names)]


async def same_as_undisturbed(
    job: Job, point: Point, undisturbed: Undisturbed, given: str | None = None
) -> None:
    """Run once more in this process: the same memory, and only the awaited answer paid twice.

    Where it mends an answer, that one is paid twice, too: a step keeps both when it ends.
    """
    expected, calls = await undisturbed()
    given = given or given_after(job, point)
    async with running(job, Points(job)) as (agent, run):
        if NEXT[given] == "preview":
            await night.want_preview(agent.store, agent.scope)
        report = (await run(None if NEXT[given] == "preview" else NEXT[given]))["report"]
        assert report["failures"] == []
        assert await night.unfinished(agent.store, agent.scope) is None
        found = await everything(agent)
    own = [key for key in found if "_hi" in key and "event_" in key]
    if job.plain and "message" in given:  # heard before the night goes on, it is reflected on
        told = {key: f"{key} {found.get(key)} {expected.get(key)}" for key in {*found, *expected}}
        own += [key for key in told if "/night/" in key or "/nights " in key]
        own += [key for key, text in told.items() if INSIGHT in text]
    left = {key: value for key, value in found.items() if key not in own}
    assert differences(left, {k: v for k, v in expected.items() if k not in own}) == []
    again = asked(job) - calls
    mended = [call for call in again if "] <" not in call]
    assert sum(again.values()) <= 1 + len(mended[:1])
    assert calls - asked(job) == Counter()


async def test_an_undisturbed_night_has_work_for_every_step(lived: Path, tmp_path: Path) -> None:
    job = job_in(lived, tmp_path)
    workers().done(job)
    async with running(job, Points(job)) as (agent, _):
        assert await steps_done(agent) == set(STEPS)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow]) for name in AT]
)
async def test_killed_when(
    lived: Path, tmp_path: Path, undisturbed: Undisturbed, name: str
) -> None:
    await killed_at(job_in(lived, tmp_path), [AT[name]], undisturbed)


@pytest.mark.parametrize("part", ["10/6", pytest.param("1/1", marks=pytest.mark.slow)])
@pytest.mark.parametrize("plain", [False, True], ids=["", "on a server"])
async def test_killed_while_an_answer_is_awaited(
    lived: Path, tmp_path: Path, undisturbed: Undisturbed, part: str, plain: bool
) -> None:
    job = job_in(lived, tmp_path, plain=plain)
    awaited = points(job, "model", when="before", part=part)
    await killed_at(job, [replace(point, hold=True) for point in awaited], undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("part", ["1/2", "2/2"])
async def test_killed_at_any_write(
    lived: Path, tmp_path: Path, undisturbed: Undisturbed, part: str, when: str
) -> None:
    job = job_in(lived, tmp_path)
    where = points(job, "write", when=when, first=ACCEPTED, part=part)
    await killed_at(job, where, undisturbed)


async def killed_at(job: Job, where: list[Point], undisturbed: Undisturbed) -> None:
    await kill_at_each(job, where, partial(same_as_undisturbed, undisturbed=undisturbed))


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


PREVIEW, APPLY, UNDO = ({"do": [deed]} for deed in ("preview", "apply", "undo"))
DEEDS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "apply": ([PREVIEW], APPLY),
    "undo": ([SLEEP], UNDO),
}
APPLYING = {
    "the preview is approved": Point("put open_night", 1),
    "facts are being added": Point("fact", 4),
    "its first part is applied": Point("put undreamed", 1),
    "all of it is applied": Point("put archives", 1),
}


@pytest.fixture(scope="module")
def before(lived: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Job]:
    """Data folders in which there is a preview, and a night that was applied."""
    jobs = {}
    for deed, (first, _) in DEEDS.items():
        jobs[deed] = job_in(lived, tmp_path_factory.mktemp(deed))
        workers().done(replace(jobs[deed], inputs=first))
        jobs[deed].log.unlink()
    return jobs


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if place in (1, 2) else [pytest.mark.slow])
        for place, name in enumerate(APPLYING)
    ],
)
async def test_killed_while_a_preview_is_applied(
    before: dict[str, Job], tmp_path: Path, name: str
) -> None:
    shutil.copytree(before["apply"].data, tmp_path / "done")
    done = replace(before["apply"], data=str(tmp_path / "done"), inputs=[APPLY])
    workers().done(done)
    expected = await standing(done)
    shutil.copytree(before["apply"].data, tmp_path / "killed")
    job = replace(done, data=str(tmp_path / "killed"))
    workers().killed(replace(job, point=APPLYING[name]))
    async with running(job, Points(job)) as (agent, run):
        await run(None)
        assert differences(await everything(agent), expected) == []
    assert logged_calls(job.log) == []


async def test_twice_the_same_night_is_once(lived: Path, tmp_path: Path) -> None:
    job = job_in(lived, tmp_path)
    # Its threshold is so low here that there is always something to compact.
    job = replace(job, settings={**job.settings, "compact_enabled": False})
    workers().done(job)
    once = await standing(job)
    calls = len(logged_calls(job.log))
    (second,) = workers().done(job)["reports"]
    assert second["night"]["id"] is None
    assert len(logged_calls(job.log)) == calls
    assert differences(await standing(job), once) == []


async def test_no_night_touches_goals_projects_or_session_memory(
    before: dict[str, Job], lived: Path, tmp_path: Path
) -> None:
    kept = ("goals", "projects", "session_memory")
    shutil.copytree(lived, tmp_path / "data")
    awake = await standing(replace(before["undo"], data=str(tmp_path / "data")))
    assert all(awake["state"][key] for key in kept)
    for deed, (_, last) in DEEDS.items():
        shutil.copytree(before[deed].data, tmp_path / deed)
        job = replace(before[deed], data=str(tmp_path / deed), inputs=[last])
        for found in (await standing(job), workers().done(job) and await standing(job)):
            assert [found["state"][key] for key in kept] == [awake["state"][key] for key in kept]
