"""`circadian send`."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from typing import Annotated, Any

import typer

from graph.cli.access import running
from graph.cli.options import Options, command
from graph.cli.turn import converse, event_of, show_question
from memory.errors import InputError


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
    # Read before anything runs: Ctrl-C ends a blocking read only outside of the event loop.
    return _send(options, _message(text), sender, channel)


def _message(text: str) -> str:
    """`text`, or standard input for `-`."""
    if text != "-":
        return text
    try:
        return sys.stdin.read().removesuffix("\n")
    except UnicodeDecodeError:
        raise InputError("standard input is not UTF-8 text") from None


async def _send(options: Options, text: str, sender: str | None, channel: str | None) -> int:
    if not text.strip():
        raise InputError("the message is empty")
    async with running(options) as session:
        turn = await converse(session, event_of(text, sender, channel))
        if turn.parked is not None:
            show_question(session, turn.parked["question"])
        return turn.status
