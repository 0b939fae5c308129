"""`circadian status` and `circadian prompt`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from graph.cli.access import Session, reading
from graph.cli.options import Options, command
from graph.cli.turn import why_stopped
from graph.cli.views import clean, moment, one_line, ruled_table, status_view
from graph.use_cases import prompt_of
from graph.use_cases import status as status_of
from memory.events import inbox
from memory.records import AssistantPrompt
from memory.text import shortened

FIRST_LINE = 60
"""Characters of a prompt version's text that its row shows."""


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
    now, aside = await status_of(agent.context), await inbox.set_aside(agent.store, agent.scope)
    stop = await why_stopped(agent) if now["emergency_stop"] else None
    screen.result(now, status_view(now, options.agent, aside, stop=stop, verbose=verbose))


@command()
async def prompt(
    options: Options,
    version: Annotated[
        int | None,
        typer.Option(
            "--rollback", metavar="N", min=0, help="Put version N's text in force again; 0: empty."
        ),
    ] = None,
) -> int:
    """Show the user's prompt, the agent's own and its versions."""
    async with reading(options) as session:
        _, screen, agent = session
        before = own = await prompt_of(agent.context)
        if version is not None:
            async with session.waiting():
                own = await agent.rollback_prompt(version)
            screen.show(_went_back(before, own, version), Text(""))
        user = agent.settings.user_prompt
    screen.result({"user_prompt": user, **own}, _prompt_view(user, own))
    return 0


def _prompt_view(user: str, own: AssistantPrompt) -> RenderableType:
    """The user's prompt, the assistant's own prompt, and its versions, newest first."""
    version = f"  version {own['version']}"
    parts: list[RenderableType] = [
        Text.assemble(("The user's prompt", "bold"), ("  setting user_prompt", "dim")),
        _text(user),
        Text(""),
        Text.assemble(("The assistant's own prompt", "bold"), (version, "dim")),
        _text(own["text"]),
    ]
    if own["versions"]:
        parts += [Text(""), _versions(own)]
    return Group(*parts)


def _text(text: str) -> RenderableType:
    shown = Text(clean(text)) if text else Text("empty", style="dim")
    return Padding(shown, (0, 0, 0, 2))


def _versions(own: AssistantPrompt) -> Table:
    table = ruled_table(right=("version",))
    for name in ("when", "by", "why", "text"):
        table.add_column(name, no_wrap=name == "when")
    table.columns[0].no_wrap = True
    for version in reversed(own["versions"]):
        first = one_line(version["text"].partition("\n")[0])
        table.add_row(
            str(version["version"]),
            moment(version["at"]),
            Text(one_line(version["by"])),
            Text(one_line(version["reason"])),
            Text(shortened(first, FIRST_LINE) or "empty"),
            style="bold" if version["version"] == own["version"] else "",
        )
    return table


def _went_back(before: AssistantPrompt, now: AssistantPrompt, version: int) -> Text:
    if now["version"] == before["version"]:
        return Text(f"The text of version {version} is in force already: nothing was changed.")
    return Text(f"The text of version {version} is in force again, as version {now['version']}.")
