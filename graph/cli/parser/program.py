"""The program `circadian`: every command, in the order in which its help lists them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from graph.cli.parser import looking, memories, running, serving
from graph.cli.parser.registration import group
from graph.cli.shared import WITH_VALUE

app = group(
    name="circadian",
    help="A long-running assistant: awake it acts, asleep it remembers.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for theme in (running.theme, memories.theme, looking.theme, serving.theme):
    app.add_typer(theme)


@app.callback(invoke_without_command=True)
def circadian(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """A long-running assistant: awake it acts, asleep it remembers."""
    if version:
        from importlib.metadata import version as version_of

        typer.echo(f"circadian {version_of('circadian-agent')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def shared_options_behind(args: Sequence[str]) -> list[str]:
    """`args` with the shared options that stand before the command's name moved behind it."""
    front, rest = [], list(args)
    while rest and (rest[0] == "--json" or rest[0].partition("=")[0] in WITH_VALUE):
        taken = 2 if rest[0] in WITH_VALUE else 1
        front += rest[:taken]
        rest = rest[taken:]
    return [*rest[:1], *front, *rest[1:]]
