"""Telling a person whom a command waits for."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from graph.cli.access import holder
from graph.cli.console import Screen
from graph.cli.options import Options
from memory.folder import open_folder

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
    locks_dir = open_folder(options.folder).locks_dir
    ours = f"process {os.getpid()} (circadian)"
    found: str | None = None
    while found is None:
        await asyncio.sleep(PATIENCE)
        found = await holder(locks_dir, options.agent)
    if found != ours:
        screen.note(f"waiting for {found}, up to {options.lock_timeout:g} s")
