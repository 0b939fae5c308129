"""`circadian sleep`, `nights`, `night` and `undo`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.text import Text

from graph.api import AsyncAgent
from graph.cli.access import Session, must_be_made, reading, running
from graph.cli.commands.requests import report_failures, show_questions
from graph.cli.listener import LOOKING_BACK, follow
from graph.cli.options import Options, command
from graph.cli.views import ProgressScreen, Screen, counted, night_view, nights_view, taken_back
from graph.use_cases import broke_off, find_night, labels_for, of_run
from memory.errors import CircadianError, InputError
from memory.records import NightReport, Report

NIGHT_ID = "A night's id, how it begins, or last (`circadian nights` lists them)."


Everything = Annotated[bool, typer.Option("--all", help="Lists at full length.")]


@command()
async def sleep(
    options: Options,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Apply nothing; print what it would change.")
    ] = False,
    apply: Annotated[
        str | None,
        typer.Option(metavar="NIGHT", help="Apply a dry run, or a night that was held back."),
    ] = None,
    everything: Everything = False,
) -> int:
    """Go through a night and print its report."""
    if dry_run and apply is not None:
        raise InputError("--dry-run applies nothing, and --apply does: leave one out")
    if apply is not None:
        return await _apply(options, apply, everything=everything)
    async with running(options) as session:
        if dry_run:
            return await _dry_run(session, everything=everything)
        return await go_to_sleep(session, everything=everything)


@command()
async def nights(options: Options) -> int:
    """List the nights, oldest first."""
    async with reading(options, announce=True) as (_, screen, agent):
        found = await agent.nights()
    screen.result(found, nights_view(found))
    return 0


@command()
async def night(
    options: Options,
    night_id: Annotated[str, typer.Argument(metavar="ID", help=NIGHT_ID)],
    discard: Annotated[
        bool, typer.Option("--discard", help="Let a dry run, or a night that was held back, go.")
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
            screen.result(report)
            screen.show(f"{record['id']} is discarded: it is never applied.")
            return 0
        report = await agent.night(record["id"])
        await _show(session, report, everything=everything)
        _say_what_next(session, report)
    return 0


@command()
async def undo(
    options: Options,
    night_id: Annotated[str, typer.Argument(metavar="NIGHT", help=NIGHT_ID)],
) -> int:
    """Restore memory as it was before a night."""
    async with reading(options) as session:
        _, screen, agent = session
        before = await find_night(agent.context, night_id)
        async with session.waiting():
            report = await agent.undo_night(before["id"])
        names = await labels_for(agent.context, report["operations"])
    screen.result(report)
    if before.get("status") == "undone":
        screen.show(f"{report['id']} was undone before: nothing changed.")
        return 0
    screen.show(f"{report['id']} is undone: memory is as it was before it.")
    if did := taken_back(report["operations"], names):
        screen.show(Text(did, style="dim"))
    return 0


async def go_to_sleep(session: Session, *, everything: bool = False) -> int:
    """Go through a night; returns status 1 if it is not complete."""
    async with session.waiting():
        report = await _watched(session.screen, session.agent, {"request": "sleep"})
    found = report["night"]
    if found is None:
        raise CircadianError(_why_no_night(report))
    await _show(session, found, everything=everything)
    answered = [tick for tick in report["ticks"] if tick["context_type"] not in LOOKING_BACK]
    if answered:
        waited = counted(len(answered), "message")
        session.screen.show(f"Then {waited} that waited woke the agent and got an answer.")
    await show_questions(session, report)
    if held := _held_line(session.options, found):
        session.screen.problem(held)
    return report_failures(session, report) or int(not found["complete"])


async def _dry_run(session: Session, *, everything: bool) -> int:
    async with session.waiting(), session.agent.previewing() as alone:
        report = of_run({"report": await _watched(session.screen, alone, {})})
    await _show(session, report, everything=everything)
    _say_what_next(session, report)
    return int(not report["complete"])


async def _apply(options: Options, night_id: str, *, everything: bool) -> int:
    await must_be_made(options)
    async with running(options, announce=False) as session:
        agent = session.agent
        ending = await broke_off(agent.context, await find_night(agent.context, night_id))
        async with session.waiting(), agent.applying(night_id) as alone:
            report = of_run({"report": await _watched(session.screen, alone, {})})
        if ending:
            session.screen.note(
                f"{report['id']} was applied, and killed at its end: it is ended now."
            )
        await _show(session, report, everything=everything)
    return int(not report["complete"])


async def _watched(screen: Screen, agent: AsyncAgent, given: Mapping[str, Any]) -> Report:
    with ProgressScreen(screen, "falling asleep") as progress:
        return await follow(agent, given, progress)


async def _show(session: Session, report: NightReport, *, everything: bool) -> None:
    """Print a night, with the names behind its ids."""
    if session.screen.json:
        session.screen.document(report)
        return
    names = await labels_for(session.agent.context, report["operations"])
    more = session.options.command_line("night", report["id"] or "", "--all")
    session.screen.show(night_view(report, names, everything=everything, more=more))


def _say_what_next(session: Session, report: NightReport) -> None:
    """How a person goes on with a preview, or with a night that was held back."""
    if report["id"] is None or report.get("status") not in ("preview", "held"):
        return
    screen, (apply, discard) = session.screen, _both_ways(session.options, report["id"])
    screen.show("", Text("Nothing of it is applied." if report["dry_run"] else "It waits for you."))
    screen.line(f"  make it so: {apply}")
    screen.line(f"  let it go:  {discard}")


def _held_line(options: Options, report: NightReport) -> str | None:
    """Why a night is held back and how to go on; None if it is not."""
    if report.get("status") != "held" or report["id"] is None:
        return None
    why = (report.get("gate") or {}).get("held") or "it would change much"
    apply, discard = _both_ways(options, report["id"])
    return f"{report['id']} is held back: {why}; `{apply}` makes it so, `{discard}` lets it go"


def _both_ways(options: Options, night_id: str) -> tuple[str, str]:
    """The commands that apply a night and that discard it."""
    apply = options.command_line("sleep", "--apply", night_id)
    return apply, options.command_line("night", night_id, "--discard")


def _why_no_night(report: Report) -> str:
    if report["failures"]:
        errors = "; ".join(dict.fromkeys(failure["error"] for failure in report["failures"]))
        return f"{errors}; what was done is kept, and the next run goes on from there"
    return " ".join(report["notes"]) or "the run ended before the night began"
