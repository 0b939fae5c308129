"""The commands and their options. What they do stands in `commands` and beside it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from graph.cli.app import interrupted
from graph.cli.options import Options
from memory.errors import InputError
from memory.settings import Deployment

Data = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The data folder [CIRCADIAN_DATA, else ./.circadian].",
        show_default=False,
    ),
]
Agent = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The agent's name [CIRCADIAN_AGENT, else default].", show_default=False
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="offline, openai:<model>, <provider>:<model>.", show_default=False
    ),
]
Embedder = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="As --model; fixed once the data folder is made.", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

COMMON: dict[str, Any] = {"data": Data, "agent": Agent, "model": Model, "embedder": Embedder}
_WITH_VALUE = {f"--{name}" for name in COMMON}

app = typer.Typer(
    name="circadian",
    help="A long-running assistant: awake it acts, asleep it remembers.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

Body = Callable[..., Coroutine[Any, Any, int]] | Callable[..., int]


def command(name: str | None = None, *, json: bool = True) -> Callable[[Body], Body]:
    """Register a command; it gets the options that all of them share as its first argument."""

    def register(body: Body) -> Body:
        def run(**given: Any) -> None:
            raise typer.Exit(_run(body, given))

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


def _run(body: Body, given: dict[str, Any]) -> int:
    """Carry the command out. Typer would end a Ctrl-C without a word."""
    try:
        from graph.cli.logs import set_up

        deployment = _deployment()
        set_up(deployment)
        shared = {key: given.pop(key, None) for key in (*COMMON, "json")}
        options = Options.of(deployment, **{**shared, "json": bool(shared["json"])})
        result = body(options, **given)
        return result if isinstance(result, int) else asyncio.run(result)
    except KeyboardInterrupt:
        return interrupted()


def _deployment() -> Deployment:
    try:
        return Deployment()
    except ValidationError as error:
        first = error.errors()[0]
        variable = "CIRCADIAN_" + "_".join(str(part) for part in first["loc"]).upper()
        raise InputError(f"{variable}: {first['msg']}") from None


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
async def status(options: Options) -> int:
    """Show the agent at a glance; also while it runs."""
    from graph.cli import commands

    return await commands.show_status(options)


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
    while rest and (rest[0] == "--json" or rest[0].partition("=")[0] in _WITH_VALUE):
        taken = 2 if rest[0] in _WITH_VALUE else 1
        front += rest[:taken]
        rest = rest[taken:]
    return [*rest[:1], *front, *rest[1:]]
