"""`circadian log`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from graph.cli.access import reading
from graph.cli.options import Options, command
from graph.cli.views import log_view
from memory import audit
from memory.errors import InputError
from memory.runtime import utc_now

SHOWN = 50
"""Entries that are shown if neither a time nor a number is given."""


_ALL = 1_000_000


_AGO = re.compile(r"(\d{1,9})\s*([smhdw])")


_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@command()
async def log(
    options: Options,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN", help="Not before: a date or time (UTC), 30m, 2h, 3d, today, yesterday."
        ),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            "-n", metavar="N", min=1, max=_ALL, help="The newest N [50; with --since, all]."
        ),
    ] = None,
) -> int:
    """Show what was done, by whom and why."""
    start = moment(since, utc_now()) if since is not None else None
    limit = most or (SHOWN if start is None else _ALL)
    async with reading(options) as (_, screen, agent):
        found = await audit.read(agent.store, agent.scope, since=start, limit=limit + 1)
    shown = found[-limit:]
    screen.result(shown, log_view(shown))
    if len(found) > limit and not screen.json:
        screen.note(f"the newest {limit}; -n {limit * 4} shows more")
    return 0


def moment(text: str, now: datetime) -> datetime:
    """The time (UTC) that `--since` names: ISO 8601, `30m`, `2h`, `3d`, today or yesterday.

    Raises:
        InputError: it is no time.
    """
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    word = text.strip().lower()
    try:
        if word in ("today", "yesterday"):
            return midnight - timedelta(days=word == "yesterday")
        if ago := _AGO.fullmatch(word):
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        given = datetime.fromisoformat(text.strip())
        return (given if given.tzinfo else given.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(
            f"--since: {text!r:.80} is no time; give a date or a time (2026-03-02, "
            "2026-03-02T09:00, UTC), 30m, 2h, 3d, today or yesterday"
        ) from None
