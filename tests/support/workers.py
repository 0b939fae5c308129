"""Start jobs of `tests.support.crash_worker` in processes, kill them, and see how they ended."""

from __future__ import annotations

import functools
import json
import os
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.support.crash_worker import Job, run_job
from tests.support.forked import forks

KILLED = -signal.SIGKILL
SECONDS = 60.0
"""After which a process that does not end fails its test."""


class Workers:
    """The processes of this test process, by id."""

    def __init__(self) -> None:
        self._started: dict[int, tuple[BaseProcess, Job]] = {}

    def start(self, job: Job) -> int:
        """Start a process; its id."""
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
        """Run a job whose process dies at its point."""
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
        """Wait until `file` exists."""
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
