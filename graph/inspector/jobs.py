"""Long work that a page started: a night's preview, its application, a run after an answer.

A job lives in the inspector's process. It changes memory as safely as the command line does: the
agent's next run takes up a job that was cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from graph.following import Listener
from graph.following import progress as night_progress
from memory.errors import BusyError, CircadianError
from memory.night import NightEvent

Owner = tuple[str, str]
Tell = Callable[[str], None]
"""Shows a line to the person who waits."""

Work = Callable[[Tell], Coroutine[Any, Any, tuple[str, ...]]]
"""The work; returns the parts of the address that shows its result."""

KEPT_LINES = 200


class NightProgress(Listener):
    """Reports each step of a night."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def night(self, event: NightEvent) -> None:
        """A step begins, goes on or has ended."""
        self._tell(night_progress(event))


@dataclass
class BackgroundJob:
    """One piece of long work."""

    title: str
    lines: list[str] = field(default_factory=list)
    error: str | None = None
    result: tuple[str, ...] | None = None
    """Parts of the address that shows the result."""
    found: Any = None
    """What that page shows, once."""
    ended: bool = False
    task: asyncio.Task[None] | None = None

    async def run(self, work: Work) -> None:
        """Do the work, and keep its result or error."""
        try:
            self.result = await work(self.tell)
        except BusyError as error:
            self.error = f"The agent is busy: {error}"
        except CircadianError as error:
            self.error = error.without_commands
        finally:
            self.ended = True
            if self.error is None and self.result is None:
                self.error = "The work was cut off; the agent's next run takes it up."

    def tell(self, line: str) -> None:
        """Add a line; it replaces the last line if both are about the same step."""
        last, step = (one.partition(":")[0] for one in ("".join(self.lines[-1:]), line))
        kept = self.lines[:-1] if last == step else self.lines
        self.lines = [*kept, line][-KEPT_LINES:]


class BackgroundJobs:
    """The newest job of each agent."""

    def __init__(self) -> None:
        self._jobs: dict[Owner, BackgroundJob] = {}

    def current(self, owner: Owner) -> BackgroundJob | None:
        """The running job, or the last one that ended."""
        return self._jobs.get(owner)

    def refuse_while_busy(self, owner: Owner) -> None:
        """Raise BusyError while a job runs: it holds the agent, and a change would have to wait."""
        job = self._jobs.get(owner)
        if job is not None and not job.ended:
            raise BusyError(f"{job.title} is still going on: wait for its end")

    def start(self, owner: Owner, title: str, work: Work) -> BackgroundJob:
        """Start a job. Raises BusyError while another job runs."""
        self.refuse_while_busy(owner)
        job = BackgroundJob(title)
        job.task = asyncio.create_task(job.run(work))
        self._jobs[owner] = job
        return job

    async def stop(self) -> None:
        """Cancel the running jobs, and wait for their end."""
        tasks = [job.task for job in self._jobs.values() if job.task and not job.ended]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
