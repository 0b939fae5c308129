"""`circadian nights`, `night`, `sleep --dry-run`, `sleep --apply` and `undo`."""

from __future__ import annotations

from rich.text import Text

from graph.cli.access import (
    must_be_made,
    opened_without_running,
    opening,
    say_model,
    say_unknown,
)
from graph.cli.console import Screen
from graph.cli.following import follow
from graph.cli.held import both_ways, command_line
from graph.cli.night_changes import taken_back
from graph.cli.night_view import night_view, nights_view
from graph.cli.options import Options
from graph.cli.talk import NightWatch
from graph.cli.waiting import telling_waits
from graph.handle import AsyncAgent
from graph.night_names import names_of
from graph.nights import broke_off, find_night, of_run
from memory.reports import NightReport


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
        record = await find_night(agent.context, night_id)
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
    async with opened_without_running(options) as agent:
        before = await find_night(agent.context, night_id)
        async with telling_waits(options, screen):
            report = await agent.undo_night(before["id"])
        names = await names_of(agent.context, report["operations"])
    screen.result(report)
    if before.get("status") == "undone":
        screen.show(f"{report['id']} was undone before: nothing changed.")
        return 0
    screen.show(f"{report['id']} is undone: memory is as it was before it.")
    if did := taken_back(report["operations"], names):
        screen.show(Text(did, style="dim"))
    return 0


async def dry_run(options: Options, *, everything: bool) -> int:
    """Go through a night and apply nothing; print what it would change."""
    screen = Screen(json=options.json)
    async with opening(options) as agent:
        say_model(screen, agent)
        async with telling_waits(options, screen), agent.previewing() as alone:
            report = await _watched(alone, screen)
        await show(options, screen, agent, report, everything=everything)
    _say_what_next(screen, options, report)
    return int(not report["complete"])


async def apply(options: Options, night_id: str, *, everything: bool) -> int:
    """Make a preview, or a night that was held back, so."""
    await must_be_made(options)
    screen = Screen(json=options.json)
    async with opening(options) as agent:
        ending = await broke_off(agent.context, await find_night(agent.context, night_id))
        async with telling_waits(options, screen), agent.applying(night_id) as alone:
            report = await _watched(alone, screen)
        if ending:
            screen.note(f"{report['id']} was applied, and killed at its end: it is ended now.")
        await show(options, screen, agent, report, everything=everything)
    return int(not report["complete"])


async def _watched(agent: AsyncAgent, screen: Screen) -> NightReport:
    with NightWatch(screen) as watch:
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
    names = await names_of(agent.context, report["operations"])
    more = command_line(options, "night", report["id"] or "", "--all")
    screen.show(night_view(report, names, everything=everything, more=more))


def _say_what_next(screen: Screen, options: Options, report: NightReport) -> None:
    """How a person goes on with a preview, or with a night that was held back."""
    if report["id"] is None or report.get("status") not in ("preview", "held"):
        return
    so, gone = both_ways(options, report["id"])
    screen.show("", Text("Nothing of it is applied." if report["dry_run"] else "It waits for you."))
    screen.line(f"  make it so: {so}")
    screen.line(f"  let it go:  {gone}")
