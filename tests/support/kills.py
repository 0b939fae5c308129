"""Kill a process at every point of an operation, and check what the next run makes of it.

The points are counted in an undisturbed run, so that no test knows their numbers: a change of how
often something is written needs no change of a test.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tests.support.crash_worker import Job, Point
from tests.support.workers import workers

Found = TypeVar("Found")
_runs: dict[str, dict[str, Any]] = {}


def run_of(job: Job) -> dict[str, Any]:
    """The result of an undisturbed run of the job, which is made once."""
    key = json.dumps([job.inputs, job.settings, job.options, job.plain, job.model, job.now])
    if key not in _runs:
        own = copied(job, f"undisturbed-{len(_runs)}")
        _runs[key] = workers().done(own)
        shutil.rmtree(own.data)
    return _runs[key]


def counts(job: Job) -> dict[str, int]:
    """How often each kind of point comes in an undisturbed run."""
    counted: dict[str, int] = run_of(job)["counts"]
    return counted


def copied(job: Job, name: str) -> Job:
    """The same job on a copy of its data folder, or on no folder yet where it has none."""
    assert job.database is None, "a database is not copied"
    data = Path(f"{job.data}-{name}")
    if Path(job.data).exists():
        shutil.copytree(job.data, data)
    return replace(job, data=str(data))


def points(
    job: Job, kind: str, *, when: str = "after", first: int = 1, last: int = 0, part: str = "1/1"
) -> list[Point]:
    """The points of one kind from `first` to all but `last`, or a part of them as "2/3"."""
    start, step = (int(one) for one in part.split("/"))
    numbers = range(first, counts(job)[kind] + 1 - last)
    return [Point(kind, nth, when) for nth in numbers[start - 1 :: step]]


async def kill_at_each(
    job: Job, where: Iterable[Point], check: Callable[[Job, Point], Awaitable[Found]]
) -> list[Found]:
    """Kill the job at each point, on a fresh copy; what `check` finds there."""
    found = []
    for point in where:
        own = copied(job, f"{point.kind}-{point.nth}-{point.when}")
        kill = workers().kill_at_hold if point.hold else workers().killed
        kill(replace(own, point=point))
        try:
            found.append(await check(own, point))
        except BaseException as error:
            error.add_note(f"killed {point.when} {point.kind} {point.nth}")
            raise
        shutil.rmtree(own.data, ignore_errors=True)
    assert found, "no point to be killed at"
    return found
