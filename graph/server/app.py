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

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from json import JSONDecodeError
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import httpx
from langgraph.store.base import BaseStore, PutOp
from langgraph_sdk.client import LangGraphClient
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from graph.server import tokens
from graph.server.auth import INTERNAL_HOST, Guard, Throttle, check_limits, own_namespace, why_full
from graph.server.settings import AGENT, GRAPH, serving
from graph.server.shutdown import GracefulApp, shutting_down
from graph.server.tokens import OPERATOR
from memory import forgetting, messages, telemetry
from memory.errors import CircadianError, InputError
from memory.events import inbox
from memory.forgetting import erase_memories
from memory.records import Scope, thread_id
from memory.runtime import Process, process_now
from memory.storage import PAGE, count_items, list_items, namespaces_below, write_batch

SECONDS = 3.0
"""A dependency that has not answered by then is down."""

LONGEST_NAME = 200
"""Characters of an agent's name."""


# Erasing a user


async def erase_user(user: str, client: LangGraphClient, process: Process) -> dict[str, int]:
    """Delete everything of a user, schedules first so that no run makes anything new.

    `client` sends its requests as this user. Idempotent: after an interruption, call it again.
    """
    store = process.served_store
    counted = {
        "schedules": await _schedules(client),
        "threads": await _threads(client),
        "assistants": await _assistants(client),
    }
    await _checkpoints(user, process)
    counted["memories"] = await erase_memories(process.resources.semantic, user)
    counted["records"] = await _records(store, user)
    await forgetting.clean(store, forgetting.STORE_TABLES)
    await forgetting.clean(process.saver, forgetting.SAVER_TABLES)
    return counted


async def _schedules(client: LangGraphClient) -> int:
    deleted = 0
    while page := await client.crons.search(limit=PAGE):
        for cron in page:
            await client.crons.delete(cron["cron_id"])
        deleted += len(page)
    return deleted


async def _threads(client: LangGraphClient) -> int:
    """Delete threads with their runs and checkpoints; running ones are cancelled first."""
    deleted = 0
    while page := await client.threads.search(limit=PAGE):
        for thread in page:
            id_ = thread["thread_id"]
            for run in await client.runs.list(id_, limit=PAGE):
                if run["status"] in ("pending", "running"):
                    await client.runs.cancel(id_, run["run_id"], wait=True)
            await client.threads.delete(id_)
        deleted += len(page)
    return deleted


async def _checkpoints(user: str, process: Process) -> None:
    """Delete the checkpoints of threads that only the store knows, from a crash or from Python.

    Must precede `_records`: those threads are found by their records.
    """
    below = await namespaces_below(process.served_store, own_namespace(user))
    for thread in {unquote(namespace[1]) for namespace in below if len(namespace) > 1}:
        assert process.saver is not None
        await process.saver.adelete_thread(thread)


async def _assistants(client: LangGraphClient) -> int:
    """Delete the assistants that the user made; the server's own stay."""
    deleted = 0
    while True:
        found = await client.assistants.search(limit=PAGE)
        made = [a for a in found if (a.get("metadata") or {}).get("created_by") != "system"]
        for assistant in made:
            await client.assistants.delete(assistant["assistant_id"])
        if not made:
            return deleted
        deleted += len(made)


async def _records(store: BaseStore, user: str) -> int:
    deleted = 0
    for namespace in await namespaces_below(store, own_namespace(user)):
        items = await list_items(store, namespace)
        await write_batch(store, [PutOp(namespace, item.key, None) for item in items])
        deleted += len(items)
    return deleted


# Health and metrics, for operators


class Health(TypedDict):
    """The state of one dependency."""

    ok: bool
    detail: str


async def health(request: Request) -> Response:
    """The state of each dependency; 503 if one is down."""
    _check_operator(request)
    parts = await health_of(process_now())
    ok = all(part["ok"] for part in parts.values())
    return JSONResponse({"ok": ok, "parts": parts}, status_code=200 if ok else 503)


async def show_metrics(request: Request) -> Response:
    """This process's counters, and the number of events that wait in all inboxes."""
    _check_operator(request)
    process = process_now()
    await health_of(process)
    telemetry.EVENTS_WAITING.set(await inbox.count_waiting(process.served_store))
    return Response(telemetry.exposition(), media_type=telemetry.CONTENT_TYPE)


def _check_operator(request: Request) -> None:
    if OPERATOR not in request.auth.scopes:
        raise HTTPException(403, f"this is for tokens with the permission {OPERATOR!r}")


async def health_of(process: Process) -> dict[str, Health]:
    """Each dependency by name; also sets the gauges. No model is called: its breaker knows."""
    semantic = process.resources.semantic
    store, memory = await asyncio.gather(
        _answer(count_items(process.served_store, ("health",))),
        _answer(semantic.run(lambda: semantic.open_table().count({"id": "health"}))),
    )
    found = {"store": store, "memory": memory}
    breakers = process.resources.breakers
    for name, breaker in (("model", breakers.model), ("embedder", breakers.embedder)):
        state = breaker.state
        found[name] = {"ok": state != "open", "detail": f"breaker {state}"}
    for name, part in found.items():
        telemetry.SERVICE_UP.labels(name).set(part["ok"])
    return found


async def _answer(question: object) -> Health:
    try:
        async with asyncio.timeout(SECONDS):
            await question  # type: ignore[misc]
    except TimeoutError:
        return {"ok": False, "detail": f"no answer within {SECONDS:g} s"}
    except CircadianError as error:
        return {"ok": False, "detail": str(error)}
    return {"ok": True, "detail": "answers"}


# The caller's agents


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
            messages.valid_event(inbox.completed(event, id_=str(uuid4()), owner=user, now=now))
            for event in raw
        ]
    except InputError as error:
        raise HTTPException(422, str(error)) from error
    if full := await why_full(user, serving(), more=len(events)):
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
    """The error's own line: the product raises it on purpose."""
    return JSONResponse({"detail": str(error)}, status_code=503)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"detail": error.detail}, status_code=error.status_code)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Check the server's variables before the first request; shut down gracefully."""
    tokens.check(serving())
    check_limits(serving())
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
