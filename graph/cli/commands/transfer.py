"""`circadian export` and `circadian import`: a whole memory as JSON Lines."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.text import Text

from graph.cli.access import Session, home_as_recorded, opening, reading
from graph.cli.options import Options, command
from graph.cli.views import Screen, counted, one_line
from graph.use_cases import transfer
from memory.errors import InputError
from memory.models import OFFLINE
from memory.transfer import importing, line_of

STANDARD = "-"
"""Stands for standard input or output."""


@command()
async def export(
    options: Options,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Else it is printed.")] = None,
) -> int:
    """Write the agent's whole memory as JSON Lines."""
    async with reading(options) as session:
        if file is None or str(file) == STANDARD:
            await _write(session, sys.stdout)
            return 0
        number = await _write_file(session, file)
    told = f"{counted(number, 'record')} exported to {one_line(str(file))}."
    session.screen.result({"file": str(file), "records": number}, Text(told))
    return 0


@command("import")
async def import_(
    options: Options,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Made by export; - reads it.")],
) -> int:
    """Take in an exported memory."""
    lines = _standard_input() if str(file) == STANDARD else transfer.JsonLines(file)
    # Before the agent is opened: a wrong line must not leave a new data folder behind.
    await asyncio.to_thread(importing.check, lines)
    screen = Screen(json=options.json)
    async with opening(replace(options, model=OFFLINE), mcp=False) as agent:
        session = Session(options, screen, agent)
        with screen.progress() as progress:
            async with session.waiting():
                done = await transfer.import_memory(agent.context, lines, progress=progress)
    into = one_line(options.agent)
    told = f"{counted(done['records'], 'record')} imported into the agent {into}."
    if done["already"]:
        told = f"The agent {into} has this memory already: nothing was changed."
    screen.result(done, Text(told))
    return 0


async def _write(session: Session, out: TextIO) -> int:
    """Write every line; returns the number of records between the first line and the last."""
    options, _, agent = session
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


async def _write_file(session: Session, file: Path) -> int:
    """Write beside `file`, then replace it: only a whole export takes its place."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with beside.open("x", encoding="utf-8") as out:
            number = await _write(session, out)
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
