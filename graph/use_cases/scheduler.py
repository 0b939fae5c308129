"""The scheduler: ticks at an interval and nights at their hour, until `end`.

`intake` decides what a run does, as it does for a server's cron. The lock is held only during a
run, so that other commands get their turn. With nothing to do there is no run, so that an idle
agent writes nothing.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from graph.use_cases import runs
from graph.use_cases.context import AgentContext, complete_state
from memory import events, night
from memory.errors import CircadianError, StateError
from memory.events import (
    approvals,
    goals_parked,
    hours_over,
    inbox,
    own_sleep,
    parked_events,
    sorted_out,
    why_idle,
    why_wait,
)
from memory.records import Report
from memory.state import Mode, State

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

LONGEST_PAUSE = 60.0
"""Longest pause in seconds after failures, unless the rate itself is slower."""

MODES = ["messages", "updates", "values"]


class Watcher(Protocol):
    """Follows what the scheduler does."""

    def begins(self) -> None:
        """A run begins; it may have to wait for another process first."""

    async def part(self, part: dict[str, Any]) -> None:
        """A part of its stream, as LangGraph gives it (version 2)."""

    def rests(self, why: str, mode: Mode) -> None:
        """There is nothing to do now; `why` gives the reason."""

    def failed(self, error: str) -> None:
        """A run failed; it will be tried again."""


class Outlook(NamedTuple):
    """Whether a run would find work now."""

    mode: Mode
    rests: str | None
    """Why there is nothing to do; None if there may be something."""


class Scheduler:
    """Runs one agent again and again."""

    def __init__(self, context: AgentContext, watcher: Watcher) -> None:
        self._context, self._watcher = context, watcher
        self._ending = asyncio.Event()
        self._control: RunControl | None = None
        self._begun = False
        """The current run has got the lock."""
        self._failures = 0
        """Failed runs in a row."""

    def end(self) -> None:
        """End after the current node: at most one model call, or the tools of one answer.

        Any later run resumes the rest of the tick or night.
        """
        self._ending.set()
        if self._control is not None:
            self._control.request_drain("told to end")

    async def run(self) -> None:
        """Run until `end`. Failures do not end it; each one in a row doubles the pause.

        Cancelled, it stops at once; as after a crash, the model call in flight is made again.
        """
        while not self._ending.is_set():
            mode = await self._once()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), self._pause(mode))

    def _pause(self, mode: Mode) -> float:
        settings = self._context.settings
        rate = settings.tick_rate if mode == "awake" else settings.tick_rate_sleep
        return max(rate, min(rate * 2.0 ** min(self._failures, 20), LONGEST_PAUSE))

    async def _once(self) -> Mode:
        mode: Mode = "awake"
        try:
            mode, rests = await outlook(self._context)
            if rests is not None:
                self._watcher.rests(rests, mode)
                self._failures = 0
                return mode
            report, mode = await self._run(mode)
            self._failures = self._failures + 1 if report and report["failures"] else 0
        except (CircadianError, OSError) as error:
            self._failures += 1
            self._watcher.failed(str(error))
        return mode

    async def _run(self, mode: Mode) -> tuple[Report | None, Mode]:
        """One run. None if `end` comes while another process still holds the agent."""
        from langgraph.runtime import RunControl

        self._begun, self._control = False, RunControl()
        going = asyncio.create_task(self._follow(self._control, mode))
        ending = asyncio.create_task(self._ending.wait())
        try:
            await asyncio.wait({going, ending}, return_when=asyncio.FIRST_COMPLETED)
            if going.done() or self._begun:
                return await going
            return None, mode
        finally:
            self._control = None
            for task in (going, ending):
                task.cancel()
            await asyncio.wait({going, ending})

    async def _follow(self, control: RunControl, mode: Mode) -> tuple[Report | None, Mode]:
        from langgraph.errors import GraphDrained

        report: Report | None = None
        self._watcher.begins()
        stream = runs.stream(
            self._context,
            {},
            raise_on_failure=False,
            stream_mode=MODES,
            subgraphs=True,
            version="v2",
            control=control,
        )
        with suppress(GraphDrained):
            async with aclosing(stream) as parts:
                async for part in parts:
                    self._begun = True
                    if part["type"] == "values" and not part["ns"]:
                        report = cast(Report | None, part["data"].get("report"))
                        mode = part["data"].get("mode", mode)
                    await self._watcher.part(part)
        return report, mode


async def outlook(context: AgentContext) -> Outlook:
    """Whether a run without input would find anything to do, by the rules of `intake`.

    Reads only and takes no lock. An invalid state is left to the run, which reports it.
    """
    snapshot = await context.snapshot()
    mode: Mode = snapshot.values.get("mode", "awake")
    if snapshot.tasks and not any(task.interrupts for task in snapshot.tasks):
        return Outlook(mode, None)
    try:
        state = complete_state(snapshot.values)
    except StateError:
        return Outlook(mode, None)
    return Outlook(mode, await _why_rest(context, {**state, "unattended": True}))


async def _why_rest(context: AgentContext, state: State) -> str | None:
    store, scope, settings = context.store, context.scope, context.settings
    now = context.now()
    if state["emergency_stop"]:
        return "The emergency stop is set: `circadian clear-stop` clears it."
    if await events.stop_asked_by(store, scope) is not None:
        return None
    if await night.is_due(store, scope) or await night.unfinished_undo(store, scope):
        return None
    items = await inbox.waiting(store, scope, state["handled"])
    pending = sorted_out(items, settings, context.owners, past=parked_events(state))
    if pending.context or pending.ignored or pending.ready(state, settings, now):
        return None
    if await approvals.answers(store, scope, state["parked"]):
        return None
    if own_sleep(state, settings, now, direct=bool(pending.people), busy=not pending.empty()):
        return None
    if hours_over(state, settings, now):
        return None
    if goals_parked(state):
        return "A question waits for a person (circadian status)."
    return why_idle(state, settings, now) or why_wait(state, settings, now)
