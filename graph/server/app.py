"""Routes beside LangGraph Server's own, behind the same authentication.

An agent's own routes are in `routes`; here are those of users and operators. docs/api.md lists all.
`GET /ok` of the server itself answers without authentication while the process lives.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from json import JSONDecodeError
from typing import Annotated
from urllib.parse import unquote
from uuid import uuid4

from fastapi import Depends, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from httpx import HTTPStatusError
from langgraph.store.base import BaseStore, PutOp
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError
from pydantic import BaseModel, Field, TypeAdapter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from graph.server import accounts, health, inspector, routes, tokens
from graph.server.agents import (
    Agent,
    AgentName,
    agent_threads,
    erase_files,
    every_own,
    user_of,
)
from graph.server.auth import (
    Guard,
    Throttle,
    check_limits,
)
from graph.server.health import check_operator
from graph.server.problems import api_router, of_product, of_request, of_server
from graph.server.routes import Form, Page
from graph.server.settings import ERASED, serving
from graph.server.shutdown import GracefulApp, shutting_down
from memory import forgetting, messages
from memory.errors import BusyError, CircadianError
from memory.events import inbox
from memory.facts import user_filters
from memory.forgetting import erase_memories
from memory.models import charging
from memory.records import Scope, thread_id
from memory.runtime import Bounds, Process, process_now
from memory.state import GivenEvent
from memory.storage import PAGE, list_items, namespaces_below, write_batch

EVENT = TypeAdapter(GivenEvent).json_schema()
EVENTS = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"anyOf": [EVENT, {"type": "array", "items": EVENT}]}}
        },
    }
}
"""For the OpenAPI document: the inbox itself checks events."""

router = api_router(prefix="/circadian", tags=["agents"])


# Erasing a user


async def erase_user(user: str, client: LangGraphClient, process: Process) -> dict[str, int]:
    """Delete everything of a user, schedules first so that no run makes anything new.

    `client` reaches the resources of all users. Idempotent: after an interruption, call it again.
    Raises BusyError while the user is being erased already.
    """
    if user in ERASED:
        raise BusyError(f"{user!r:.80} is being erased already: ask again after it")
    ERASED.add(user)
    try:
        return await _erased(user, client, process)
    finally:
        ERASED.discard(user)


async def _erased(user: str, client: LangGraphClient, process: Process) -> dict[str, int]:
    store = process.served_store
    counted = {
        "schedules": await _schedules(user, client),
        "threads": await _threads(user, client),
        "assistants": await _assistants(user, client),
    }
    await _checkpoints(user, process)
    counted["memories"] = await erase_memories(
        process.resources.semantic, user_filters(Scope(user, ""))
    )
    counted["records"] = await _records(store, user)
    await erase_files(Scope(user, ""))
    await forgetting.clean(store, forgetting.STORE_TABLES)
    await forgetting.clean(process.saver, forgetting.SAVER_TABLES)
    return counted


async def _schedules(user: str, client: LangGraphClient) -> int:
    found = await every_own(user, client.crons.search)
    for cron in found:
        await client.crons.delete(cron["cron_id"])
    return len(found)


async def _threads(user: str, client: LangGraphClient) -> int:
    """Delete threads with their runs and checkpoints; running ones are cancelled first."""
    found = await every_own(user, client.threads.search)
    for thread in found:
        id_ = thread["thread_id"]
        runs = await client.runs.list(id_, limit=PAGE)
        for run in (one for one in runs if one["status"] in ("pending", "running")):
            with _may_be_gone():
                await client.runs.cancel(id_, run["run_id"], wait=True)
        with _may_be_gone():
            await client.threads.delete(id_)
    return len(found)


@contextmanager
def _may_be_gone() -> Iterator[None]:
    """A run may end by itself, and a user may delete a thread meanwhile."""
    try:
        yield
    except HTTPStatusError as error:  # where it waits, the SDK raises httpx's own
        if error.response.status_code != 404:
            raise


async def _checkpoints(user: str, process: Process) -> None:
    """Delete the checkpoints of threads that only the store knows, from a crash or from Python.

    Must precede `_records`: those threads are found by their records.
    """
    below = await namespaces_below(process.served_store, (accounts.label_of(user),))
    for thread in {unquote(namespace[1]) for namespace in below if len(namespace) > 1}:
        assert process.saver is not None
        await process.saver.adelete_thread(thread)


async def _assistants(user: str, client: LangGraphClient) -> int:
    """Delete the assistants that the user made; the server's own stay."""
    found = await every_own(user, client.assistants.search)
    made = [one for one in found if (one.get("metadata") or {}).get("created_by") != "system"]
    for assistant in made:
        await client.assistants.delete(assistant["assistant_id"])
    return len(made)


async def _records(store: BaseStore, user: str) -> int:
    deleted = 0
    for namespace in await namespaces_below(store, (accounts.label_of(user),)):
        items = await list_items(store, namespace)
        await write_batch(store, [PutOp(namespace, item.key, None) for item in items])
        deleted += len(items)
    return deleted


# The caller's agents


class AgentLine(BaseModel):
    """One of the caller's agents."""

    agent: str
    thread_id: str
    status: str = Field(description="idle, busy, interrupted or error")


class AgentThread(BaseModel):
    """The thread of an agent. A name always gives the same thread."""

    agent: str
    thread_id: str


class Accepted(BaseModel):
    """What became of posted events, by id."""

    thread_id: str
    accepted: list[str]
    skipped: list[str] = Field(description="Handled before.")


class Erased(BaseModel):
    """What was erased, by kind."""

    erased: dict[str, int]


@router.get("/agents")
async def agents(request: Request) -> list[AgentLine]:
    """The caller's agents by name."""
    return [
        AgentLine(agent=name, thread_id=str(thread["thread_id"]), status=thread["status"])
        for name, thread in await agent_threads(request)
    ]


@router.put("/agents/{name}")
async def agent(served: Agent) -> AgentThread:
    """The thread of one agent, made if there is none."""
    return AgentThread(agent=served.name, thread_id=await served.thread())


@router.post("/agents/{name}/events", status_code=202, openapi_extra=EVENTS)
async def post_events(request: Request, name: AgentName) -> Accepted:
    """Put one event, or a list, into the inbox; they are stored before this answers.

    Each has `text`, and may have `id`, `at` (ISO 8601), `sender`, `channel` and `addressed`. An
    event with an id can be sent again and is taken once.
    """
    user = user_of(request)
    try:
        given = await request.json()
    except (JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from error
    process, raw = process_now(), given if isinstance(given, list) else [given]
    now = process.resources.clock()
    events = [
        messages.valid_event(inbox.completed(event, id_=str(uuid4()), owner=user, now=now))
        for event in raw
    ]
    scope = Scope(user, thread_id(user, name))
    async with accounts.queue_of(user):
        if over := await accounts.why_too_many(scope, len(events)):
            raise HTTPException(*over)
        posted = await inbox.post(process.served_store, scope, events, now=now)
    accepted = [id_ for id_ in dict.fromkeys(e["id"] for e in events) if id_ not in posted.skipped]
    return Accepted(thread_id=scope.thread, accepted=accepted, skipped=posted.skipped)


@router.delete("/me")
async def erase_me(request: Request) -> Erased:
    """Erase everything of the caller; after an interruption, call it again."""
    return Erased(erased=await erase_user(user_of(request), get_client(), process_now()))


# Users, for operators


class Revocation(Form):
    """Which tokens to revoke."""

    id: str | None = Field(
        None, min_length=1, max_length=200, description="One token's `jti`; by default all so far."
    )


class Revoked(BaseModel):
    """What was revoked."""

    user: str
    id: str | None


def checked_user(user: Annotated[str, Path(description="The user, as in tokens.")]) -> str:
    """The user in the path."""
    if not tokens.is_user(user):
        raise HTTPException(422, f"a user has 1 to {tokens.LONGEST_USER} printable characters")
    return user


UserName = Annotated[str, Depends(checked_user)]
Operator = Depends(check_operator)


@router.get("/users", dependencies=[Operator])
async def list_users(page: Page) -> accounts.UserPage:
    """The users who have memory here, by name (operators)."""
    everybody = await namespaces_below(process_now().served_store, (), 1)
    labels = [label for (label,) in everybody if label != accounts.SPACE]
    shown = labels[page.offset : page.offset + page.limit]
    lines = [await _user_line(label) for label in shown]
    return accounts.UserPage(items=lines, total=len(labels), limit=page.limit, offset=page.offset)


async def _user_line(label: str) -> accounts.UserLine:
    user = unquote(label)
    used = await accounts.used_today(user)
    agents = len(await namespaces_below(process_now().served_store, (label,), 2))
    return accounts.UserLine(user=user, agents=agents, memories=await accounts.kept(user), **used)


@router.delete("/users/{user:path}", dependencies=[Operator])
async def erase_a_user(user: UserName) -> Erased:
    """Erase everything of a user (operators); after an interruption, call it again."""
    return Erased(erased=await erase_user(user, get_client(), process_now()))


@router.post("/users/{user:path}/revoke", dependencies=[Operator])
async def revoke_tokens(user: UserName, form: Revocation) -> Revoked:
    """Let one token, or all tokens of a user so far, hold no longer (operators)."""
    await accounts.revoke(user, form.id, process_now().resources.clock())
    return Revoked(user=user, id=form.id)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Check the server's variables before the first request; shut down gracefully."""
    tokens.check(serving())
    check_limits(serving())
    process = process_now()
    bounds = Bounds(accounts.room, accounts.LEDGER.in_ticks)
    process.resources = replace(process.resources, bounds=bounds)
    account = nullcontext() if serving().open else charging(accounts.LEDGER)
    with account:
        async with shutting_down(app):
            try:
                yield
            finally:
                await inspector.JOBS.stop()


app = GracefulApp(
    title="Circadian",
    summary="What your agents know and did, and what you can do about it.",
    openapi_url=None,  # LangGraph Server publishes it together with its own.
    middleware=[Middleware(Guard), Middleware(Throttle)],
    exception_handlers={
        CircadianError: of_product,
        RequestValidationError: of_request,
        APIStatusError: of_server,
    },
    lifespan=lifespan,
)
# Not `include_router`: LangGraph Server puts its middleware around each route of a flat list.
OURS: list[BaseRoute] = [
    route
    for part in (health.router, routes.router, routes.changing, router)
    for route in part.routes
]


async def unknown(request: Request) -> Response:
    """Answer 405 where the path takes other methods, else 404: behind these routes stand others."""
    fits = [one for one in OURS if one.matches(request.scope)[0] is Match.PARTIAL]
    if not fits:
        raise HTTPException(404)
    methods = {method for one in fits if isinstance(one, APIRoute) for method in one.methods or ()}
    methods |= {"HEAD"} if "GET" in methods else set()
    raise HTTPException(405, headers={"Allow": ", ".join(sorted(methods))})


METHODS = ["GET", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE"]
UNKNOWN = Route("/circadian/{path:path}", unknown, methods=METHODS, include_in_schema=False)
app.router.routes += [*OURS, inspector.PAGES, UNKNOWN]
