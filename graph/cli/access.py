"""How a command opens its agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from graph.cli.options import Options
from graph.handle import AsyncAgent
from graph.opening import open_agent
from memory.errors import BusyError, FolderError
from memory.lock import AgentLock
from memory.models.seam import OFFLINE
from memory.resources import utc_now
from memory.scope import LOCAL_USER, thread_id

HEAD = "folder.json"
"""The file that makes a folder a data folder (`memory.folder`)."""


def opening(
    options: Options, *, clock: Callable[[], datetime] = utc_now, mcp: bool = True
) -> open_agent:
    """The agent that `options` name, to be opened; makes the data folder where there is none."""
    return open_agent(
        options.folder, options.agent, options.model, options.embedder, clock=clock, mcp=mcp
    )


@asynccontextmanager
async def opened_without_running(options: Options) -> AsyncIterator[AsyncAgent]:
    """The agent, not to be run: waits for nobody, needs no model, makes no data folder.

    Raises:
        FolderError: there is no data folder, or it cannot be used.
    """
    if missing := missing_folder(options):
        raise missing
    async with opening(replace(options, model=OFFLINE), mcp=False) as agent:
        yield agent


def missing_folder(options: Options) -> FolderError | None:
    """That there is no data folder, as an error to raise; None where there is one."""
    if (options.folder / HEAD).exists():
        return None
    return FolderError(f"no data folder at {options.folder}; `circadian send` makes one")


async def holder(locks_dir: Path, agent: str) -> str | None:
    """The process that runs the agent now, as its lock names it; None where nobody does."""
    try:
        async with AgentLock(locks_dir, thread_id(LOCAL_USER, agent), timeout=0):
            return None
    except BusyError as error:
        return str(error).partition(" in use by ")[2].partition(": wait")[0]
