"""The scheduler: ticks at an interval and nights at their hour, until it is told to end.

What a run does is decided by `intake`, here as for a server's cron. The writer's lock is held only
while a run goes on, and where there is nothing to do there is no run: so other commands get in
between, and an idle agent writes nothing.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import Any, NamedTuple, Protocol, cast

from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl

from graph.handle import AsyncAgent
from memory import approvals, emergency, inbox, night, night_undo
from memory.errors import CircadianError
from memory.owners import owners_of
from memory.reports import Report
from memory.schedule import hours_over, own_sleep
from memory.state import Mode, State, fresh_state
from memory.state_check import kept_problem
from memory.turns import goals_parked, parked_events, sorted_out, why_idle

LONGEST_PAUSE = 60.0
"""Seconds between two tries while everything fails; more only where the rate itself is slower."""
MODES = ["messages", "updates", "values"]


class Watcher(Protocol):
    """Whoever is told what goes on."""

    def begins(self) -> None:
        """A run sets out; it may have to wait for another process first."""
        ...

    async def part(self, part: dict[str, Any]) -> None:
        """A part of its stream, as LangGraph gives it (version 2)."""
        ...

    def rests(self, why: str, mode: Mode) -> None:
        """There is nothing to do now, and why."""
        ...

    def failed(self, error: str) -> None:
        """A run could not be made, or broke; it is tried again."""
        ...


class Outlook(NamedTuple):
    """What a run would find now."""

    mode: Mode
    rests: str | None
    """Why there is nothing to do; None: there may be."""


class Scheduler:
    """Runs one agent again and again."""

    def __init__(self, agent: AsyncAgent, watcher: Watcher) -> None:
        self._agent, self._watcher = agent, watcher
        self._ending = asyncio.Event()
        self._control: RunControl | None = None
        self._begun = False
        """The run in hand holds the agent."""
        self._failures = 0
        """Runs in a row in which something failed."""

    def end(self) -> None:
        """Finish the step at hand (a node: one model call at most, or the tools of one answer).

        What is left of the tick or the night goes on with the next run of anybody.
        """
        self._ending.set()
        if self._control is not None:
            self._control.request_drain("told to end")

    async def run(self) -> None:
        """Go on until `end`. Nothing that fails ends it; each failure in a row doubles the pause.

        Cancelled, it stops at once: as after a crash, the call in flight is made again.
        """
        while not self._ending.is_set():
            mode = await self._once()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), self._pause(mode))

    def _pause(self, mode: Mode) -> float:
        settings = self._agent.settings
        rate = settings.tick_rate if mode == "awake" else settings.tick_rate_sleep
        return max(rate, min(rate * 2.0 ** min(self._failures, 20), LONGEST_PAUSE))

    async def _once(self) -> Mode:
        """A run, if there is anything to do; the mode after it."""
        mode: Mode = "awake"
        try:
            mode, rests = await outlook(self._agent)
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
        """One run. Told to end while another process still holds the agent, it is not begun."""
        self._begun, self._control = False, RunControl()
        going = asyncio.create_task(self._follow(self._control, mode))
        ending = asyncio.create_task(self._ending.wait())
        try:
            await asyncio.wait({going, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not going.done() and not self._begun:
                going.cancel()
                with suppress(asyncio.CancelledError):
                    await going
                return None, mode
            return await going
        finally:
            self._control = None
            for task in (going, ending):
                task.cancel()
            await asyncio.wait({going, ending})

    async def _follow(self, control: RunControl, mode: Mode) -> tuple[Report | None, Mode]:
        report: Report | None = None
        self._watcher.begins()
        stream = self._agent.astream(
            {}, stream_mode=MODES, subgraphs=True, version="v2", control=control
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


async def outlook(agent: AsyncAgent) -> Outlook:
    """Whether a run that is given nothing would find anything to do: by the rules of `intake`.

    Reads only, takes no lock. A state that breaks a rule is left to the run, which says so.
    """
    snapshot = await agent.aget_state()
    values = snapshot.values
    mode: Mode = values.get("mode", "awake")
    unfinished = snapshot.tasks and not any(task.interrupts for task in snapshot.tasks)
    if unfinished or kept_problem(values) is not None:
        return Outlook(mode, None)
    # A key with a reducer is empty, not absent, before the first run.
    known = {key: value for key, value in values.items() if value or key != "projects"}
    whole = {**fresh_state(), "messages": [], **known, "unattended": True}
    return Outlook(mode, await _why_rest(agent, cast(State, whole)))


async def _why_rest(agent: AsyncAgent, state: State) -> str | None:
    store, scope, settings = agent.store, agent.scope, agent.settings
    now = agent.resources.clock()
    if state["emergency_stop"]:
        return "The emergency stop stands: `circadian clear-stop` clears it."
    if await emergency.stop_asked_by(store, scope) is not None:
        return None
    if await night.is_due(store, scope) or await night_undo.unfinished(store, scope):
        return None
    owners = owners_of(settings, user=agent.resources.user, served=agent.resources.served)
    items = await inbox.waiting(store, scope, state["handled"])
    pending = sorted_out(items, settings, owners, past=parked_events(state))
    if pending.context or pending.ignored or pending.ready(state, settings, now):
        return None
    if await approvals.answers(store, scope, state["parked"]):
        return None
    busy = bool(items or state["parked"])
    if own_sleep(state, settings, now, direct=bool(pending.people), busy=busy):
        return None
    if hours_over(state, settings, now):
        return None
    if goals_parked(state):
        return "A question waits for a person (circadian status)."
    return why_idle(state, settings, now)
