"""Kill a process at chosen points, or at every point of an operation.

The points are counted in an undisturbed run, so that no test knows their numbers: a change of how
often something is written needs no change of a test.
"""

import functools
import json
import os
import shutil
import signal
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

from tests.support.crash_worker import Job, Point, run_job
from tests.support.forked import forks

KILLED = -signal.SIGKILL
SECONDS = 60.0
"""After which a process that does not end fails its test."""


class Workers:
    """The processes of this test process, by id."""

    def __init__(self) -> None:
        self._started: dict[int, tuple[BaseProcess, Job]] = {}

    def start(self, job: Job) -> int:
        for old in (job.out, job.reached, job.errors):
            old.unlink(missing_ok=True)
        process = forks().Process(target=run_job, args=(job,), daemon=True)
        process.start()
        assert process.pid is not None
        self._started[process.pid] = process, job
        return process.pid

    def wait(self, pid: int, seconds: float = SECONDS) -> int:
        """The exit status. A process that does not end in time is killed and fails the test."""
        process, job = self._started.pop(pid)
        process.join(seconds)
        status = process.exitcode
        if status is None:
            process.kill()
            process.join(SECONDS)
        process.close()
        assert status is not None, f"process {pid} did not end in {seconds} s{_errors_of(job)}"
        return status

    def killed(self, job: Job) -> None:
        status = self.wait(self.start(job))
        assert status == KILLED, f"ended with {status}, not at {job.point}{_errors_of(job)}"

    def done(self, job: Job) -> dict[str, Any]:
        """Run a job to its end; what the process wrote."""
        return self.ended(job, self.start(job))

    def ended(self, job: Job, pid: int) -> dict[str, Any]:
        """Wait for a job that was started; what the process wrote."""
        status = self.wait(pid)
        assert status == 0, f"ended with {status}{_errors_of(job)}"
        result: dict[str, Any] = json.loads(job.out.read_text())
        return result

    def kill_at_hold(self, job: Job) -> None:
        """Run a job that stands still at its point, and kill it there."""
        pid = self.start(job)
        self.until(job.reached)
        os.kill(pid, signal.SIGKILL)
        assert self.wait(pid) == KILLED

    def until(self, file: Path) -> None:
        end = time.monotonic() + SECONDS
        while not file.exists():
            assert time.monotonic() < end, f"{file.name} never came"
            time.sleep(0.005)


def _errors_of(job: Job) -> str:
    said = job.errors.read_text() if job.errors.exists() else ""
    return f"; stderr:\n{said[-4000:]}"


@functools.cache
def workers() -> Workers:
    """The workers of this test process."""
    return Workers()


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
