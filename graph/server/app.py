"""Routes beside LangGraph Server's own, behind the same authentication.

    GET    /circadian/health            the state of each dependency; 503 if one is down (operators)
    GET    /circadian/metrics           Prometheus' text format (operators)
    GET    /circadian/agents            the caller's agents, with their threads
    PUT    /circadian/agents/NAME       the thread of the agent NAME, made if there is none
    POST   /circadian/agents/NAME/events  put events into its inbox; its next run takes them
    DELETE /circadian/me                erase the caller: agents, threads, schedules, all memory

`GET /ok` of the server itself answers without authentication while the process lives.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from json import JSONDecodeError
from typing import Any
from uuid import uuid4

import httpx
from langgraph_sdk.client import LangGraphClient
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from graph.server import limits, tokens
from graph.server.erase import erase_user
from graph.server.health import health, show_metrics
from graph.server.middleware import INTERNAL_HOST, Guard, Throttle
from graph.server.shutdown import GracefulApp, shutting_down
from memory import inbox
from memory.access import AGENT, GRAPH
from memory.errors import CircadianError, InputError
from memory.resources import process_now
from memory.scope import Scope, thread_id
from memory.serving import serving

LONGEST_NAME = 200
PAGE = 100


async def agents(request: Request) -> Response:
    """The caller's agents by name."""
    found: list[dict[str, Any]] = []
    client = _client(request)
    while True:
        page = await client.threads.search(limit=PAGE, offset=len(found))
        found += [dict(thread) for thread in page]
        if len(page) < PAGE:
            break
    listed = [
        {"agent": name, "thread_id": str(thread["thread_id"]), "status": thread["status"]}
        for thread in found
        if (name := (thread.get("metadata") or {}).get(AGENT))
    ]
    return JSONResponse(sorted(listed, key=lambda line: str(line["agent"])))


async def agent(request: Request) -> Response:
    """The thread of one agent. A name always gives the same thread."""
    name = _name(request)
    thread = thread_id(_user(request), name)
    await _client(request).threads.create(
        thread_id=thread, if_exists="do_nothing", graph_id=GRAPH, metadata={AGENT: name}
    )
    return JSONResponse({"agent": name, "thread_id": thread})


async def post_events(request: Request) -> Response:
    """Put one event, or a list, into the inbox; they are stored before this answers.

    Each has `text`, and may have `id`, `at` (ISO 8601), `sender`, `channel` and `addressed`. An
    event with an id can be sent again and is taken once.
    """
    name, user = _name(request), _user(request)
    try:
        given = await request.json()
    except (JSONDecodeError, UnicodeDecodeError) as error:
        raise HTTPException(400, f"the body is no JSON: {error}") from error
    process, raw = process_now(), given if isinstance(given, list) else [given]
    now = process.resources.clock()
    try:
        events = [
            inbox.valid_event(inbox.completed(event, id_=str(uuid4()), owner=user, now=now))
            for event in raw
        ]
    except InputError as error:
        raise HTTPException(422, str(error)) from error
    if full := await limits.full(user, serving(), more=len(events)):
        raise HTTPException(507, full)
    scope = Scope(user, thread_id(user, name))
    posted = await inbox.post(process.served_store, scope, events, now=now)
    accepted = [event["id"] for event in events if event["id"] not in posted.skipped]
    body = {"thread_id": scope.thread, "accepted": accepted, "skipped": posted.skipped}
    return JSONResponse(body, status_code=202)


async def erase_me(request: Request) -> Response:
    """Erase everything of the caller; after an interruption, call it again."""
    counted = await erase_user(_user(request), _client(request), process_now())
    return JSONResponse({"erased": counted})


def _user(request: Request) -> str:
    return str(request.user.identity)


def _name(request: Request) -> str:
    name = str(request.path_params["name"])
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise HTTPException(422, f"an agent's name has 1 to {LONGEST_NAME} printable characters")
    return name


def _client(request: Request) -> LangGraphClient:
    """A client of this server, in this process, that sends its requests as the caller.

    Not `get_client()`, which bypasses authentication when it has no URL.
    """
    names = ("authorization", "x-api-key")
    headers = {name: request.headers[name] for name in names if name in request.headers}
    transport = httpx.ASGITransport(app=request.app, client=(INTERNAL_HOST, 0))
    return LangGraphClient(
        httpx.AsyncClient(transport=transport, base_url="http://server", headers=headers)
    )


async def _failed(request: Request, error: Exception) -> Response:
    """One clear line for what the product raises on purpose."""
    return JSONResponse({"detail": str(error)}, status_code=503)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"detail": error.detail}, status_code=error.status_code)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Check the server's variables before the first request; shut down gracefully."""
    tokens.check(serving())
    limits.check(serving())
    async with shutting_down(app):
        yield


app = GracefulApp(
    routes=[
        Route("/circadian/health", health),
        Route("/circadian/metrics", show_metrics),
        Route("/circadian/agents", agents),
        Route("/circadian/agents/{name}", agent, methods=["PUT"]),
        Route("/circadian/agents/{name}/events", post_events, methods=["POST"]),
        Route("/circadian/me", erase_me, methods=["DELETE"]),
    ],
    middleware=[Middleware(Guard), Middleware(Throttle)],
    exception_handlers={CircadianError: _failed, HTTPException: _refused},
    lifespan=lifespan,
)
