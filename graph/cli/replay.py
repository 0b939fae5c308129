"""Replaying a file of events, each taken once, on the clock of the file.

What was handled before is skipped when the file is replayed again: events by their id; requests by
a marker that is kept in the inbox's `handled` namespace once the request was carried out. A process
killed between a request and its marker carries that one request out again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from graph.cli.replay_file import Step, steps
from graph.handle import AsyncAgent
from memory import inbox
from memory.records import HandledMark
from memory.reports import FailureReport, Report
from memory.resources import utc_now
from memory.tick import ParkedTick


class Clock:
    """The clock of a replay: the latest `at` so far. Before the first one, the wall clock."""

    def __init__(self) -> None:
        self._latest: datetime | None = None

    def __call__(self) -> datetime:
        """The time (UTC)."""
        return self._latest or utc_now()

    def reach(self, times: Iterable[str]) -> None:
        """Go on to the latest of `times` (UTC). Going back changes nothing: an event keeps its own
        time, and the agent's clock never runs backwards.
        """
        for time in times:
            moment = datetime.fromisoformat(time)
            self._latest = max(moment, self._latest or moment)


@dataclass
class Tally:
    """What a replay did."""

    events: int = 0
    skipped: int = 0
    """Events and requests that had been handled before."""
    ticks: int = 0
    context_only: int = 0
    ignored: int = 0
    questions: int = 0
    """Those that wait for a person at the end."""
    nights: int = 0
    failed: dict[str, FailureReport] = field(default_factory=dict)
    """What has not succeeded so far, by event id."""
    stopped: bool = False
    """Events wait that no run takes, as under the emergency stop or while the model is left alone:
    the replay went no further.
    """

    def add(self, report: Report) -> None:
        """Count a run. An event that failed and then succeeded is no failure any more."""
        self.ticks += len(report["ticks"])
        self.context_only += len(report["context_only"])
        self.ignored += len(report["ignored"])
        night = report["night"]
        self.nights += night is not None and night["id"] is not None
        for failure in report["failures"]:
            self.failed[failure["event_id"] or ""] = failure
        for tick in report["ticks"]:
            self.failed.pop(tick["event_id"] or "-", None)
        if night is not None:
            self.failed.pop("", None)

    def as_json(self) -> dict[str, Any]:
        """The counts `{events, skipped, ticks, context_only, ignored, questions, nights}`, and
        `failures`, a list.
        """
        return {
            "events": self.events,
            "skipped": self.skipped,
            "ticks": self.ticks,
            "context_only": self.context_only,
            "ignored": self.ignored,
            "questions": self.questions,
            "nights": self.nights,
            "failures": list(self.failed.values()),
        }


class Watcher(Protocol):
    """Whoever shows a replay to a person."""

    async def run(self, agent: AsyncAgent, step: Step, given: dict[str, Any]) -> Report:
        """Run the agent on `given`, what is new in `step`, and show what it does."""
        ...

    def skip(self, step: Step) -> None:
        """Everything in `step` had been handled before."""
        ...


async def replay(agent: AsyncAgent, path: Path, clock: Clock, watcher: Watcher) -> Tally:
    """Play the file. `clock` must be the agent's own.

    Raises:
        InputError: a malformed line; what stands before it is done, nothing after it.
        BusyError: another process holds the agent.
    """
    tally = Tally()
    marks = {mark["id"] for mark in (await agent.aget_state()).values.get("handled", [])}
    for step in steps(path):
        clock.reach([*(event["at"] for event in step.events), *([step.at] if step.at else [])])
        handled = marks | await inbox.already_handled(agent.store, agent.scope, step.ids)
        fresh = [one for one in step.ids if one not in handled]
        tally.events += len(step.events)
        tally.skipped += len(step.ids) - len(fresh)
        if not fresh:
            watcher.skip(step)
            continue
        report = await watcher.run(agent, step, _given(step, fresh))
        tally.add(report)
        if step.request and not report["failures"]:
            mark = HandledMark(id=step.marker, tick=0, at=clock().isoformat())
            await inbox.settle(agent.store, agent.scope, [mark])
        waiting = await _waiting(agent, step, fresh, report)
        tally.failed |= {one["event_id"] or "": one for one in waiting}
        if waiting or _left_alone(report):
            tally.stopped = True
            break
    return tally


def _given(step: Step, fresh: Sequence[str]) -> dict[str, Any]:
    """A run's input."""
    if step.request:
        return {"request": step.request}
    return {"events": [event for event in step.events if event["id"] in fresh]}


async def _waiting(
    agent: AsyncAgent, step: Step, fresh: Sequence[str], report: Report
) -> list[FailureReport]:
    """The step's events that were not taken: they stand in the inbox, and no person is asked."""
    told = {*report["context_only"], *report["skipped"]}
    for some in (report["ticks"], report["failures"], report["ignored"], report["questions"]):
        told |= {str(one["event_id"]) for one in some}
    untold = [one for one in fresh if step.events and one not in told]
    if untold:
        parked: list[ParkedTick] = (await agent.aget_state()).values.get("parked", [])
        asked = {one["question"]["event_id"] for one in parked}
        untold = [one for one in untold if one not in asked]
    why = " ".join(report["notes"]) or "the run ended before it was taken"
    return [{"event_id": one, "error": why, "attempts": 0, "set_aside": False} for one in untold]


def _left_alone(report: Report) -> bool:
    """Whether a tick failed without a try: a service is left alone, and the next would fail too."""
    return any(one["event_id"] and not one["attempts"] for one in report["failures"])
