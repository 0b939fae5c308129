"""Messages, requests and nights.

`circadian send`, `tick`, `wake`, `stop`, `clear-stop` and `retry`; `sleep`, `nights`, `night` and
`undo`.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Annotated, Any

from rich.console import RenderableType
from rich.text import Text
from typer import Argument, Option

from graph.cli.access import (
    Session,
    both_ways,
    converse,
    event_of,
    go_to_sleep,
    must_be_made,
    reading,
    report_failures,
    running,
    show_night,
    show_question,
    show_questions,
    standard_input,
    talked,
    watched,
    why_stopped,
)
from graph.cli.program import Options, command
from graph.cli.run_view import cost_line, mode_line, night_view, nights_view, sent_line, stop_line
from graph.console import one_line
from graph.differences import NightChanges, differences, taken_back
from graph.following import LOOKING_BACK
from graph.use_cases import applying, find_night, labels_for, of_run, previewing, status
from memory.errors import InputError
from memory.events import inbox
from memory.records import NightReport
from memory.state import Request

NightId = Annotated[
    str,
    Argument(
        metavar="NIGHT",
        help="A night's id, how it begins, or last (`circadian nights` lists them).",
    ),
]
Everything = Annotated[bool, Option("--all", help="Show lists at full length.")]


@command()
def send(
    options: Options,
    text: Annotated[
        str, Argument(metavar="TEXT", help="The message; - takes it from standard input.")
    ],
    sender: Annotated[
        str | None, Option("--from", metavar="NAME", help="Who says it [the owner].")
    ] = None,
    channel: Annotated[str | None, Option(metavar="C", help="Where it is said.")] = None,
) -> Coroutine[Any, Any, int]:
    """Send a message and print the reply."""
    # Read before anything runs: Ctrl-C ends a blocking read only outside of the event loop.
    said = standard_input().removesuffix("\n") if text == "-" else text
    return _send(options, said, sender, channel)


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
    event: Annotated[str | None, Argument(metavar="ID", help="This event alone.")] = None,
) -> int:
    """Put events that were set aside back into the inbox."""
    async with reading(options) as (_, screen, agent):
        ids = await inbox.retry(agent.store, agent.scope, event)
    lines = [Text(f"back in the inbox: {one_line(id_)}") for id_ in ids]
    screen.result({"retried": ids}, *(lines or [Text("Nothing is set aside.")]))
    return 0


async def _send(options: Options, text: str, sender: str | None, channel: str | None) -> int:
    if not text.strip():
        raise InputError("the message is empty")
    async with running(options) as session:
        turn = await converse(session, event_of(text, sender, channel))
        if turn.parked is not None:
            show_question(session, turn.parked["question"])
        return turn.status


async def _request(options: Options, what: Request) -> int:
    async with running(options, announce=what == "tick", new=False) as session:
        report = await talked(session, {"request": what})
        now = await status(session.agent.context)
        mode = {"mode": now["mode"], "phase": now["phase"]}
        changes = [change for change in report["mode_changes"] if change["why"] != "request"]
        lines: list[RenderableType] = [*map(Text, report["notes"]), *map(mode_line, changes)]
        for tick in report["ticks"]:
            back = " · looked back at its own work" if tick["context_type"] in LOOKING_BACK else ""
            lines += [*map(sent_line, tick["sent"]), Text(cost_line(tick) + back, style="dim")]
        if report["night"] is not None:
            names = await labels_for(session.agent.context, report["night"]["operations"])
            lines.append(night_view(report["night"], names))
        stopped = ", emergency stop" if now["emergency_stop"] else ""
        phase = f", {now['phase']}" if now["phase"] else ""
        session.screen.result(
            {**mode, "report": report}, *[*lines, Text(f"{now['mode']}{phase}{stopped}")]
        )
        await show_questions(session, report)
        if now["emergency_stop"] and report["ticks"]:
            session.screen.problem(stop_line(await why_stopped(session.agent) or ""))
            return 1
        return report_failures(session, report)


# Nights


@command()
async def sleep(
    options: Options,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Apply nothing; print what the night would change.")
    ] = False,
    apply: Annotated[
        str | None, Option(metavar="NIGHT", help="Apply a dry run, or a night that was held back.")
    ] = None,
    everything: Everything = False,
) -> int:
    """Sleep for a night and print its report."""
    if dry_run and apply is not None:
        raise InputError("--dry-run applies nothing, and --apply does: leave one out")
    if apply is not None:
        return await _apply(options, apply, everything=everything)
    async with running(options, new=False) as session:
        if dry_run:
            return await _dry_run(session, everything=everything)
        return await go_to_sleep(session, everything=everything)


@command()
async def nights(options: Options) -> int:
    """List the nights, oldest first."""
    async with reading(options) as (_, screen, agent):
        found = await agent.nights()
    screen.result(found, nights_view(found, agent.context.now().year))
    return 0


@command()
async def night(
    options: Options,
    night_id: NightId,
    discard: Annotated[
        bool, Option("--discard", help="Drop a dry run, or a night that was held back.")
    ] = False,
    everything: Everything = False,
) -> int:
    """Show what a night did, step by step."""
    async with reading(options) as session:
        _, screen, agent = session
        record = await find_night(agent.context, night_id)
        if discard:
            async with session.waiting():
                report = await agent.discard_night(record["id"])
            screen.result(report, f"{record['id']} is discarded: it is never applied.")
            return 0
        report = await agent.night(record["id"])
        await show_night(session, report, everything=everything)
        _say_what_next(session, report)
    return 0


@command()
async def undo(options: Options, night_id: NightId) -> int:
    """Restore memory as it was before a night."""
    async with reading(options) as session:
        _, screen, agent = session
        before = await find_night(agent.context, night_id)
        async with session.waiting():
            report = await agent.undo_night(before["id"])
        names = await labels_for(agent.context, report["operations"])
    lines = [Text(f"{report['id']} was undone before: nothing changed.")]
    if before.get("status") != "undone":
        did = taken_back(differences(NightChanges(report["operations"], names)))
        waits = "memory is as it was before it, and its journal entries wait for the next night."
        lines = [Text(f"{report['id']} is undone: {waits}")]
        lines += [Text(did, style="dim")] if did else []
    screen.result(report, *lines)
    return 0


async def _dry_run(session: Session, *, everything: bool) -> int:
    async with session.waiting(), previewing(session.agent.context) as context:
        report = of_run({"report": await watched(session.screen, context, {})})
    await show_night(session, report, everything=everything)
    _say_what_next(session, report)
    return int(not report["complete"])


async def _apply(options: Options, night_id: str, *, everything: bool) -> int:
    await must_be_made(options)
    async with running(options, announce=False, new=False) as session:
        context = session.agent.context
        async with session.waiting(), applying(context, night_id) as for_the_night:
            report = of_run({"report": await watched(session.screen, for_the_night, {})})
        await show_night(session, report, everything=everything)
    return int(not report["complete"])


def _say_what_next(session: Session, report: NightReport) -> None:
    if report["id"] is None or report.get("status") not in ("preview", "held"):
        return
    screen, (apply, discard) = session.screen, both_ways(session.options, report["id"])
    screen.show("", Text("Nothing of it is applied." if report["dry_run"] else "It waits for you."))
    screen.line(f"  apply it:   {apply}")
    screen.line(f"  discard it: {discard}")
