"""`circadian schedule`: an agent's ticks and nights on a server."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from graph.cli.console import Screen, one_line
from graph.cli.options import Options
from graph.scheduling import Scheduled, schedule_of
from memory.errors import InputError

WORDS = {"tick": "works on its goals", "sleep": "falls asleep"}
MOST_MINUTES = 1_440


class Wanted(NamedTuple):
    """What a person asks for."""

    url: str
    token: str | None
    every: int
    at: str
    zone: str


async def schedule(options: Options, wanted: Wanted, *, show: bool, remove: bool) -> int:
    """Install, or with `show` or `remove` list or remove; then print what there is, or was."""
    if show and remove:
        raise InputError("--list or --remove: one of them")
    zone, crons = _zone(wanted.zone), _crons(wanted)
    screen = Screen(json=options.json)
    async with schedule_of(wanted.url, wanted.token, options.agent) as standing:
        if remove:
            found = await standing.remove()
            head = "Removed:" if found else "Nothing is scheduled."
        else:
            if not show:
                await standing.install(crons, zone)
            found = await standing.listed()
            head = f"{options.agent} on {wanted.url}:" if found else "Nothing is scheduled."
    screen.result(found, Text(one_line(head)), *([_view(found)] if found else []))
    return 0


def _crons(wanted: Wanted) -> dict[str, str]:
    """The cron expression of each request."""
    crons: dict[str, str] = {}
    if not 0 <= wanted.every <= MOST_MINUTES:
        raise InputError(f"--every: minutes from 0 to {MOST_MINUTES:,}, not {wanted.every}")
    if wanted.every:
        crons["tick"] = _every(wanted.every)
    if wanted.at:
        try:
            hour = datetime.strptime(wanted.at, "%H:%M").time()  # noqa: DTZ007 - a local hour
        except ValueError as error:
            raise InputError(f"--at: a time such as 02:00, not {wanted.at!r:.20}") from error
        crons["sleep"] = f"{hour.minute} {hour.hour} * * *"
    return crons


def _every(minutes: int) -> str:
    """A cron that comes at equal distances, which only divisors of an hour or a day give."""
    if minutes == 1:
        return "* * * * *"
    if minutes < 60 and 60 % minutes == 0:
        return f"*/{minutes} * * * *"
    hours, rest = divmod(minutes, 60)
    if rest == 0 and 24 % hours == 0:
        return f"0 */{hours} * * *" if hours < 24 else "0 0 * * *"
    raise InputError(
        f"--every: {minutes} minutes do not divide an hour or a day; such as 10, 30, 60 or 360 do"
    )


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InputError(f"no time zone is called {name!r:.60}; one is Europe/Berlin") from error


def _view(found: list[Scheduled]) -> RenderableType:
    rows = Table.grid(padding=(0, 2))
    for one in found:
        following = f"next {one['next_run'][:16]}" if one["next_run"] else ""
        rows.add_row(
            Text(WORDS.get(one["request"], one["request"])),
            Text(f"{one['schedule']} ({one['time_zone']})", "cyan"),
            Text(following, "dim"),
        )
    return rows
