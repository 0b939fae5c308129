"""Long work that a page started: a night's preview, its application, a run after an answer.

A job lives in the process of the inspector. What it does to memory is as safe as when the command
line does it: a job that is cut off is taken up by the agent's next run.
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
"""Takes a line for the person who waits."""

Work = Callable[[Tell], Coroutine[Any, Any, tuple[str, ...]]]
"""The work; returns the parts of the address that shows its result."""

KEPT_LINES = 200


class NightProgress(Listener):
    """Tells the steps of a night as they come."""

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
    """Parts of the address of what it made."""
    ended: bool = False
    task: asyncio.Task[None] | None = None

    async def run(self, work: Work) -> None:
        """Do the work and keep how it ended."""
        try:
            self.result = await work(self.tell)
        except BusyError as error:
            self.error = f"The agent is busy: {error}"
        except CircadianError as error:
            self.error = str(error)
        finally:
            self.ended = True
            if self.error is None and self.result is None:
                self.error = "The work was cut off; the agent's next run takes it up."

    def tell(self, line: str) -> None:
        """Add a line, in place of the last one if that is about the same step."""
        last, step = (one.partition(":")[0] for one in ("".join(self.lines[-1:]), line))
        told = self.lines[:-1] if last == step else self.lines
        self.lines = [*told, line][-KEPT_LINES:]


class BackgroundJobs:
    """The newest job of each agent."""

    def __init__(self) -> None:
        self._jobs: dict[Owner, BackgroundJob] = {}

    def current(self, owner: Owner) -> BackgroundJob | None:
        """The job that goes on, or the last one that ended."""
        return self._jobs.get(owner)

    def refuse_while_busy(self, owner: Owner) -> None:
        """Raise BusyError while a job goes on: it holds the agent, and a change would wait."""
        going = self._jobs.get(owner)
        if going is not None and not going.ended:
            raise BusyError(f"{going.title} is still going on: wait for its end")

    def start(self, owner: Owner, title: str, work: Work) -> BackgroundJob:
        """Start a job. Raises BusyError while another one goes on."""
        self.refuse_while_busy(owner)
        job = BackgroundJob(title)
        job.task = asyncio.create_task(job.run(work))
        self._jobs[owner] = job
        return job

    async def stop(self) -> None:
        """Cut off what goes on, and wait for it."""
        tasks = [job.task for job in self._jobs.values() if job.task and not job.ended]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
