"""`circadian schedule` and `circadian token`: an agent on a server.

A cron's input is a bare request, so that a late or duplicate run does no harm: a tick with nothing
to do calls no model, and a finished night is not begun again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Annotated, Any, cast
from urllib.parse import quote
from zoneinfo import ZoneInfo

import httpx
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from typer import Argument, Option
from typing_extensions import TypedDict

from graph.cli.program import Options, command
from graph.console import Screen, moment, one_line
from memory.errors import InputError, ServerError
from memory.runtime import utc_now
from memory.text import known_zone

try:
    from langgraph_sdk.client import LangGraphClient

    from graph.server import GRAPH, serving_variables, token_for
except ModuleNotFoundError as error:
    needed = "schedules and tokens need: pip install '.[server]' in the clone"
    raise InputError(f"{needed} (there is no {error.name})") from error

WORDS = {"tick": "works on its goals", "sleep": "falls asleep"}
MOST_MINUTES = 1_440
MOST_DAYS = 3_660


@command()
async def schedule(
    options: Options,
    url: Annotated[str, Option(metavar="URL", help="The server.")],
    token: Annotated[
        str | None,
        Option(metavar="TOKEN", envvar="CIRCADIAN_TOKEN", help="The token of the agent's user."),
    ] = None,
    every: Annotated[
        int, Option(metavar="MINUTES", help="Minutes between two ticks; 0: none.")
    ] = 10,
    at: Annotated[
        str, Option(metavar="HH:MM", help="When it falls asleep; empty: never.")
    ] = "02:00",
    zone: Annotated[
        str, Option("--zone", metavar="ZONE", help="Its time zone, such as Europe/Berlin.")
    ] = "UTC",
    show: Annotated[bool, Option("--list", help="Show what is installed.")] = False,
    remove: Annotated[bool, Option("--remove", help="Remove what is installed.")] = False,
) -> int:
    """Let an agent tick and sleep on a server by itself."""
    if show and remove:
        raise InputError("--list or --remove: one of them")
    time_zone, crons = _zone(zone), _crons(every, at)
    async with agent_on(url, token, options.agent) as (client, thread):
        gone = [] if show else await install(client, thread, {} if remove else crons, time_zone)
        found = gone if remove else await listed(client, thread)
    head = "Removed:" if remove else f"{options.agent} on {url}:"
    head = head if found else "Nothing is scheduled."
    view = [_view(found)] if found else []
    Screen(json=options.json).result(found, Text(one_line(head)), *view)
    return 0


@command()
def token(
    options: Options,
    user: Annotated[str, Argument(metavar="USER", help="Whom the token is for.")],
    days: Annotated[float, Option(metavar="N", help="Days for which it is valid.")] = 30.0,
    operator: Annotated[
        bool, Option("--operator", help="May see the server's metrics and health.")
    ] = False,
) -> int:
    """Make a signed token for a user of a server."""
    if not 0 < days <= MOST_DAYS:
        raise InputError(f"--days: more than 0 and at most {MOST_DAYS}, not {days:g}")
    now = utc_now()
    made = token_for(user, serving_variables(), now=now, days=days, operator=operator)
    until = (now + timedelta(days=days)).isoformat(timespec="seconds")
    screen = Screen(json=options.json)
    screen.result({"user": user, "token": made, "until": until})
    screen.line(made)
    screen.note(f"for {user}, until {moment(until)}")
    return 0


def _crons(every: int, at: str) -> dict[str, str]:
    crons: dict[str, str] = {}
    if not 0 <= every <= MOST_MINUTES:
        raise InputError(f"--every: minutes from 0 to {MOST_MINUTES:,}, not {every}")
    if every:
        crons["tick"] = _every(every)
    if at:
        try:
            hour = datetime.strptime(at, "%H:%M").time()  # noqa: DTZ007 - a local hour
        except ValueError as error:
            raise InputError(f"--at: a time such as 02:00, not {at!r:.20}") from error
        crons["sleep"] = f"{hour.minute} {hour.hour} * * *"
    return crons


def _every(minutes: int) -> str:
    """A cron with equal intervals, which only divisors of an hour or a day give."""
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
        return known_zone(name)
    except ValueError as error:
        raise InputError(str(error)) from error


def _view(found: list[Scheduled]) -> RenderableType:
    rows = Table.grid(padding=(0, 2))
    for cron in found:
        following = f"next {moment(cron['next_run'])}" if cron["next_run"] else ""
        rows.add_row(
            Text(WORDS.get(cron["request"], cron["request"])),
            Text(f"{cron['schedule']} ({cron['time_zone']})", "cyan"),
            Text(following, "dim"),
        )
    return rows


# The crons of LangGraph Server for an agent's ticks and nights


MARK = "circadian"
"""The metadata key that marks these crons, with their request as value."""

PAGE = 100

SECONDS = 60.0
"""A server that has not answered by then is down."""


class Scheduled(TypedDict):
    """One cron."""

    id: str
    request: str
    """`tick` or `sleep`."""
    schedule: str
    """Five fields, as in a crontab."""
    time_zone: str
    next_run: str | None
    thread_id: str


async def listed(client: LangGraphClient, thread: str) -> list[Scheduled]:
    """The installed crons of an agent's thread, ticks first."""
    found = await client.crons.search(thread_id=thread, limit=PAGE)
    ours = [_scheduled(cron) for cron in found if (cron.get("metadata") or {}).get(MARK)]
    return sorted(ours, key=lambda cron: cron["request"], reverse=True)


async def install(
    client: LangGraphClient, thread: str, crons: Mapping[str, str], zone: ZoneInfo
) -> list[Scheduled]:
    """Replace all crons by one for each request of `crons`; returns the replaced ones.

    New ones come first: a failure half way leaves too many, which is harmless, rather than none.
    Installing again replaces them all.
    """
    before = await listed(client, thread)
    for request, schedule in crons.items():
        await client.crons.create_for_thread(
            thread,
            GRAPH,
            schedule=schedule,
            timezone=zone,
            input={"request": request},
            metadata={MARK: request},
            multitask_strategy="enqueue",
            durability="sync",
        )
    for cron in before:
        await client.crons.delete(cron["id"])
    return before


@asynccontextmanager
async def agent_on(
    url: str, token: str | None, agent: str
) -> AsyncIterator[tuple[LangGraphClient, str]]:
    """A client of the server as `token`'s user, and the agent's thread there.

    Raises ServerError if the server does not answer, or refuses.
    """
    # Not `get_client()`, which tries a server that does not answer for eight seconds.
    headers = {"X-Api-Key": token} if token else {}
    client = LangGraphClient(httpx.AsyncClient(base_url=url, headers=headers, timeout=SECONDS))
    try:
        thread: Any = await client.http.put(f"/circadian/agents/{quote(agent, safe='')}", json={})
        yield client, str(thread["thread_id"])
    except httpx.HTTPStatusError as error:
        raise ServerError(f"{url} refuses ({error.response.status_code}): {_why(error)}") from error
    except httpx.TransportError as error:
        raise ServerError(f"{url} does not answer: {error or type(error).__name__}") from error
    finally:
        await client.aclose()


def _why(error: httpx.HTTPStatusError) -> str:
    try:
        body = error.response.json()
    except ValueError:
        return error.response.text[:200]
    detail = body.get("detail") if isinstance(body, dict) else body
    return str(detail or body)[:200]


def _scheduled(cron: Mapping[str, Any]) -> Scheduled:
    following = cron.get("next_run_date")
    return {
        "id": str(cron["cron_id"]),
        "request": cast(str, cron["metadata"][MARK]),
        "schedule": cron["schedule"],
        "time_zone": cron.get("timezone") or "UTC",
        "next_run": str(following) if following else None,
        "thread_id": str(cron["thread_id"]),
    }
