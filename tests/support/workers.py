"""Start jobs of `tests.support.crash_worker` in processes, kill them, and see how they ended."""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.support.crash_worker import Job
from tests.support.source_files import ROOT

KILLED = -signal.SIGKILL
SECONDS = 60.0
"""After which a process that does not end fails its test."""


class Workers:
    """One parent process that forks the others."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # lives as long as this
        # One test's settings are not those of every process that is forked later.
        kept = {k: v for k, v in os.environ.items() if not k.startswith("CIRCADIAN_")}
        variables = {"MEM0_TELEMETRY": "False", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "tests.support.crash_worker"],
            cwd=ROOT,
            env={**kept, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def close(self) -> None:
        """End the parent; what it forked has ended, or is killed by its own test."""
        self._parent.communicate(timeout=SECONDS)
        self._errors.close()

    def start(self, job: Job) -> int:
        """Start a process; its pid."""
        for old in (job.out, job.reached):
            old.unlink(missing_ok=True)
        pid: int = self._ask({"run": asdict(job)})
        return pid

    def wait(self, pid: int, seconds: float = SECONDS) -> int:
        """The exit status. A process that does not end in time is killed and fails the test."""
        status: int | str = self._ask({"wait": pid, "seconds": seconds})
        if isinstance(status, str):
            os.kill(pid, signal.SIGKILL)
            self._ask({"wait": pid, "seconds": seconds})
            raise AssertionError(f"process {pid} did not end in {seconds} s{self._told()}")
        return status

    def killed(self, job: Job) -> None:
        """Run a job whose process dies at its point."""
        status = self.wait(self.start(job))
        assert status == KILLED, f"ended with {status}, not at {job.point}{self._told()}"

    def done(self, job: Job) -> dict[str, Any]:
        """Run a job to its end; what the process wrote."""
        return self.ended(job, self.start(job))

    def ended(self, job: Job, pid: int) -> dict[str, Any]:
        """Wait for a job that was started; what the process wrote."""
        status = self.wait(pid)
        assert status == 0, f"ended with {status}{self._told()}"
        result: dict[str, Any] = json.loads(job.out.read_text())
        return result

    def kill_at_hold(self, job: Job) -> None:
        """Run a job that stands still at its point, and kill it there."""
        pid = self.start(job)
        self.until(job.reached)
        os.kill(pid, signal.SIGKILL)
        assert self.wait(pid) == KILLED

    def until(self, file: Path) -> None:
        """Wait until `file` stands."""
        end = time.monotonic() + SECONDS
        while not file.exists():
            assert time.monotonic() < end, f"{file.name} never came{self._told()}"
            time.sleep(0.005)

    def _ask(self, command: dict[str, Any]) -> Any:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(json.dumps(command) + "\n")
        self._parent.stdin.flush()
        line = self._parent.stdout.readline()
        assert line, f"the workers' parent ended{self._told()}"
        return json.loads(line)

    def _told(self) -> str:
        self._errors.flush()
        self._errors.seek(0)
        return f"; stderr:\n{self._errors.read()[-4000:]}"


@functools.cache
def workers() -> Workers:
    """The workers of this test process."""
    made = Workers()
    atexit.register(made.close)
    return made
