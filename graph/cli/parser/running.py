"""The commands that run the agent, or say what it is to do."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from graph.cli.options import Options
from graph.cli.parser.registration import command, group

theme = group()

Question = Annotated[
    str | None,
    typer.Argument(
        metavar="ID",
        help="The question, or how its id begins; not needed where only one waits.",
        show_default=False,
    ),
]


@command(theme)
async def demo(options: Options) -> int:
    """Play the built-in story: three days, two nights, a restart."""
    from graph.cli import demo

    return await demo.demo(options)


@command(theme, json=False)
def chat(options: Options) -> int:
    """Talk with the agent. Ctrl-D leaves."""
    from graph.cli import chat

    return chat.chat(options)


@command(theme)
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


@command(theme)
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


@command(theme)
async def run(
    options: Options,
    tick_rate: Annotated[
        float | None, typer.Option(metavar="S", help="Seconds between two looks [5].")
    ] = None,
    tick_rate_sleep: Annotated[
        float | None, typer.Option(metavar="S", help="The same while it is asleep [60].")
    ] = None,
    sleep_at: Annotated[
        int | None, typer.Option(metavar="HOUR", help="Sleep at this local hour, 0-23 [never].")
    ] = None,
    sleep_hours: Annotated[
        float | None, typer.Option(metavar="N", help="Wake after so many hours [4].")
    ] = None,
    time_zone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Of the hour: Europe/Berlin [UTC].")
    ] = None,
    fatigue: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Sleep when the history fills this share, 0-1 [never]."),
    ] = None,
) -> int:
    """Go on by itself: answer, work on goals, sleep at its hour.

    Ctrl-C or SIGTERM ends it after the step at hand, a second one at once; the next run goes on
    from there. --json prints a line for each thing that happens.
    """
    from graph.cli import run

    given = {
        "tick_rate": tick_rate,
        "tick_rate_sleep": tick_rate_sleep,
        "sleep_start_hour": sleep_at,
        "sleep_duration_hours": sleep_hours,
        "time_zone": time_zone,
        "fatigue_threshold": fatigue,
    }
    return await run.run(options, run.settings_given(**given))


@command(theme)
async def tick(options: Options) -> int:
    """Take one step on the goals, or on what is pending."""
    from graph.cli import commands

    return await commands.request(options, "tick")


@command(theme)
async def sleep(
    options: Options,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Apply nothing; print what it would change.")
    ] = False,
    apply: Annotated[
        str | None,
        typer.Option(
            metavar="NIGHT",
            help="Make a dry run, or a night that was held back, so.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Lists at full length.")] = False,
) -> int:
    """Go through a night and print its report."""
    from graph.cli import commands, nights
    from memory.errors import InputError

    if dry_run and apply is not None:
        raise InputError("--dry-run applies nothing, and --apply does: leave one out")
    if apply is not None:
        return await nights.apply(options, apply, everything=everything)
    if dry_run:
        return await nights.dry_run(options, everything=everything)
    return await commands.sleep(options, everything=everything)


@command(theme)
async def wake(options: Options) -> int:
    """Wake the agent."""
    from graph.cli import commands

    return await commands.request(options, "wake")


@command(theme)
async def stop(options: Options) -> int:
    """Set the emergency stop: events wait until it is cleared."""
    from graph.cli import commands

    return await commands.request(options, "stop")


@command(theme, "clear-stop")
async def clear_stop(options: Options) -> int:
    """Clear the emergency stop."""
    from graph.cli import commands

    return await commands.request(options, "clear_stop")


@command(theme)
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


@command(theme)
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


@command(theme)
async def retry(
    options: Options,
    event: Annotated[
        str | None, typer.Argument(metavar="ID", help="This event alone.", show_default=False)
    ] = None,
) -> int:
    """Put events that were set aside back into the inbox."""
    from graph.cli import commands

    return await commands.retry(options, event)
