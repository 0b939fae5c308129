"""Routes beside LangGraph Server's own, behind the same authentication.

    GET    /circadian/health            each dependency's state; 503 where one is down (operators)
    GET    /circadian/metrics           Prometheus' text format (operators)
    GET    /circadian/agents            one's agents, with the thread of each
    PUT    /circadian/agents/NAME       the thread of the agent NAME, made where there is none
    POST   /circadian/agents/NAME/events  put events into its inbox; its next run takes them
    DELETE /circadian/me                erase oneself: agents, threads, schedules, all memory

`GET /ok` of the server itself says, without authentication, that the process lives.
"""

from __future__ import annotations

from json import JSONDecodeError
from typing import Any
from uuid import uuid4

import httpx
from langgraph_sdk.client import LangGraphClient
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from graph.server import health as healths
from graph.server import limits
from graph.server.auth import serving
from graph.server.ending import EndingApp, lifespan
from graph.server.erase import erase_user
from graph.server.guard import Guard
from graph.server.throttle import IN_PROCESS, Throttle
from graph.server.tokens import OPERATOR
from memory import inbox, metrics
from memory.access import AGENT, GRAPH
from memory.errors import CircadianError, InputError
from memory.resources import process_now
from memory.scope import Scope, thread_id

LONGEST_NAME = 200
PAGE = 100


async def health(request: Request) -> Response:
    """Whether each thing that the server needs is there."""
    _operator(request)
    parts = await healths.parts(process_now())
    ok = all(part["ok"] for part in parts.values())
    return JSONResponse({"ok": ok, "parts": parts}, status_code=200 if ok else 503)


async def show_metrics(request: Request) -> Response:
    """What this process counted, and how many events wait in all inboxes."""
    _operator(request)
    process = process_now()
    await healths.parts(process)
    metrics.EVENTS_WAITING.set(await inbox.count_waiting(process.served_store))
    return Response(metrics.exposition(), media_type=metrics.CONTENT_TYPE)


async def agents(request: Request) -> Response:
    """The caller's agents by name."""
    found: list[dict[str, Any]] = []
    client = _client(request)
    while True:
        page = await client.threads.search(limit=PAGE, offset=len(found))
        found += [dict(one) for one in page]
        if len(page) < PAGE:
            break
    named = [(one, (one.get("metadata") or {}).get(AGENT)) for one in found]
    listed = [
        {"agent": name, "thread_id": str(one["thread_id"]), "status": one["status"]}
        for one, name in named
        if name
    ]
    return JSONResponse(sorted(listed, key=lambda one: str(one["agent"])))


async def agent(request: Request) -> Response:
    """The thread of one agent. The same name gives the same thread for ever."""
    name = _name(request)
    thread = thread_id(_user(request), name)
    await _client(request).threads.create(
        thread_id=thread, if_exists="do_nothing", graph_id=GRAPH, metadata={AGENT: name}
    )
    return JSONResponse({"agent": name, "thread_id": thread})


async def post_events(request: Request) -> Response:
    """Put one event, or a list, into the inbox. They are there when this answers.

    Each has `text`, and may have `id`, `at` (ISO 8601), `sender`, `channel` and `addressed`. One
    with an id can be sent again, and is taken once.
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
            inbox.valid_event(inbox.completed(one, id_=str(uuid4()), owner=user, now=now))
            for one in raw
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
    """Erase everything of the caller. What was deleted stays deleted if this is broken off."""
    counted = await erase_user(_user(request), _client(request), process_now())
    return JSONResponse({"erased": counted})


def _user(request: Request) -> str:
    return str(request.user.identity)


def _operator(request: Request) -> None:
    if OPERATOR not in request.auth.scopes:
        raise HTTPException(403, f"this is for tokens with the permission {OPERATOR!r}")


def _name(request: Request) -> str:
    name = str(request.path_params["name"])
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise HTTPException(422, f"an agent's name has 1 to {LONGEST_NAME} printable characters")
    return name


def _client(request: Request) -> LangGraphClient:
    """The server itself, asked in this process as the caller.

    Not by `get_client()`: without a URL that goes round the authentication.
    """
    names = ("authorization", "x-api-key")
    headers = {name: request.headers[name] for name in names if name in request.headers}
    transport = httpx.ASGITransport(app=request.app, client=(IN_PROCESS, 0))
    return LangGraphClient(
        httpx.AsyncClient(transport=transport, base_url="http://server", headers=headers)
    )


async def _failed(request: Request, error: Exception) -> Response:
    """What the product raises on purpose, as its one clear line."""
    return JSONResponse({"detail": str(error)}, status_code=503)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"detail": error.detail}, status_code=error.status_code)


app = EndingApp(
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
