"""`circadian nights`, `night`, `sleep --dry-run`, `sleep --apply` and `undo`."""

from __future__ import annotations

import shlex

from rich.text import Text

from graph.cli.access import must_be_made, opened_without_running, opening, say_unknown
from graph.cli.console import Screen
from graph.cli.following import follow
from graph.cli.night_view import night_view, nights_view
from graph.cli.options import Options
from graph.cli.talk import NightWatch
from graph.cli.waiting import telling_waits
from graph.handle import AsyncAgent
from graph.night_names import names_of
from graph.nights import find_night, of_run, to_apply, to_preview
from memory import night as kept
from memory.reports import NightReport
from memory.settings import Deployment


async def nights(options: Options) -> int:
    """List the nights, oldest first."""
    screen = Screen(json=options.json)
    async with opened_without_running(options) as agent:
        await say_unknown(screen, agent, options.agent)
        found = await agent.nights()
    screen.result(found, nights_view(found))
    return 0


async def night(options: Options, night_id: str, *, discard: bool, everything: bool) -> int:
    """Show one night; with `discard` let it go first."""
    screen = Screen(json=options.json)
    async with opened_without_running(options) as agent:
        record = await find_night(agent, night_id)
        if discard:
            async with telling_waits(options, screen):
                report = await agent.discard_night(record["id"])
            screen.result(report)
            screen.show(f"{record['id']} is discarded: it is never applied.")
            return 0
        report = await agent.night(record["id"])
        await show(options, screen, agent, report, everything=everything)
    _say_what_next(screen, options, report)
    return 0


async def undo(options: Options, night_id: str) -> int:
    """Restore memory as it was before a night."""
    screen = Screen(json=options.json)
    async with opened_without_running(options) as agent, telling_waits(options, screen):
        report = await agent.undo_night(night_id)
    screen.result(report)
    screen.show(f"{report['id']} is undone: memory is as it was before it.")
    return 0


async def dry_run(options: Options, *, everything: bool) -> int:
    """Go through a night and apply nothing; print what it would change."""
    from graph.cli.commands import say_model

    screen = Screen(json=options.json)
    async with opening(options) as agent:
        say_model(screen, agent)
        alone = await to_preview(agent)
        try:
            report = await _watched(options, alone, screen)
        finally:
            await kept.unwant_preview(agent.store, agent.scope)
        await show(options, screen, agent, report, everything=everything)
    _say_what_next(screen, options, report)
    return int(not report["complete"])


async def apply(options: Options, night_id: str, *, everything: bool) -> int:
    """Make a preview, or a night that was held back, so."""
    await must_be_made(options)
    screen = Screen(json=options.json)
    async with opening(options) as agent:
        report = await _watched(options, await to_apply(agent, night_id), screen)
        await show(options, screen, agent, report, everything=everything)
    return int(not report["complete"])


async def _watched(options: Options, agent: AsyncAgent, screen: Screen) -> NightReport:
    with NightWatch(screen) as watch:
        async with telling_waits(options, screen):
            return of_run({"report": await follow(agent, {}, watch)})


async def show(
    options: Options,
    screen: Screen,
    agent: AsyncAgent,
    report: NightReport,
    *,
    everything: bool = False,
) -> None:
    """Print a night, with what its ids stand for."""
    if screen.json:
        screen.document(report)
        return
    names = await names_of(agent, report["operations"])
    more = command_line(options, "night", report["id"] or "", "--all")
    screen.show(night_view(report, names, everything=everything, more=more))


def held_line(options: Options, report: NightReport) -> str | None:
    """What the gate measured, and how to go on; None where the night is not held back."""
    if report.get("status") != "held" or report["id"] is None:
        return None
    why = (report.get("gate") or {}).get("held") or "it would change much"
    so, gone = _both_ways(options, report["id"])
    return f"{report['id']} is held back: {why}; `{so}` makes it so, `{gone}` lets it go"


def _both_ways(options: Options, night_id: str) -> tuple[str, str]:
    so = command_line(options, "sleep", "--apply", night_id)
    return so, command_line(options, "night", night_id, "--discard")


def _say_what_next(screen: Screen, options: Options, report: NightReport) -> None:
    """How a person goes on with a preview, or with a night that was held back."""
    if report["id"] is None or report.get("status") not in ("preview", "held"):
        return
    so, gone = _both_ways(options, report["id"])
    screen.show("", Text("Nothing of it is applied." if report["dry_run"] else "It waits for you."))
    screen.line(f"  make it so: {so}")
    screen.line(f"  let it go:  {gone}")


def command_line(options: Options, *words: str) -> str:
    """The command that does it on this agent."""
    usual = Deployment()
    more = ["--data", str(options.data)] if options.data is not None else []
    more += ["--agent", options.agent] if options.agent != usual.agent else []
    return shlex.join(["circadian", *words, *more])
