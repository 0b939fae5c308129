"""`circadian status`, `prompt`, `log` and `inspect`: the agent as it is, and what it did."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from graph.cli.access import Session, opening, reading, why_stopped
from graph.cli.program import Options, Yes, command
from graph.cli.status_view import log_view, status_view
from graph.console import Screen, clean, counted, moment, one_line, ruled_table, shown_zone
from graph.use_cases import (
    AgentHoldings,
    agent_held,
    briefing,
    forget_agent,
    list_agents,
    lost_ticks,
    prompt_of,
)
from graph.use_cases import status as status_of
from memory import audit
from memory.errors import InputError
from memory.events import inbox
from memory.records import AssistantPrompt
from memory.runtime import utc_now
from memory.text import regex, shortened

SHOWN = 50
"""Entries that are shown if neither a time nor a number is given."""

_ALL = 1_000_000
_AGO = regex(r"(\d{1,9})\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

FIRST_LINE = 60
"""Characters of a prompt version's text that its row shows."""


@command()
async def status(
    options: Options,
    verbose: Annotated[
        bool, Option("--verbose", "-v", help="Also show each part of the prompt.")
    ] = False,
) -> int:
    """Show the agent at a glance, even while it runs."""
    async with reading(options) as session:
        return await print_status(session, verbose=verbose)


async def print_status(
    session: Session, reader: str | None = None, *, verbose: bool = False
) -> int:
    """Print the agent at a glance, `verbose` with each part of the prompt; 1 if ticks are lost.

    Who is no owner gets it without the briefing; `reader` as there.
    """
    options, screen, agent = session
    now, aside = await status_of(agent.context), await inbox.set_aside(agent.store, agent.scope)
    now["briefing"] = await briefing(agent.context, reader)
    lost = await lost_ticks(agent.context)
    for line in lost:
        screen.problem(line)
    stop = await why_stopped(agent) if now["emergency_stop"] else None
    screen.result(
        {"agent": options.agent, **now},
        status_view(now, options.agent, aside, stop=stop, verbose=verbose),
    )
    return int(bool(lost))


@command()
async def prompt(
    options: Options,
    version: Annotated[
        int | None,
        Option(
            "--rollback", metavar="N", min=0, help="Put version N's text in force again; 0: empty."
        ),
    ] = None,
) -> int:
    """Show the user's prompt, the agent's own and its versions."""
    async with reading(options) as session:
        _, screen, agent = session
        before = own = await prompt_of(agent.context)
        if version is not None:
            async with session.waiting():
                own = await agent.rollback_prompt(version)
            done = f"again, as version {own['version']}."
            if own["version"] == before["version"]:
                done = "already: nothing was changed."
            screen.show(Text(f"The text of version {version} is in force {done}"), Text(""))
        user = agent.settings.user_prompt
    screen.result({"user_prompt": user, **own}, _prompt_view(user, own))
    return 0


def _prompt_view(user: str, own: AssistantPrompt) -> RenderableType:
    version = f"  version {own['version']}"
    parts: list[RenderableType] = [
        Text.assemble(("The user's prompt", "bold"), ("  setting user_prompt", "dim")),
        _text(user),
        Text(""),
        Text.assemble(("The assistant's own prompt", "bold"), (version, "dim")),
        _text(own["text"]),
    ]
    if own["versions"]:
        parts += [Text(""), _versions(own)]
    return Group(*parts)


def _text(text: str) -> RenderableType:
    shown = Text(clean(text)) if text else Text("empty", style="dim")
    return Padding(shown, (0, 0, 0, 2))


def _versions(own: AssistantPrompt) -> Table:
    table = ruled_table(right=("version",))
    for name in ("when", "by", "why", "text"):
        table.add_column(name, no_wrap=name == "when")
    table.columns[0].no_wrap = True
    for version in reversed(own["versions"]):
        first = one_line(version["text"].partition("\n")[0])
        table.add_row(
            str(version["version"]),
            moment(version["at"]),
            Text(one_line(version["by"])),
            Text(one_line(version["reason"])),
            Text(shortened(first, FIRST_LINE) or "empty"),
            style="bold" if version["version"] == own["version"] else "",
        )
    return table


@command()
async def log(
    options: Options,
    since: Annotated[
        str | None,
        Option(metavar="WHEN", help="Not before: a date or time, 30m, 2h, 3d, today, yesterday."),
    ] = None,
    most: Annotated[
        int | None,
        Option("-n", metavar="N", min=1, max=_ALL, help="The newest N [50; with --since, all]."),
    ] = None,
) -> int:
    """Show what was done, by whom and why."""
    start = parse_since(since, utc_now().astimezone(shown_zone())) if since is not None else None
    limit = most or (SHOWN if start is None else _ALL)
    async with reading(options) as (_, screen, agent):
        found = await audit.read(agent.store, agent.scope, since=start, limit=limit + 1)
    shown = found[-limit:]
    screen.result(shown, log_view(shown))
    if len(found) > limit and not screen.json:
        screen.note(f"the newest {limit}; -n {limit * 4} shows more")
    return 0


def parse_since(text: str, now: datetime) -> datetime:
    """The time (UTC) that `--since` names: ISO 8601, `30m`, `2h`, `3d`, today or yesterday.

    Days and times without a zone are those of `now`.
    """
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    word = text.strip().lower()
    try:
        if word in ("today", "yesterday"):
            return (midnight - timedelta(days=word == "yesterday")).astimezone(UTC)
        if ago := _AGO.fullmatch(word):
            return now.astimezone(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        given = datetime.fromisoformat(text.strip())
        return (given if given.tzinfo else given.replace(tzinfo=now.tzinfo)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(
            f"--since: {text!r:.80} is not a time; give a date or a time (2026-03-02, "
            "2026-03-02T09:00), 30m, 2h, 3d, today or yesterday"
        ) from None


# In the browser


PATIENCE = 3.0
"""Seconds that a change waits for another process's run; the page then says who is at work."""


@command()
async def inspect(
    options: Options,
    port: Annotated[
        int, Option(metavar="N", min=0, max=65_535, help="The port; 0 takes any that is free.")
    ] = 0,
) -> int:
    """Show memory in the browser."""
    async with reading(options):
        pass  # It says so where there is no agent of that name.
    await serve_inspector(options, port)
    return 0


async def serve_inspector(options: Options, port: int = 0, *, files: Path | None = None) -> None:
    """Serve the inspector until it is interrupted. `files`: the agent's working folder."""
    try:
        from graph.inspector import serve
    except ImportError as error:
        raise InputError("the inspector needs: pip install '.[inspect]' in the clone") from error
    given = options.deployment
    patient = {"lock_timeout": min(given.lock_timeout, PATIENCE), "folder": files or given.folder}
    held = replace(options.configuration, deployment=given.model_copy(update=patient))
    async with opening(replace(options, configuration=held)) as agent:
        screen = Screen(json=options.json)
        Session(options, screen, agent).say_model()

        def started(url: str) -> None:
            if options.json:
                sys.stdout.write(json.dumps({"url": url}) + "\n")
                sys.stdout.flush()
            screen.show(Text("The inspector is open, for one browser:"))
            screen.line(f"  {url}")
            screen.note("Ctrl-C ends it.")

        await serve(agent.context, port, started)


@command()
async def agents(
    options: Options,
    words: Annotated[
        list[str] | None,
        Argument(metavar="delete NAME", help="Delete an agent; by default, list all."),
    ] = None,
    yes: Yes = False,
) -> int:
    """List the agents with what each holds, or delete one."""
    match words or []:
        case []:
            async with reading(options, announce=False) as session:
                lines = await list_agents(session.agent.context)
                session.screen.result(lines, _view(lines) if lines else "There is no agent yet.")
        case ["delete", name]:
            await _delete(options, name, yes=yes)
        case _:
            raise InputError("circadian agents, or circadian agents delete NAME")
    return 0


async def _delete(options: Options, name: str, *, yes: bool) -> None:
    async with reading(replace(options, agent=name), announce=False) as session:
        async with session.waiting():
            line = await agent_held(session.agent.context)
            if yes:
                await forget_agent(session.agent.context)
        told = f"{one_line(name)}: {_holds(line)}"
        head = "Deleted: " if yes else "Would be deleted: "
        session.screen.result({"deleted": yes, **line}, Text.assemble((head, "bold"), told))
        if not yes:
            again = options.command_line("agents", "delete", name, "--yes")
            session.screen.note(f"Nothing was changed. To delete it for good: {again}")


def _holds(line: AgentHoldings) -> str:
    journal = counted(line["journal"], "journal entry", "journal entries")
    return f"{journal}, {counted(line['facts'], 'fact')}, {line['waiting']:,} waiting"


def _view(lines: list[AgentHoldings]) -> Table:
    table = ruled_table(right=("journal", "facts", "waiting"))
    table.add_column("thread", no_wrap=True)
    table.add_column("agent")
    for line in lines:
        numbers = [f"{line['journal']:,}", f"{line['facts']:,}", f"{line['waiting']:,}"]
        name = Text(one_line(line["name"])) if line["name"] else Text("unnamed", "dim")
        table.add_row(*numbers, line["thread"], name)
    return table
