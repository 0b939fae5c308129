"""The commands and their options. What they do stands in `commands` and beside it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from graph.cli.options import Options
from graph.cli.shared import COMMON, WITH_VALUE, Body, Json, carry_out

Question = Annotated[
    str | None,
    typer.Argument(
        metavar="[ID]",
        help="The question, or how its id begins; not needed where only one waits.",
        show_default=False,
    ),
]

app = typer.Typer(
    name="circadian",
    help="A long-running assistant: awake it acts, asleep it remembers.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def command(name: str | None = None, *, json: bool = True) -> Callable[[Body], Body]:
    """Register a command; it gets the options that all of them share as its first argument."""

    def register(body: Body) -> Body:
        def run(**given: Any) -> None:
            raise typer.Exit(carry_out(body, given))

        shared = {**COMMON, "json": Json} if json else COMMON
        own = list(inspect.signature(body, eval_str=True).parameters.values())[1:]
        parameters = [*own, *(_optional(key, kind) for key, kind in shared.items())]
        run.__doc__ = body.__doc__
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # a function takes any attribute
        app.command(name or body.__name__)(run)
        return body

    return register


def _optional(name: str, kind: Any) -> inspect.Parameter:
    default = False if kind is Json else None
    place = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, place, default=default, annotation=kind)


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


@command()
async def demo(options: Options) -> int:
    """Play the built-in story: three days, two nights, a restart."""
    from graph.cli import demo

    return await demo.demo(options)


@command(json=False)
def chat(options: Options) -> int:
    """Talk with the agent. Ctrl-D leaves."""
    from graph.cli import chat

    return chat.chat(options)


@command()
def send(
    options: Options,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message; - reads it.")],
    sender: Annotated[
        str | None, typer.Option("--from", metavar="NAME", help="Who says it [the owner].")
    ] = None,
    channel: Annotated[str | None, typer.Option(metavar="C", help="Where it is said.")] = None,
) -> Coroutine[Any, Any, int]:
    """Send a message and print the reply."""
    from graph.cli import commands

    return commands.send(options, commands.message_of(text), sender, channel)


@command()
async def replay(
    options: Options,
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl")],
    conversation: Annotated[
        bool, typer.Option("--conversation", help="Print what is said as it goes.")
    ] = False,
) -> int:
    """Replay a file of events and requests.

    What was handled before is skipped; the clock is that of the file.
    """
    from graph.cli import replaying

    return await replaying.replay_file(options, file, conversation=conversation)


@command()
async def tick(options: Options) -> int:
    """Take one step on the goals, or on what is pending."""
    from graph.cli import commands

    return await commands.request(options, "tick")


@command()
async def sleep(options: Options) -> int:
    """Go through a night and print its report."""
    from graph.cli import commands

    return await commands.sleep(options)


@command()
async def wake(options: Options) -> int:
    """Wake the agent."""
    from graph.cli import commands

    return await commands.request(options, "wake")


@command()
async def stop(options: Options) -> int:
    """Set the emergency stop: events wait until it is cleared."""
    from graph.cli import commands

    return await commands.request(options, "stop")


@command("clear-stop")
async def clear_stop(options: Options) -> int:
    """Clear the emergency stop."""
    from graph.cli import commands

    return await commands.request(options, "clear_stop")


@command()
async def approve(
    options: Options,
    question: Question = None,
    args: Annotated[
        str | None,
        typer.Option(
            "--args",
            "--edit",
            metavar="JSON",
            help="An object that takes the place of the arguments.",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Let a tool run that a question waits for, and go on."""
    from graph.cli import commands

    return await commands.approve(options, question, args)


@command()
async def refuse(
    options: Options,
    question: Question = None,
    reason: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Why; the model is told.", show_default=False),
    ] = None,
) -> int:
    """Answer a question with no, and go on."""
    from graph.cli import commands

    return await commands.refuse(options, question, reason)


@command()
async def status(
    options: Options,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also each part of the prompt.")
    ] = False,
) -> int:
    """Show the agent at a glance; also while it runs."""
    from graph.cli import commands

    return await commands.show_status(options, verbose=verbose)


@command()
async def retry(
    options: Options,
    event: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="This event alone.", show_default=False)
    ] = None,
) -> int:
    """Put events that were set aside back into the inbox."""
    from graph.cli import commands

    return await commands.retry(options, event)


@command()
async def recall(
    options: Options,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")],
    limit: Annotated[
        int, typer.Option("-k", metavar="N", min=1, max=1000, help="At most so many.")
    ] = 10,
) -> int:
    """Search long-term memory."""
    from graph.cli import commands

    return await commands.show_recall(options, query, limit)


@command()
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
    """Show the user's prompt, its own one and the versions."""
    from graph.cli import prompt

    return await prompt.prompt(options, version)


@command()
async def doctor(
    options: Options,
    call: Annotated[
        bool, typer.Option("--call", help="Also call model and embedder once.")
    ] = False,
) -> int:
    """Check the installation, the data folder and the model."""
    from graph.cli import doctor

    return await doctor.doctor(options, call=call)


def shared_options_behind(args: Sequence[str]) -> list[str]:
    """`args` with the shared options that stand before the command's name moved behind it."""
    front, rest = [], list(args)
    while rest and (rest[0] == "--json" or rest[0].partition("=")[0] in WITH_VALUE):
        taken = 2 if rest[0] in WITH_VALUE else 1
        front += rest[:taken]
        rest = rest[taken:]
    return [*rest[:1], *front, *rest[1:]]
