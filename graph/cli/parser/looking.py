"""The commands that show what there is, and whether it is well."""

from __future__ import annotations

from typing import Annotated

import typer

from graph.cli.options import Options
from graph.cli.parser.registration import command, group

theme = group()


@command(theme)
async def status(
    options: Options,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also each part of the prompt.")
    ] = False,
) -> int:
    """Show the agent at a glance; also while it runs."""
    from graph.cli import commands

    return await commands.show_status(options, verbose=verbose)


@command(theme)
async def log(
    options: Options,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="Not before: a date or time (UTC), 30m, 2h, 3d, today, yesterday.",
            show_default=False,
        ),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            "-n",
            metavar="N",
            min=1,
            max=1_000_000,
            help="The newest N [50; with --since, all].",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Show what was done, by whom and why."""
    from graph.cli import log

    return await log.log(options, since, most)


@command(theme)
async def prompt(
    options: Options,
    version: Annotated[
        int | None,
        typer.Option(
            "--rollback", metavar="N", min=0, help="Put version N's text in force again; 0: empty."
        ),
    ] = None,
) -> int:
    """Show the user's prompt, its own one and the versions."""
    from graph.cli import prompt

    return await prompt.prompt(options, version)


@command(theme)
async def doctor(
    options: Options,
    call: Annotated[
        bool, typer.Option("--call", help="Also call model and embedder once.")
    ] = False,
) -> int:
    """Check the installation, the data folder and the model."""
    from graph.cli import doctor

    return await doctor.doctor(options, call=call)
