"""An agent's schedule on a server: crons of LangGraph Server, for its ticks and nights.

A cron's input is a bare request, so that a late or duplicate run does no harm: a tick with nothing
to do calls no model, and a finished night is not begun again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote
from zoneinfo import ZoneInfo

import httpx
from typing_extensions import TypedDict

from graph.server.settings import GRAPH
from memory.errors import InputError, ServerError

if TYPE_CHECKING:
    from langgraph_sdk.client import LangGraphClient

MARK = "circadian"
"""The metadata key that marks these crons, with their request as value."""

PAGE = 100


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


class Schedule:
    """The crons of one agent on one server."""

    def __init__(self, client: LangGraphClient, thread: str) -> None:
        self._client, self.thread = client, thread

    async def listed(self) -> list[Scheduled]:
        """The installed crons, ticks first."""
        found = await self._client.crons.search(thread_id=self.thread, limit=PAGE)
        ours = [_scheduled(cron) for cron in found if (cron.get("metadata") or {}).get(MARK)]
        return sorted(ours, key=lambda cron: cron["request"], reverse=True)

    async def install(self, crons: Mapping[str, str], zone: ZoneInfo) -> None:
        """Replace all crons by one for each request of `crons`.

        New ones come first: a failure half way leaves too many, which is harmless, rather than
        none. Installing again replaces them all.
        """
        before = await self.listed()
        for request, schedule in crons.items():
            await self._create(request, schedule, zone)
        await self._delete(before)

    async def remove(self) -> list[Scheduled]:
        """Remove all crons; returns them."""
        before = await self.listed()
        await self._delete(before)
        return before

    async def _create(self, request: str, schedule: str, zone: ZoneInfo) -> None:
        await self._client.crons.create_for_thread(
            self.thread,
            GRAPH,
            schedule=schedule,
            timezone=zone,
            input={"request": request},
            metadata={MARK: request},
            multitask_strategy="enqueue",
            durability="sync",
        )

    async def _delete(self, crons: Iterable[Scheduled]) -> None:
        for cron in crons:
            await self._client.crons.delete(cron["id"])


@asynccontextmanager
async def schedule_of(url: str, token: str | None, agent: str) -> AsyncIterator[Schedule]:
    """The schedule of the agent called `agent` on the server at `url`, as `token`'s user.

    Raises:
        InputError: the optional packages are missing.
        ServerError: the server does not answer, or refuses.
    """
    try:
        from langgraph_sdk import get_client
    except ImportError as error:
        raise InputError("schedules need: pip install 'circadian-agent[server]'") from error
    client = get_client(url=url, api_key=token)
    try:
        thread: Any = await client.http.put(f"/circadian/agents/{quote(agent, safe='')}", json={})
        yield Schedule(client, str(thread["thread_id"]))
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
