"""A night that is held back for a person: why, and both ways to go on."""

from __future__ import annotations

import shlex

from graph.cli.options import Options
from memory.reports import NightReport
from memory.settings import Deployment


def held_line(options: Options, report: NightReport) -> str | None:
    """What the gate measured, and how to go on; None where the night is not held back."""
    if report.get("status") != "held" or report["id"] is None:
        return None
    why = (report.get("gate") or {}).get("held") or "it would change much"
    so, gone = both_ways(options, report["id"])
    return f"{report['id']} is held back: {why}; `{so}` makes it so, `{gone}` lets it go"


def both_ways(options: Options, night_id: str) -> tuple[str, str]:
    """The commands that make it so, and that let it go."""
    so = command_line(options, "sleep", "--apply", night_id)
    return so, command_line(options, "night", night_id, "--discard")


def command_line(options: Options, *words: str) -> str:
    """The command that does it on this agent."""
    usual = Deployment()
    more = ["--data", str(options.data)] if options.data is not None else []
    more += ["--agent", options.agent] if options.agent != usual.agent else []
    return shlex.join(["circadian", *words, *more])
