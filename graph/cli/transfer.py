"""`circadian export` and `circadian import`: a whole memory as JSON Lines."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from rich.progress import Progress as Bar
from rich.progress import TaskID
from rich.text import Text

from graph import transfer
from graph.cli.access import home_as_recorded, opened_without_running, opening
from graph.cli.console import Screen, counted, one_line
from graph.cli.options import Options
from graph.cli.waiting import telling_waits
from graph.handle import AsyncAgent
from memory import importing
from memory.errors import InputError
from memory.models.seam import OFFLINE
from memory.transfer import line_of

STANDARD = "-"
"""Stands for standard input or output."""


async def export(options: Options, file: Path | None) -> int:
    """Write the agent's memory to `file`, whole or not at all; without one, or for -, print it."""
    screen = Screen(json=options.json)
    async with opened_without_running(options) as agent:
        if file is None or str(file) == STANDARD:
            await _write(options, agent, sys.stdout)
            return 0
        number = await _to_file(options, agent, file)
    told = f"{counted(number, 'record')} exported to {one_line(str(file))}."
    screen.result({"file": str(file), "records": number}, Text(told))
    return 0


async def import_(options: Options, file: Path) -> int:
    """Take the memory in `file`, or for - that on standard input, into an empty agent."""
    screen = Screen(json=options.json)
    lines = _standard_input() if str(file) == STANDARD else transfer.JsonLines(file)
    # A line that is wrong must not leave a new data folder behind.
    await asyncio.to_thread(importing.check, lines)
    offline = replace(options, model=OFFLINE)
    async with opening(offline, mcp=False) as agent, telling_waits(options, screen):
        with _progress(screen) as progress:
            done = await transfer.import_memory(agent.context, lines, progress=progress)
    into = one_line(options.agent)
    told = f"{counted(done['records'], 'record')} imported into the agent {into}."
    if done["already"]:
        told = f"The agent {into} has this memory already: nothing was changed."
    screen.result(done, Text(told))
    return 0


async def _write(options: Options, agent: AsyncAgent, out: TextIO) -> int:
    """Write every line; how many records there are between the first and the last."""
    home = await asyncio.to_thread(home_as_recorded, options)
    try:
        embedder = home.embedder
    finally:
        await asyncio.to_thread(home.close)
    number = 0
    async for record in transfer.export_memory(
        agent.context, name=options.agent, embedder=embedder
    ):
        out.write(line_of(record) + "\n")
        number += 1
    out.flush()
    return number - 2


async def _to_file(options: Options, agent: AsyncAgent, file: Path) -> int:
    """Write beside `file` first: one that stands there is replaced by a whole one only."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with beside.open("x", encoding="utf-8") as out:
            number = await _write(options, agent, out)
            os.fsync(out.fileno())
        beside.replace(file)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from error
    finally:
        beside.unlink(missing_ok=True)
    return number


def _standard_input() -> list[str]:
    try:
        return sys.stdin.readlines()
    except UnicodeDecodeError:
        raise InputError("standard input is not UTF-8 text") from None


@contextmanager
def _progress(screen: Screen) -> Iterator[transfer.Progress]:
    """A bar on a terminal, for one part of the work after the other."""
    with Bar(console=screen.out, transient=True, disable=not screen.live) as bar:
        tasks: dict[str, TaskID] = {}

        def tell(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=of)
            bar.update(tasks[what], completed=done, total=of)

        yield tell
