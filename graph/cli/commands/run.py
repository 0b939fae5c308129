"""`circadian run`: the agent runs on its own until a signal ends it: views and scheduler."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

from pydantic import ValidationError
from rich.live import Live
from rich.text import Text
from typer import Option

from graph.api import AsyncAgent
from graph.cli.access import running
from graph.cli.exits import INTERRUPTED
from graph.cli.program import Options, command
from graph.cli.run_view import (
    Transcript,
    cost_line,
    mode_line,
    night_view,
    still_waiting,
    what_next,
)
from graph.console import Screen, clean, counted, one_line, times_in
from graph.following import LOOKING_BACK, STEP_NAMES, Listener, News, follow
from graph.use_cases import AgentContext, Labels, complete_state, labels_for, status
from memory import events, night
from memory.errors import CircadianError, InputError, StateError
from memory.events import (
    approvals,
    by_verdict,
    goals_parked,
    hours_named,
    hours_over,
    inbox,
    next_start,
    own_sleep_cause,
    parked_events,
    why_idle,
    why_wait,
)
from memory.models import model_name
from memory.records import NightReport, Operation, ToolOutcome
from memory.runtime import utc_now
from memory.settings import Settings
from memory.state import Mode, State

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

SIGNALS = (signal.SIGTERM, signal.SIGINT)

PATIENCE = 3.0
"""Seconds that threads get after the second signal, before the process exits."""

OPTIONS = {
    "tick_rate": "--tick-rate",
    "tick_rate_sleep": "--tick-rate-sleep",
    "sleep_start_hour": "--sleep-at",
    "sleep_duration_hours": "--sleep-hours",
    "time_zone": "--time-zone",
    "fatigue_threshold": "--fatigue",
}

_KEPT = {
    "event": ("id", "sender", "channel", "text"),
    "tick": (
        *("tick", "event_id", "context_type", "reply", "tools", "sent", "llm_calls", "tokens"),
    ),
    "night": ("id", "complete", "steps", "errors"),
}
"""The fields that a record's line has. Other records have all of theirs."""


@command()
async def run(
    options: Options,
    tick_rate: Annotated[
        float | None, Option(metavar="S", help="Seconds between two looks for work [5].")
    ] = None,
    tick_rate_sleep: Annotated[
        float | None, Option(metavar="S", help="Seconds between two looks asleep [60].")
    ] = None,
    sleep_at: Annotated[
        int | None, Option(metavar="HOUR", help="Sleep at this local hour, 0-23 [never].")
    ] = None,
    sleep_hours: Annotated[float | None, Option(metavar="N", help="Hours of sleep [4].")] = None,
    time_zone: Annotated[
        str | None, Option(metavar="ZONE", help="Such as Europe/Vienna [the machine's].")
    ] = None,
    fatigue: Annotated[
        float | None,
        Option(metavar="SHARE", help="Sleep when this share of the context is full, 0-1 [never]."),
    ] = None,
) -> int:
    """Run on its own: answer, work on goals, sleep at its hour.

    Ctrl-C or SIGTERM ends it after the current step, a second signal at once; the next run goes on
    from there. --json prints a line for every event.
    """
    settings = settings_given(
        options.configuration.settings,
        tick_rate=tick_rate,
        tick_rate_sleep=tick_rate_sleep,
        sleep_start_hour=sleep_at,
        sleep_duration_hours=sleep_hours,
        time_zone=time_zone,
        fatigue_threshold=fatigue,
    )
    held = replace(options.configuration, settings=settings)
    with times_in(settings.time_zone):
        return await _run(replace(options, configuration=held), settings)


async def _run(options: Options, settings: Settings) -> int:
    async with running(options) as (_, screen, agent):
        clock = agent.resources.clock
        names = partial(labels_for, agent.context)
        watcher = Lines(screen, clock) if screen.json else Watch(screen, settings, clock, names)
        budget = await _budget(agent)
        model = model_name(agent.resources.chat_model)
        watcher.started(options.agent, model, _when(settings), budget)
        with watcher:
            return await _until_told(Scheduler(agent.context, watcher), watcher)


def settings_given(usual: Settings, **given: Any) -> Settings:
    """`usual` with what the options ask for; an hour switches the schedule on."""
    said = {key: value for key, value in given.items() if value is not None}
    if "sleep_duration_hours" in said and "sleep_start_hour" not in said:
        raise InputError("--sleep-hours says how long; give --sleep-at HOUR too")
    if "sleep_start_hour" in said:
        said["sleep_schedule_enabled"] = True
    try:
        return Settings.model_validate({**dict(usual), **said})
    except ValidationError as error:
        first = error.errors()[0]
        problem = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{OPTIONS[str(first['loc'][0])]}: {problem}") from None


class Watcher(Listener):
    """Follows what the scheduler does."""

    def rests(self, why: str, mode: Mode) -> None:
        """There is nothing to do now; `why` gives the reason."""

    def failed(self, error: str) -> None:
        """A run failed; it will be tried again."""


class Watch(Watcher):
    """For a person: a line for each message and action, and at the foot the current work."""

    def __init__(
        self,
        screen: Screen,
        settings: Settings,
        clock: Callable[[], datetime],
        names: Callable[[Sequence[Operation]], Awaitable[Labels]],
    ) -> None:
        """`names` looks up the names behind the ids in a night's operations."""
        self._screen, self._settings, self._clock = screen, settings, clock
        self._names = names
        self._rows = Transcript(screen)
        self._said: str | None = None
        """The last note or error, which is not repeated."""
        self._foot = Live(console=screen.out, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        if self._screen.live:
            self._foot.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._foot.stop()

    def started(self, agent: str, model: str, when: str, budget: str) -> None:
        """Show the agent, the model, when it sleeps, and what it may spend."""
        name = one_line(model).partition(" (")[0]  # a note has explained the offline model
        head = Text.assemble(("Circadian", "bold"), f" runs as {one_line(agent)}, model {name}")
        self._screen.show(head, Text(f"{when}. Ctrl-C ends it.", style="dim"))
        self._screen.show(Text(f"{budget}.", style="dim"))

    def ending(self) -> None:
        """Show that the first signal came."""
        self._rows.aside("ending when the step at hand is finished; once more ends it at once")

    def ended(self, *, at_once: bool) -> None:
        """Show the last line."""
        how = "stopped at once" if at_once else "ended"
        self._rows.aside(f"{how}; whatever is left waits for the next run")

    def rests(self, why: str, mode: Mode) -> None:
        """Show why at the foot; once also above, if a person has to act or the budget is spent."""
        if "circadian" in why or "tokens_per_day" in why:
            self._once(why)
        else:
            self._said = None
        said = why.removeprefix("Asleep. ").rstrip(".")
        self._now(f"{'asleep' if mode == 'sleep' else mode} · {said[0].lower()}{said[1:]}")

    def failed(self, error: str) -> None:
        """Show what went wrong, once in a row."""
        self._once(error, "red")
        self._now("trying again")

    def on_work(self, tools: list[str]) -> None:
        """Name the current work at the foot."""
        self._now(", ".join(tools))

    def on_outcomes(self, outcomes: list[ToolOutcome]) -> None:
        """Name the model's turn at the foot."""
        self._now("thinking")

    def on_step(self, graph: str, node: str) -> None:
        """Name the step of a night, or the beginning of a tick, at the foot."""
        if graph == "sleep":
            self._now(f"asleep · {STEP_NAMES.get(node, node.replace('_', ' '))}")
        elif node == "begin_tick":
            self._now("thinking")

    async def on_news(self, news: Sequence[News]) -> None:
        """Show each piece of news."""
        for what, record in news:
            if what == "night":
                await self._night(record)
            else:
                self._tell(what, record)
        if overheard := sum(what == "overheard" for what, _ in news):
            self._rows.aside(f"overheard {counted(overheard, 'message')}")

    def _tell(self, what: str, record: Any) -> None:
        match what:
            case "event":
                self._rows.event(record, self._clock())
                self._now("thinking")
            case "tick":
                self._rows.tick(record, self._clock() if record["event_id"] is None else None)
                if record["context_type"] in LOOKING_BACK:
                    self._rows.aside("looked back at its own work")
                self._rows.aside(cost_line(record))
            case "mode":
                at = datetime.fromisoformat(record["at"])
                self._rows.row(Text(), mode_line(record), at=at)
            case "question":
                self._rows.aside(still_waiting([record]))
            case "ignored":
                self._rows.aside(f"left alone: {record['reason']}")
            case "failure":
                told = what_next(record, self._settings.max_failed_ticks)
                kept = told if record["event_id"] else "it goes on from there"
                self._once(f"{record['error']} ({kept})", "red")
            case "note":
                self._once(record)
        if what not in ("note", "failure"):
            self._said = None

    async def _night(self, report: NightReport) -> None:
        self._said = None
        if report["id"] is not None:  # else a note says that there was nothing to do
            names = await self._names(report["operations"])
            self._screen.show("", night_view(report, names), "")

    def _once(self, text: str, style: str = "dim") -> None:
        if text != self._said:
            self._rows.row(Text(), Text(one_line(text), style=style), at=self._clock())
        self._said = text

    def _now(self, text: str) -> None:
        if self._screen.live:
            self._foot.update(Text(f"  {clean(text)}", style="dim"), refresh=True)


class Lines(Watcher):
    """For a program: one JSON object a line, `{"at", "what", ...}`."""

    def __init__(self, screen: Screen, clock: Callable[[], datetime]) -> None:
        self._out, self._clock = screen.out.file, clock
        self._last: tuple[str, Mapping[str, Any]] | None = None

    def started(self, agent: str, model: str, when: str, budget: str) -> None:
        """Write the first line."""
        self._say("started", agent=agent, model=model, when=when, budget=budget)

    def ending(self) -> None:
        """Write that the first signal came."""
        self._say("ending")

    def ended(self, *, at_once: bool) -> None:
        """Write the last line."""
        self._say("ended", at_once=at_once)

    def on_step(self, graph: str, node: str) -> None:
        """Write a line for each step of a night."""
        if graph == "sleep":
            self._say("step", step=node)

    async def on_news(self, news: Sequence[News]) -> None:
        """Write a line for each piece of news."""
        for what, record in news:
            kind, fields = _line(what, record)
            self._say(kind, **fields)

    def rests(self, why: str, mode: Mode) -> None:
        """Write why there is nothing to do, once in a row."""
        self._say("resting", mode=mode, why=why)

    def failed(self, error: str) -> None:
        """Write what went wrong, once in a row."""
        self._say("trouble", error=error)

    def _say(self, what: str, **fields: Any) -> None:
        if what in ("resting", "trouble") and self._last == (what, fields):
            return
        self._last = (what, fields)
        line = {"at": self._clock().isoformat(), "what": what, **fields}
        self._out.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._out.flush()


def _line(what: str, record: Any) -> tuple[str, Mapping[str, Any]]:
    match what:
        case "mode":
            kind = "fell_asleep" if record["mode"] == "sleep" else "woke"
            return kind, {"why": record["why"], "reason": record["reason"]}
        case "note":
            return what, {"text": record}
        case "overheard":
            return what, {"event_id": record}
        case "night":  # without its operations, which `circadian night ID` has
            counts = {key: len(record[key]) for key in ("operations", "held")}
            return what, {key: record[key] for key in _KEPT[what]} | counts
    return what, {key: record[key] for key in _KEPT.get(what, record)}


async def _until_told(scheduler: Scheduler, watcher: Lines | Watch) -> int:
    task = asyncio.ensure_future(scheduler.run())
    with _signals(scheduler, task, watcher):
        await asyncio.wait({task})
        at_once = task.cancelled()
        if not at_once:
            task.result()
        watcher.ended(at_once=at_once)
        return INTERRUPTED if at_once else 0


@contextmanager
def _signals(
    scheduler: Scheduler, task: asyncio.Future[None], watcher: Lines | Watch
) -> Iterator[None]:
    """The first signal ends the run after the current step, a second one at once."""
    loop, told = asyncio.get_running_loop(), 0

    def tell() -> None:
        nonlocal told
        told += 1
        if told == 1:
            scheduler.end()
            with suppress(BrokenPipeError):  # whoever read has left; it ends all the same
                watcher.ending()
        else:
            task.cancel()
            # A model or tool in a thread cannot be cancelled, and would be waited for.
            last = threading.Timer(PATIENCE, os._exit, (INTERRUPTED,))
            last.daemon = True
            last.start()

    for number in SIGNALS:
        loop.add_signal_handler(number, tell)
    try:
        yield
    finally:
        for number in SIGNALS if told < 2 else ():
            loop.remove_signal_handler(number)


async def _budget(agent: AsyncAgent) -> str:
    spending = (await status(agent.context))["spending"]
    return (
        f"It works on its goals for at most {spending['tokens_per_day']:,} tokens a day (UTC; "
        f"{spending['tokens']:,} spent today); after that it only answers messages"
    )


def _when(settings: Settings) -> str:
    pace = f"Looks every {settings.tick_rate:g} s, asleep every {settings.tick_rate_sleep:g} s"
    if not settings.sleep_schedule_enabled:
        return f"{pace}; it never sleeps by the clock (--sleep-at HOUR sets an hour)"
    zone = settings.zone
    following = next_start(utc_now(), settings).astimezone(zone)
    return f"{pace}; sleeps at {hours_named(settings)}; next {following:%A, %H:%M}"


# The scheduler


LONGEST_PAUSE = 60.0
"""Longest pause in seconds after failures, unless the rate itself is slower."""


class Outlook(NamedTuple):
    """Whether a run would find work now."""

    mode: Mode
    rests: str | None
    """Why there is nothing to do; None if there may be something."""


class Scheduler:
    """Ticks at an interval and nights at their hour, until `end`.

    `intake` decides what a run does, as it does for a server's cron. The lock is held only during a
    run, so that other commands get their turn. With nothing to do there is no run, so that an idle
    agent writes nothing.
    """

    def __init__(self, context: AgentContext, watcher: Watcher) -> None:
        self._context, self._watcher = context, watcher
        self._ending = asyncio.Event()
        self._control: RunControl | None = None
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
            await self._run()
            failed = self._watcher.report["failures"]
            self._failures = self._failures + 1 if failed else 0
        except (CircadianError, OSError) as error:
            self._failures += 1
            self._watcher.failed(str(error))
            return mode
        return self._watcher.mode or mode

    async def _run(self) -> None:
        """One run. It is left alone if `end` comes while another process still holds the agent."""
        from langgraph.errors import GraphDrained
        from langgraph.runtime import RunControl

        self._control = RunControl()
        going = asyncio.create_task(follow(self._context, {}, self._watcher, self._control))
        ending = asyncio.create_task(self._ending.wait())
        try:
            await asyncio.wait({going, ending}, return_when=asyncio.FIRST_COMPLETED)
            if going.done() or self._watcher.begun:
                with suppress(GraphDrained):
                    await going
        finally:
            self._control = None
            for task in (going, ending):
                task.cancel()
            await asyncio.wait({going, ending})


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
    pending = by_verdict(items, settings, context.owners, past=parked_events(state))
    if pending.context or pending.ignored or pending.ready(state, settings, now):
        return None
    if await approvals.answers(store, scope, state["parked"]):
        return None
    if own_sleep_cause(state, settings, now, pending):
        return None
    if hours_over(state, settings, now):
        return None
    if goals_parked(state):
        return "A question waits for a person (circadian status)."
    return why_idle(state, settings, now) or why_wait(state, settings, now)
