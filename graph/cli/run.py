"""`circadian run`: the agent goes on by itself until it is told to end."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from graph.cli.access import say_model
from graph.cli.app import INTERRUPTED
from graph.cli.console import Screen
from graph.cli.options import Options
from graph.cli.watching import Lines, Watch
from graph.night_names import names_of
from graph.opening import open_agent
from graph.scheduler import Scheduler
from memory.errors import InputError
from memory.models.seam import model_name
from memory.resources import utc_now
from memory.schedule import hours_named, next_start
from memory.settings import Settings

SIGNALS = (signal.SIGTERM, signal.SIGINT)
PATIENCE = 3.0
"""Seconds after the second signal in which threads may end by themselves."""
OPTIONS = {
    "tick_rate": "--tick-rate",
    "tick_rate_sleep": "--tick-rate-sleep",
    "sleep_start_hour": "--sleep-at",
    "sleep_duration_hours": "--sleep-hours",
    "time_zone": "--time-zone",
    "fatigue_threshold": "--fatigue",
}
"""Settings that its options give."""


def settings_given(**given: Any) -> Settings:
    """The settings as the options say; an hour switches the schedule on.

    Raises:
        InputError: an option's value is out of range, or a schedule's option stands without hour.
    """
    said = {key: value for key, value in given.items() if value is not None}
    if "sleep_duration_hours" in said and "sleep_start_hour" not in said:
        raise InputError("--sleep-hours says how long; give --sleep-at HOUR too")
    if "sleep_start_hour" in said:
        said["sleep_schedule_enabled"] = True
    try:
        return Settings.model_validate(said)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            f"{OPTIONS[str(first['loc'][0])]}: {first['msg'].removeprefix('Value error, ')}"
        ) from None


async def run(options: Options, settings: Settings) -> int:
    """Tick, answer and sleep until a signal. Status 0; 130 where a second signal broke it off."""
    screen = Screen(json=options.json)
    opening = open_agent(
        options.data, options.agent, options.model, options.embedder, settings=settings
    )
    async with opening as agent:
        say_model(screen, agent)
        clock = agent.resources.clock
        names = partial(names_of, agent.context)
        watcher = Lines(screen, clock) if screen.json else Watch(screen, settings, clock, names)
        watcher.started(options.agent, model_name(agent.resources.chat_model), _when(settings))
        with watcher:
            return await _until_told(Scheduler(agent.context, watcher), watcher)


async def _until_told(scheduler: Scheduler, watcher: Lines | Watch) -> int:
    task = asyncio.ensure_future(scheduler.run())
    with _signals(scheduler, task, watcher):
        await asyncio.wait({task})
        at_once = task.cancelled()
        watcher.ended(at_once=at_once)
        if not at_once:
            task.result()
        return INTERRUPTED if at_once else 0


@contextmanager
def _signals(
    scheduler: Scheduler, task: asyncio.Future[None], watcher: Lines | Watch
) -> Iterator[None]:
    """The first signal ends it after the step at hand, a second one at once."""
    loop, told = asyncio.get_running_loop(), 0

    def tell() -> None:
        nonlocal told
        told += 1
        if told == 1:
            watcher.ending()
            scheduler.end()
        else:
            task.cancel()
            # A model or tool in a thread cannot be cancelled, and would be waited for.
            last = threading.Timer(PATIENCE, os._exit, (INTERRUPTED,))
            last.daemon = True
            last.start()

    for one in SIGNALS:
        loop.add_signal_handler(one, tell)
    try:
        yield
    finally:
        for one in SIGNALS if told < 2 else ():
            loop.remove_signal_handler(one)


def _when(settings: Settings) -> str:
    """How often, and when it sleeps, in a sentence."""
    pace = f"Looks every {settings.tick_rate:g} s, asleep every {settings.tick_rate_sleep:g} s"
    if not settings.sleep_schedule_enabled:
        return f"{pace}; it has no hours of sleep"
    zone = ZoneInfo(settings.time_zone)
    next_ = next_start(utc_now(), settings).astimezone(zone)
    return f"{pace}; sleeps at {hours_named(settings)}; next {next_:%A, %H:%M}"
