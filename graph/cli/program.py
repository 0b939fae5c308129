"""The program `circadian`: its commands, of which only the one that is called is imported."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from graph.cli.exits import interrupted
from graph.cli.options import LOADED, WITH_VALUE


class CommandEntry(NamedTuple):
    """A command: its module in `graph.cli.commands`, and its line in `circadian --help`."""

    module: str
    help: str


COMMANDS = {
    "demo": CommandEntry("demo", "Play the built-in story: three days, two nights, a restart."),
    "chat": CommandEntry("chat", "Talk with the agent. Ctrl-D leaves."),
    "send": CommandEntry("requests", "Send a message and print the reply."),
    "replay": CommandEntry("replay", "Replay a file of events and requests."),
    "run": CommandEntry("run", "Run on its own: answer, work on goals, sleep at its hour."),
    "tick": CommandEntry("requests", "Take one step on the goals, or on what is pending."),
    "sleep": CommandEntry("requests", "Go through a night and print its report."),
    "wake": CommandEntry("requests", "Wake the agent."),
    "stop": CommandEntry("requests", "Set the emergency stop: events wait until it is cleared."),
    "clear-stop": CommandEntry("requests", "Clear the emergency stop."),
    "approve": CommandEntry("chat", "Let a tool run that a question waits for, and go on."),
    "refuse": CommandEntry("chat", "Answer a question with no, and go on."),
    "retry": CommandEntry("requests", "Put events that were set aside back into the inbox."),
    "recall": CommandEntry("memory", "Search long-term memory, or look through it."),
    "correct": CommandEntry("memory", "Supersede a fact with what is true."),
    "forget": CommandEntry("memory", "Erase a person, a thing or one fact, and what came of it."),
    "export": CommandEntry("memory", "Write the agent's whole memory as JSON Lines."),
    "import": CommandEntry("memory", "Take in an exported memory."),
    "reindex": CommandEntry(
        "memory", "Embed what has no vector yet; with another --embedder, all."
    ),
    "nights": CommandEntry("requests", "List the nights, oldest first."),
    "night": CommandEntry("requests", "Show what a night did, step by step."),
    "undo": CommandEntry("requests", "Restore memory as it was before a night."),
    "status": CommandEntry("status", "Show the agent at a glance, even while it runs."),
    "log": CommandEntry("status", "Show what was done, by whom and why."),
    "prompt": CommandEntry("status", "Show the user's prompt, the agent's own and its versions."),
    "doctor": CommandEntry("doctor", "Check the installation, the data folder and the model."),
    "schedule": CommandEntry("server", "Let an agent tick and sleep on a server by itself."),
    "token": CommandEntry("server", "Make a signed token for a user of a server."),
}
"""Every command, in the order of `--help`. A test compares the lines with the docstrings."""


class LazyGroup(TyperGroup):
    """Knows every command by name and help line; imports a command when it is called."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = {name: TyperCommand(name, help=COMMANDS[name].help) for name in COMMANDS}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Replace the command's stand-in by the command itself."""
        name, _, rest = super().resolve_command(ctx, args)
        assert name is not None
        return name, load(name), rest


def load(name: str) -> TyperCommand:
    """Import the command `name`."""
    try:
        import_module(f"graph.cli.commands.{COMMANDS[name].module}")
    except KeyboardInterrupt:  # Typer would end it without a word
        raise typer.Exit(interrupted()) from None
    return LOADED[name]


program = typer.Typer(
    cls=LazyGroup,
    name="circadian",
    help="A long-running assistant: awake it acts, asleep it remembers.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@program.callback(invoke_without_command=True)
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


def shared_options_last(args: Sequence[str]) -> list[str]:
    """Move the shared options that precede the command's name behind it, where Typer knows them."""
    front, rest = [], list(args)
    while rest and (rest[0] == "--json" or rest[0].partition("=")[0] in WITH_VALUE):
        taken = 2 if rest[0] in WITH_VALUE else 1
        front += rest[:taken]
        rest = rest[taken:]
    return [*rest[:1], *front, *rest[1:]]
