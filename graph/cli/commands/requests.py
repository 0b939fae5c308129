"""`circadian send`, `tick`, `wake`, `stop`, `clear-stop` and `retry`."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from graph.cli.access import Session, reading, running
from graph.cli.listener import LOOKING_BACK
from graph.cli.options import Options, command
from graph.cli.turn import converse, event_of, show_question, talked, unanswered, why_stopped
from graph.cli.views import cost_line, mode_line, night_view, one_line, sent_line, stop_line
from graph.use_cases import status
from memory.errors import InputError
from memory.events import inbox
from memory.records import Report, TickReport
from memory.state import Request


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


@command()
async def tick(options: Options) -> int:
    """Take one step on the goals, or on what is pending."""
    return await _request(options, "tick")


@command()
async def wake(options: Options) -> int:
    """Wake the agent."""
    return await _request(options, "wake")


@command()
async def stop(options: Options) -> int:
    """Set the emergency stop: events wait until it is cleared."""
    return await _request(options, "stop")


@command("clear-stop")
async def clear_stop(options: Options) -> int:
    """Clear the emergency stop."""
    return await _request(options, "clear_stop")


@command()
async def retry(
    options: Options,
    event: Annotated[str | None, typer.Argument(metavar="ID", help="This event alone.")] = None,
) -> int:
    """Put events that were set aside back into the inbox."""
    async with reading(options) as (_, screen, agent):
        ids = await inbox.retry(agent.store, agent.scope, event)
    lines = [Text(f"back in the inbox: {one_line(id_)}") for id_ in ids]
    screen.result({"retried": ids}, *(lines or [Text("Nothing is set aside.")]))
    return 0


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


async def _request(options: Options, what: Request) -> int:
    async with running(options, announce=what == "tick") as session:
        report = await talked(session, {"request": what})
        now = await status(session.agent.context)
        mode = {"mode": now["mode"], "phase": now["phase"]}
        session.screen.result({**mode, "report": report}, *_done(report, now))
        await show_questions(session, report)
        if now["emergency_stop"] and report["ticks"]:
            session.screen.problem(stop_line(await why_stopped(session.agent) or ""))
            return 1
        return report_failures(session, report)


async def show_questions(session: Session, report: Report) -> None:
    """Print the questions that a run ended with."""
    for parked in await unanswered(session.agent):
        if parked["question"] in report["questions"]:
            show_question(session, parked["question"])


def report_failures(session: Session, report: Report) -> int:
    """Print one line on all that failed in a run; returns the exit status."""
    if not report["failures"]:
        return 0
    session.screen.problem("; ".join(failure["error"] for failure in report["failures"]))
    return 1


def _done(report: Report, now: dict[str, Any]) -> list[RenderableType]:
    """What a request did, for people."""
    changes = [change for change in report["mode_changes"] if change["why"] != "request"]
    lines: list[RenderableType] = [*map(Text, report["notes"]), *map(mode_line, changes)]
    for tick_report in report["ticks"]:
        lines += [*map(sent_line, tick_report["sent"]), _tick_line(tick_report)]
    if report["night"] is not None:
        lines.append(night_view(report["night"]))
    stopped = ", emergency stop" if now["emergency_stop"] else ""
    phase = f", {now['phase']}" if now["phase"] else ""
    return [*lines, Text(f"{now['mode']}{phase}{stopped}")]


def _tick_line(report: TickReport) -> Text:
    about = " · looked back at its own work" if report["context_type"] in LOOKING_BACK else ""
    return Text(cost_line(report) + about, style="dim")
