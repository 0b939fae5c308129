"""What a kill leaves half done at the end of a night is finished by whatever run comes next.

An undo, of which memory's two files know at different times; and a night that is written down as
applied before its history is cut.
"""

import shutil
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graph.api import AsyncAgent
from graph.cli.commands.run import outlook
from graph.use_cases.nights import apply_night, find_night
from memory import audit
from memory.errors import InputError
from memory.night import undo as night_undo
from memory.night.record import status_of
from tests.crash.test_crash_dreaming import APPLY, UNDO
from tests.crash.test_crash_dreaming import before as before
from tests.crash.test_crash_dreaming import lived as lived
from tests.support.crash_worker import Job, Point, Points, running
from tests.support.kills import workers
from tests.support.scripted import logged_calls
from tests.support.whole_nights import SLEEP, differences, everything, standing

BEGUN = {
    "nothing is changed": Point("put open_undo", 1),
    "all but the facts is taken back": Point("put archives", 1),
    "all is taken back, and not said": Point("put nights", 1, "before"),
    "it is not logged": Point("put open_undo", 2, "before"),
}
GIVEN: dict[str, dict[str, Any] | None] = {"a run": None, "a night": SLEEP, "the undo": UNDO}


def copied(job: Job, folder: Path, given: dict[str, Any]) -> Job:
    shutil.copytree(job.data, folder)
    return replace(job, data=str(folder), inputs=[given])


async def undos(agent: AsyncAgent) -> list[tuple[str, str]]:
    log = await audit.read(agent.store, agent.scope)
    return [(one["target"], one["who"]) for one in log if one["what"] == "undo"]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        pytest.param(name, given, marks=[] if place % 3 == other else [pytest.mark.slow])
        for place, name in enumerate(BEGUN)
        for other, given in enumerate(GIVEN)
    ],
)
async def test_an_undo_killed_when(
    before: dict[str, Job], tmp_path: Path, name: str, given: str
) -> None:
    done = copied(before["undo"], tmp_path / "done", UNDO)
    after = [] if GIVEN[given] in (None, UNDO) else [GIVEN[given]]
    workers().done(replace(done, inputs=[UNDO, *after]))
    expected = await standing(done)

    job = copied(before["undo"], tmp_path / "killed", UNDO)
    workers().killed(replace(job, point=BEGUN[name]))
    async with running(job, Points(job)) as (agent, run):
        assert await night_undo.unfinished_undo(agent.store, agent.scope) is not None
        assert (await outlook(agent.context)).rests is None
        report = (await run(GIVEN[given]))["report"]
        assert await night_undo.unfinished_undo(agent.store, agent.scope) is None
        assert differences(await everything(agent), expected) == []
        [(night, who)] = await undos(agent)
    assert who == "local"
    if GIVEN[given] != UNDO:
        assert report["notes"][0] == f"The undo of {night} was interrupted, and is finished now."


async def learned(agent: AsyncAgent) -> list[str]:
    report = await agent.night("last")
    made = [one["target"] for one in report["operations"] if one["kind"] == "add_fact"]
    found = await agent.resources.semantic.by_op(agent.scope, made)
    return [fact["id"] for fact in found.values()]


async def _corrected(agent: AsyncAgent) -> None:
    with pytest.raises(InputError, match="no fact"):
        await agent.correct((await learned(agent))[0], "Ada lives in Narvik.")


async def _forgotten(agent: AsyncAgent) -> None:
    await agent.forget("Dora")


@pytest.mark.parametrize("deed", [_forgotten, _corrected])
async def test_a_forget_and_a_correction_come_behind_an_undo_that_was_broken_off(
    before: dict[str, Job], tmp_path: Path, deed: Callable[[AsyncAgent], Awaitable[None]]
) -> None:
    job = copied(before["undo"], tmp_path / "killed", UNDO)
    workers().killed(replace(job, point=BEGUN["all but the facts is taken back"]))
    async with running(job, Points(job)) as (agent, _):
        assert len(await learned(agent)) > 1
        await deed(agent)
        assert status_of(await find_night(agent.context, "last")) == "undone"
        assert await night_undo.unfinished_undo(agent.store, agent.scope) is None
        assert await learned(agent) == []


@pytest.fixture
def broken(before: dict[str, Job], tmp_path: Path) -> Job:
    """A preview applied by a process that was killed before it cut the history."""
    job = copied(before["apply"], tmp_path / "killed", APPLY)
    workers().killed(replace(job, point=Point("put open_night", 2)))
    return job


async def test_a_night_that_was_killed_at_its_end_is_applied_and_the_next_run_cuts_the_history(
    broken: Job, before: dict[str, Job], tmp_path: Path
) -> None:
    done = copied(before["apply"], tmp_path / "done", APPLY)
    workers().done(done)
    expected = await standing(done)
    async with running(broken, Points(broken)) as (agent, run):
        record = await find_night(agent.context, "last")
        messages = (await agent.aget_state()).values["messages"]
        assert status_of(record) == "complete"
        with pytest.raises(InputError, match="is applied: there is nothing to apply"):
            await apply_night(agent.context, record["id"])
        await run(None)
        assert len((await agent.aget_state()).values["messages"]) < len(messages)
        assert differences(await everything(agent), expected) == []
        log = await audit.read(agent.store, agent.scope)
        told = sorted(one["detail"]["status"] for one in log if one["what"] == "night")
        assert told == ["complete", "complete", "preview"]
    assert logged_calls(broken.log) == []


async def test_undone_before_its_end_was_reached_a_night_stays_undone_and_cuts_nothing(
    broken: Job,
) -> None:
    async with running(broken, Points(broken)) as (agent, run):
        messages = (await agent.aget_state()).values["messages"]
        await run(UNDO)
        undone = await everything(agent)
        report = (await run(None))["report"]
        assert report["failures"] == []
        assert status_of(await find_night(agent.context, "last")) == "undone"
        assert (await agent.aget_state()).values["messages"] == messages
        now = await everything(agent)
        assert differences({**now, "state": None}, {**undone, "state": None}) == []
