"""`circadian token`: what a user of a server shows to it."""

from __future__ import annotations

from datetime import timedelta

from rich.text import Text

from graph.cli.console import Screen
from graph.cli.options import Options
from memory.errors import InputError
from memory.resources import utc_now
from memory.serving import serving_variables


def token(options: Options, user: str, *, days: float, operator: bool) -> int:
    """Print a signed token."""
    try:
        from graph.server.tokens import token_for
    except ImportError as error:
        raise InputError("tokens need: pip install 'circadian-agent[server]'") from error
    if not 0 < days <= 3_660:
        raise InputError(f"--days: more than 0 and at most 3660, not {days:g}")
    now = utc_now()
    made = token_for(user, serving_variables(), now=now, days=days, operator=operator)
    until = (now + timedelta(days=days)).isoformat(timespec="seconds")
    screen = Screen(json=options.json)
    screen.result({"user": user, "token": made, "until": until}, Text(made))
    screen.note(f"for {user}, until {until}")
    return 0
