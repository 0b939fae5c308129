"""The commands on long-term memory: see it, mend it, erase it, take it elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graph.cli.options import Options
from graph.cli.parser.registration import command, group

theme = group()

FACT_ID = "A fact's id, or how it begins (`circadian recall --all` shows it)."


@command(theme)
async def recall(
    options: Options,
    query: Annotated[
        str | None,
        typer.Argument(metavar="QUERY", help="What to look for.", show_default=False),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "-k",
            metavar="N",
            min=1,
            max=1_000_000,
            help="At most so many [10; with --all, every one].",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="All there is, newest first; with QUERY, what has its words."),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also what each score is made of.")
    ] = False,
    superseded: Annotated[
        bool, typer.Option("--superseded", help="Also what no longer holds.")
    ] = False,
) -> int:
    """Search long-term memory, or look through it."""
    from graph.cli import recall

    asked = recall.Asked(query, limit, explain=explain, superseded=superseded)
    return await recall.recall(options, asked, everything=everything)


@command(theme)
async def correct(
    options: Options,
    fact: Annotated[str, typer.Argument(metavar="FACT", help=FACT_ID)],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is true.")],
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="NAME", help="Who says so [the owner].", show_default=False),
    ] = None,
) -> int:
    """Supersede a fact with what is true."""
    from graph.cli import correct

    return await correct.correct(options, fact, text, by)


@command(theme)
async def forget(
    options: Options,
    entity: Annotated[
        str | None,
        typer.Argument(metavar="ENTITY", help="A person, place or thing.", show_default=False),
    ] = None,
    fact: Annotated[
        str | None,
        typer.Option("--fact", metavar="ID", help=FACT_ID, show_default=False),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; nothing is asked.")] = False,
) -> int:
    """Erase a person or a thing, or one fact, and what came of it."""
    from graph.cli import forget

    return await forget.forget(options, entity, fact, yes)


@command(theme, "export")
async def export_memory(
    options: Options,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Else it is printed.", show_default=False),
    ] = None,
) -> int:
    """Write the agent's whole memory as JSON Lines."""
    from graph.cli import transfer

    return await transfer.export(options, file)


@command(theme, "import")
async def import_memory(
    options: Options,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Made by export; - reads it.")],
) -> int:
    """Take in a memory that was exported."""
    from graph.cli import transfer

    return await transfer.import_(options, file)


@command(theme)
async def reindex(options: Options) -> int:
    """Embed what has no vector yet; with another --embedder, all."""
    from graph.cli import reindex

    return await reindex.reindex(options)


NIGHT_ID = "A night's id, how it begins, or last (`circadian nights` lists them)."


@command(theme)
async def nights(options: Options) -> int:
    """List the nights, oldest first."""
    from graph.cli import nights

    return await nights.nights(options)


@command(theme)
async def night(
    options: Options,
    night_id: Annotated[str, typer.Argument(metavar="ID", help=NIGHT_ID)],
    discard: Annotated[
        bool,
        typer.Option("--discard", help="Let a dry run, or a night that was held back, go."),
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="Lists at full length.")] = False,
) -> int:
    """Show what a night did, step by step."""
    from graph.cli import nights

    return await nights.night(options, night_id, discard=discard, everything=everything)


@command(theme)
async def undo(
    options: Options,
    night_id: Annotated[str, typer.Argument(metavar="NIGHT", help=NIGHT_ID)],
) -> int:
    """Restore memory as it was before a night."""
    from graph.cli import nights

    return await nights.undo(options, night_id)
