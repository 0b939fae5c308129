"""Telling a person whom a command waits for."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from graph.cli.access import holder, home_as_recorded
from graph.cli.console import Screen
from graph.cli.options import Options
from memory.errors import CircadianError

PATIENCE = 1.0
"""Seconds before anything is said."""


@asynccontextmanager
async def telling_waits(options: Options, screen: Screen) -> AsyncIterator[None]:
    """While one run goes on: say it once when another process's lock keeps it from beginning."""
    if screen.json and not screen.err.is_terminal:
        yield
        return
    task = asyncio.create_task(_tell(options, screen))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _tell(options: Options, screen: Screen) -> None:
    found = await _held_by(options)
    if found is not None:
        screen.note(f"waiting for {found}, up to {options.lock_timeout:g} s")


async def _held_by(options: Options) -> str | None:
    """The other process that runs the agent, once there is one; None where it cannot be told."""
    ours = f"process {os.getpid()} (circadian)"
    found: str | None = None
    with suppress(CircadianError):  # the run itself tells what is wrong
        home = await asyncio.to_thread(home_as_recorded, options)
        try:
            while found is None:
                await asyncio.sleep(PATIENCE)
                found = await holder(home, options.agent)
        finally:
            await asyncio.to_thread(home.close)
    return None if found == ours else found
