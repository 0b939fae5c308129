"""The commands about a server: who may use it, and when its agents run of their own accord."""

from __future__ import annotations

from typing import Annotated

import typer

from graph.cli.options import Options
from graph.cli.parser.registration import command, group

theme = group()


@command(theme, opens=False)
async def schedule(
    options: Options,
    url: Annotated[str, typer.Option(metavar="URL", help="The server.", show_default=False)],
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            envvar="CIRCADIAN_TOKEN",
            help="Whose agent it is [CIRCADIAN_TOKEN].",
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        int, typer.Option(metavar="MINUTES", help="Minutes between two ticks; 0: none.")
    ] = 10,
    at: Annotated[
        str, typer.Option(metavar="HH:MM", help="When it falls asleep; empty: never.")
    ] = "02:00",
    zone: Annotated[
        str, typer.Option("--zone", metavar="ZONE", help="Its time zone, such as Europe/Berlin.")
    ] = "UTC",
    show: Annotated[bool, typer.Option("--list", help="Show what is installed.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove what is installed.")] = False,
) -> int:
    """Let an agent tick and sleep by itself on a server."""
    from graph.cli import schedule

    wanted = schedule.Wanted(url, token, every, at, zone)
    return await schedule.schedule(options, wanted, show=show, remove=remove)


@command(theme, opens=False)
def token(
    options: Options,
    user: Annotated[str, typer.Argument(metavar="USER", help="Whom the token is for.")],
    days: Annotated[float, typer.Option(metavar="N", help="Days that it holds.")] = 30.0,
    operator: Annotated[
        bool, typer.Option("--operator", help="May see the server's metrics and health.")
    ] = False,
) -> int:
    """Make a signed token for a user of a server."""
    from graph.cli import token

    return token.token(options, user, days=days, operator=operator)
