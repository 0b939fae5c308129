"""How a command opens its agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime

from graph.cli.options import Options
from graph.handle import AsyncAgent
from graph.opening import open_agent
from memory.errors import FolderError
from memory.models.seam import OFFLINE
from memory.resources import utc_now

HEAD = "folder.json"
"""The file that makes a folder a data folder (`memory.folder`)."""


def opening(options: Options, *, clock: Callable[[], datetime] = utc_now) -> open_agent:
    """The agent that `options` name, to be opened; makes the data folder where there is none."""
    return open_agent(options.folder, options.agent, options.model, options.embedder, clock=clock)


@asynccontextmanager
async def opened_for_reading(options: Options) -> AsyncIterator[AsyncAgent]:
    """The agent, to be read only: waits for nobody, needs no model, makes no data folder.

    Raises:
        FolderError: there is no data folder, or it cannot be used.
    """
    if missing := missing_folder(options):
        raise missing
    async with opening(replace(options, model=OFFLINE)) as agent:
        yield agent


def missing_folder(options: Options) -> FolderError | None:
    """That there is no data folder, as an error to raise; None where there is one."""
    if (options.folder / HEAD).exists():
        return None
    return FolderError(f"no data folder at {options.folder}; `circadian send` makes one")
