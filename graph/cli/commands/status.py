"""`circadian status`."""

from __future__ import annotations

from typing import Annotated

import typer

from graph.cli.access import Session, reading
from graph.cli.options import Options, command
from graph.cli.turn import why_stopped
from graph.cli.views import status_view
from graph.status import status as status_of
from memory import inbox


@command()
async def status(
    options: Options,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also each part of the prompt.")
    ] = False,
) -> int:
    """Show the agent at a glance, even while it runs."""
    async with reading(options, announce=True) as session:
        await print_status(session, verbose=verbose)
    return 0


async def print_status(session: Session, *, verbose: bool = False) -> None:
    """Print the agent at a glance; `verbose`: with each part of the prompt."""
    options, screen, agent = session
    now, aside = await status_of(agent), await inbox.set_aside(agent.store, agent.scope)
    stop = await why_stopped(agent) if now["emergency_stop"] else None
    screen.result(now, status_view(now, options.agent, aside, stop=stop, verbose=verbose))
