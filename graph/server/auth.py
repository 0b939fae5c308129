"""Who sends a request, what belongs to them, and how much they may use.

LangGraph Server calls `auth` for every request. Each user has a token (`graph.server.settings`).
Their threads, schedules and assistants carry their name as `owner`. Their memory is in the
store's namespaces that begin with their name, and the ids of their agents' threads derive from it.
Without a secret and a key the server is open, and everybody is `local`: that is for a developer's
server on a loopback address. `Guard` and `Throttle` stand before all routes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext, suppress
from functools import lru_cache, wraps
from math import ceil
from time import time
from typing import Any, TypeVar, cast
from uuid import UUID

from langgraph_sdk import Auth, get_client
from langgraph_sdk.errors import NotFoundError
from limits import RateLimitItemPerMinute
from limits.aio.storage import Storage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.storage import storage_from_string
from starlette import types as asgi
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.websockets import WebSocketClose

from graph.inspector import with_headers
from graph.server import settings
from graph.server.accounts import LEDGER, REVOKED, label_of, why_too_many
from graph.server.agents import OWNER, erase_agent, held, own_name
from graph.server.health import refresh_gauges
from graph.server.settings import (
    AGENT,
    ERASED,
    FORBIDDEN,
    HELD,
    INTERNAL_HOST,
    INVALID,
    OPERATOR,
    Serving,
    ignored_settings,
    refused_settings,
    serving,
    why_foreign,
)
from memory import night, telemetry
from memory.errors import BusyError, InputError, ServerError, TokenError
from memory.records import LOCAL_USER, Scope
from memory.runtime import IGNORED, process_now

auth = Auth()
log = logging.getLogger("circadian")

_DERIVED = 5
"""The UUID version of ids that are derived from a name."""

Context = Auth.types.AuthContext
Filter = dict[str, Any] | None
Rule = TypeVar("Rule", bound=Callable[..., Awaitable[Filter]])


@auth.authenticate
async def authenticate(headers: dict[bytes, bytes], path: str = "") -> Auth.types.MinimalUserDict:
    """The user of a token: `Authorization: Bearer TOKEN`, or `X-Api-Key: TOKEN`.

    A readiness probe needs no token, and has no user.
    """
    if path.endswith(READY):
        return {"identity": "probe", "permissions": [], "is_authenticated": False}
    if serving().open:
        return {"identity": LOCAL_USER, "permissions": [OPERATOR]}
    token = _token(headers)
    if token is None:
        raise _error(401, "no token: send it as `Authorization: Bearer TOKEN` or `X-Api-Key`")
    try:
        # In a thread: it may fetch the issuer's keys.
        found = await asyncio.to_thread(settings.user_of, token, serving())
    except TokenError as error:
        raise _error(401, str(error)) from error
    except ServerError as error:  # LangGraph Server answers 500 to its own exception here
        log.error("%s: %s", error, error.__cause__)
        raise HTTPException(503, str(error)) from error
    if await REVOKED.cover(found):
        raise _error(401, "the token was revoked: get another")
    return {"identity": found.name, "permissions": list(found.permissions)}


def _token(headers: dict[bytes, bytes]) -> str | None:
    bearer = headers.get(b"authorization", b"").decode("latin-1")
    scheme, _, token = bearer.partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get(b"x-api-key", b"").decode("latin-1").strip() or None


def _unless_open(rule: Rule) -> Rule:
    @wraps(rule)
    async def handler(ctx: Context, value: Any) -> Filter:
        return None if serving().open else await rule(ctx, value)

    return cast(Rule, handler)


@auth.on
@_unless_open
async def deny_by_default(ctx: Context, value: Any) -> Filter:
    """Refuse everything that no rule below allows."""
    raise _forbidden(f"{ctx.resource} {ctx.action}")


@auth.on.threads
@_unless_open
async def threads(ctx: Context, value: Any) -> Filter:
    """Users may read, search, change and delete only their own threads."""
    return {OWNER: ctx.user.identity}


@auth.on.threads.create
@_unless_open
async def create_thread(ctx: Context, value: Any) -> Filter:
    """A new thread is its creator's; nobody may take the id of another user's thread."""
    user, metadata = ctx.user.identity, value.setdefault("metadata", {})
    await _check_free(user, UUID(str(value["thread_id"])), metadata)
    metadata[OWNER] = user
    return {OWNER: user}


@auth.on.threads.create_run
async def create_run(ctx: Context, value: Any) -> Filter:
    """A run needs a thread: without one, nobody would find the agent's memory again."""
    if value.get("thread_id") is None:
        raise _error(422, "a run needs a thread: PUT /circadian/agents/NAME returns the agent's")
    if str(value["thread_id"]) in HELD or ctx.user.identity in ERASED:
        raise _error(409, "the agent's memory is being changed: try again")
    run = value.get("kwargs") or {}
    _check_settings(run, run=True)
    scope, brought = Scope(ctx.user.identity, str(value["thread_id"])), len(_brought_by(run))
    if over := await why_too_many(scope, brought):
        raise _error(*over)
    metadata = value.setdefault("metadata", {})
    if ignored := ignored_settings(run):
        log.warning("a run's configurable was ignored: %s", "; ".join(ignored[:SHOWN]))
        # Bound to the run: LangGraph Server may pass a thread's metadata on to later runs.
        metadata[IGNORED] = {str(value.get("run_id")): ignored[:SHOWN]}
    if serving().open:
        return None
    user = ctx.user.identity
    if value.get("if_not_exists") == "create":
        await _check_free(user, UUID(str(value["thread_id"])), metadata)
    given = run.get("input")
    request = given.get("request") if isinstance(given, Mapping) else None
    if (request not in FREE or brought) and (spent := await LEDGER.why_spent(user)):
        going = await night.unfinished(process_now().served_store, scope)
        if request or brought or going is None or night.status_of(going) != "approved":
            telemetry.THROTTLED.inc()
            raise _error(429, spent)
    metadata[OWNER] = user
    return {OWNER: user}


@auth.on.threads.delete
async def delete_thread(ctx: Context, value: Any) -> Filter:
    """Erase the agents' memory and files too: without the threads nobody would find them.

    All of them or none: the server refuses a list with a thread that is not the user's. Deleting a
    run asks for the same right, and erases nothing.
    """
    user, client = ctx.user.identity, get_client()
    kept = None if serving().open else {OWNER: user}
    ids = [*dict.fromkeys(map(str, value.get("thread_ids") or [value["thread_id"]]))]
    if value.get("run_id"):
        return kept
    if not serving().open and [id_ for id_ in ids if await _owner_of(UUID(id_)) != user]:
        return kept
    try:
        async with AsyncExitStack() as holds:
            for thread in ids:
                await holds.enter_async_context(held(thread, thread, client))
            for thread in ids:
                await erase_agent(Scope(user, thread))
    except BusyError as error:
        raise _error(409, str(error)) from error
    return kept


@auth.on(resources="threads", actions="update")
@auth.on(resources="assistants")
@_unless_open
async def change(ctx: Context, value: Any) -> Filter:
    """Users may change or delete only what they own; owner and agent's name stay."""
    metadata = value.get("metadata") or {}
    metadata.pop(AGENT, None)
    if OWNER in metadata:
        metadata[OWNER] = ctx.user.identity
    return {OWNER: ctx.user.identity}


@auth.on.assistants.create
async def create_assistant(ctx: Context, value: Any) -> Filter:
    """An assistant (settings for the agent's graph) belongs to its creator."""
    _check_settings(value)
    if serving().open:
        return None
    metadata = value.setdefault("metadata", {})
    if metadata.get("created_by") == "system":
        raise _error(403, "only the server makes assistants with created_by: system")
    metadata[OWNER] = ctx.user.identity
    return {OWNER: ctx.user.identity}


@auth.on.assistants.update
async def change_assistant(ctx: Context, value: Any) -> Filter:
    """Refuse the settings that `create_assistant` refuses."""
    _check_settings(value)
    return await change(ctx, value)


@auth.on(resources="assistants", actions=["read", "search"])
@_unless_open
async def see_assistants(ctx: Context, value: Any) -> Filter:
    """Users see their own assistants, and the one that the server made of the graph."""
    return {"$or": [{OWNER: ctx.user.identity}, {"created_by": "system"}]}


@auth.on.crons
async def crons(ctx: Context, value: Any) -> Filter:
    """Users may access only their own schedules, each for a thread that must be theirs too."""
    if ctx.action == "create" and value.get("thread_id") is None:
        raise _error(422, "a schedule needs an agent's thread: `circadian schedule` makes one")
    if ctx.action in ("create", "update"):
        _check_settings(value.get("payload") or {})
    if serving().open:
        return None
    if ctx.action in ("create", "update"):
        # The schedule's metadata decide who sees it; those of its payload go to its runs.
        if ctx.action == "create":
            value["payload"].setdefault("metadata", {})
        for metadata in (value.get("metadata"), (value.get("payload") or {}).get("metadata")):
            if metadata is not None:
                metadata[OWNER] = ctx.user.identity
    return {OWNER: ctx.user.identity}


@auth.on.store
@_unless_open
async def store(ctx: Context, value: Any) -> Filter:
    """Users may read only their own memory. Only the agent and its routes change it."""
    user = ctx.user.identity
    if ctx.action == "list_namespaces" and not value.get("namespace"):
        value["namespace"] = (label_of(user),)
    if not is_own_namespace(user, value.get("namespace")):
        raise _forbidden("another's memory")
    if ctx.action in ("put", "delete"):
        raise _forbidden("memory is changed through the agent; that")
    return None


SHOWN = 3
"""Most ignored settings that a run names."""

FREE = ("stop", "clear_stop", "wake")
"""Requests that call no model."""


def _brought_by(run: Mapping[str, Any]) -> list[Any]:
    """The messages and events that a run brings, as input or as an update."""
    given, update = run.get("input"), (run.get("command") or {}).get("update")
    pairs = [*given.items()] if isinstance(given, Mapping) else []
    pairs += update.items() if isinstance(update, Mapping) else update or []
    lists = [value for name, value in pairs if name in ("messages", "events") and value]
    return [item for value in lists for item in (value if isinstance(value, list) else [value])]


async def _check_free(user: str, thread: UUID, metadata: Any) -> None:
    """Raise 403 for the id of another user's thread, even if the server does not know it.

    The id is the user's own if it derives from the agent's name, or if the agent has memory.
    """
    if own_name(user, str(thread), metadata) is not None:
        return
    memory = process_now().served_store
    found = await memory.alist_namespaces(prefix=("*", str(thread)), max_depth=2)
    others = any(not is_own_namespace(user, namespace) for namespace in found)
    # One error, whether or not the agent has memory: guessing names must not reveal which have.
    if others or (thread.version == _DERIVED and not found and await _owner_of(thread) != user):
        raise _forbidden("another's thread")


async def _owner_of(thread: UUID) -> str | None:
    """The owner of a thread, as the server knows it; asked without authentication.

    A run does not name its thread's agent, and that agent may have no memory yet.
    """
    try:
        known = await get_client().threads.get(str(thread))
    except NotFoundError:
        return None
    return (known.get("metadata") or {}).get(OWNER)


# What belongs to whom


def is_own_namespace(user: str, namespace: Sequence[str] | None) -> bool:
    """Whether a store namespace is entirely the user's."""
    return list(namespace or ())[:1] == [label_of(user)]


# How much a user may use: requests a minute


async def count_request(user: str, serving: Serving) -> tuple[bool, dict[str, str]]:
    """Count a request; whether it is within the limit, and headers with limit, rest and reset."""
    if serving.requests_per_minute is None:
        return True, {}
    limit = RateLimitItemPerMinute(serving.requests_per_minute)
    counts = limiter(serving.limits_storage)
    fits, window = await counts.hit(limit, user), await counts.get_window_stats(limit, user)
    reset = max(1, ceil(window.reset_time - time()))
    found = {"Limit": limit.amount, "Remaining": window.remaining, "Reset": reset}
    return fits, {f"X-RateLimit-{name}": str(value) for name, value in found.items()}


@lru_cache(maxsize=1)
def limiter(address: str) -> MovingWindowRateLimiter:
    """Counts per process by default; several replicas need a storage that they share.

    Raises InputError if the storage cannot be used.
    """
    try:
        storage = storage_from_string(f"async+{address}")
    except Exception as error:
        raise InputError(
            f"CIRCADIAN_LIMITS_STORAGE: {address!r:.60} cannot be used: {error}"
        ) from error
    assert isinstance(storage, Storage)
    return MovingWindowRateLimiter(storage)


def _check_settings(given: Mapping[str, Any], *, run: bool = False) -> None:
    """Raise 403 or 422 if a run, an assistant or a schedule has settings that it may not have."""
    if found := refused_settings(given, serving(), run=run):
        raise _error(*found)


def _error(status: int, why: str) -> Exception:
    return Auth.exceptions.HTTPException(status_code=status, detail=why)


def _forbidden(what: str) -> Exception:
    return _error(403, f"{what} is not for you")


# What every request passes: the guard of routes without a user, and the limit of requests


READY = "/circadian/ready"

PUBLIC = ("/", "/ok", "/info", "/docs", "/openapi.json", READY)
"""Routes that disclose nothing of any user."""

METRICS = "/metrics"

PRUNE = "/threads/prune"

DELETING = asyncio.Lock()
"""One deletion of threads at a time: `langgraph dev` finds the thread's position in its list, waits
for `delete_thread`, and deletes whatever is there by then, maybe another user's thread."""

INTERNAL_ROOT = "/noauth"
"""The root path of the server's requests to itself; no request from outside can set it."""

WORK = re.compile(r"/circadian/(agents|inspect)/[^/]+/(sleep|preview|questions/.+)$")
"""Routes and pages that store something for a run that they then begin."""

POLICY_VIOLATION = 1008
"""A socket's close code for what the server does not allow (RFC 6455, section 7.4.1)."""


class Guard:
    """Lets through requests of a user, public routes, and the server's metrics for operators.

    LangGraph Server does not authenticate its "meta" routes. Those of `langgraph dev` show any
    thread, empty the server, or deploy it.
    """

    def __init__(self, app: asgi.ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """Pass a request on, or answer it with 401 or 403."""
        refusal = await _refusal(scope)
        if refusal is None and _path(scope) in MISFITS:
            receive, refusal = await _check_body(scope, receive)
        if refusal is None:
            if _path(scope) == METRICS:
                await refresh_gauges()
            async with DELETING if _deletes_threads(scope) else nullcontext():
                await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocketClose(code=POLICY_VIOLATION)(scope, receive, send)
        else:
            await refusal(scope, receive, send)


def _deletes_threads(scope: asgi.Scope) -> bool:
    path = _path(scope)
    return path == PRUNE or (scope.get("method") == "DELETE" and path.startswith("/threads/"))


def _keeps_latest(given: Mapping[str, Any]) -> str | None:
    """Why pruning that keeps threads is refused: `delete_thread` cannot tell, and would erase."""
    kept = "keep_latest: an agent keeps its newest `checkpoints_kept` by itself"
    return kept if given.get("strategy") == "keep_latest" else None


def _searches_nowhere(given: Mapping[str, Any]) -> str | None:
    """Why a search without a namespace is refused; LangGraph Server would answer it with 500."""
    listed = isinstance(given.get("namespace_prefix"), list)
    return None if listed else "namespace_prefix: a list of labels is missing"


MISFITS = {PRUNE: _keeps_latest, "/store/items/search": _searches_nowhere}
"""By path: a check of the body that LangGraph Server does not make itself."""


async def _check_body(
    scope: asgi.Scope, receive: asgi.Receive
) -> tuple[asgi.Receive, JSONResponse | None]:
    """`receive`, which gives the body once more, and the refusal of a body in MISFITS."""
    body = await Request(scope, receive).body()
    read: list[asgi.Message] = [{"type": "http.request", "body": body}]

    async def again() -> asgi.Message:
        return read.pop() if read else await receive()

    with suppress(ValueError):  # The server says what is wrong with a body that is no JSON.
        given = json.loads(body)
        if isinstance(given, dict) and (why := MISFITS[_path(scope)](given)):
            return again, JSONResponse({"detail": why}, INVALID)
    return again, None


def _path(scope: asgi.Scope) -> str:
    return str(scope["path"]).removeprefix(scope.get("root_path", "")) or "/"


async def _refusal(scope: asgi.Scope) -> JSONResponse | None:
    if scope.get("root_path", "").split("/")[:2] == INTERNAL_ROOT.split("/"):
        return None
    if not _is_internal(scope) and (why := why_foreign(scope, serving())):
        return JSONResponse({"detail": why}, FORBIDDEN)
    if serving().open or _user(scope):
        return None
    path = _path(scope)
    if path in PUBLIC:
        return None
    if path != METRICS:
        return JSONResponse({"detail": "this route is not for users of the server"}, 403)
    try:
        found = await authenticate(dict(Headers(scope=scope).raw))
    except (Auth.exceptions.HTTPException, HTTPException) as error:
        return JSONResponse({"detail": error.detail}, error.status_code)
    if OPERATOR in found["permissions"]:
        return None
    return JSONResponse({"detail": f"this is for tokens with the permission {OPERATOR!r}"}, 403)


class Throttle:
    """Answers 429 to a user with too many requests a minute, on every route of the server.

    A user whose model tokens are used up gets 429 from the routes of WORK. On a socket each command
    counts as a request: one command too many, or a token no longer valid, closes the socket.
    """

    def __init__(self, app: asgi.ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """Pass a request on, or answer it with 429."""
        user = _user(scope)
        if user is None or _is_internal(scope):
            return await self._app(scope, receive, send)
        if scope["type"] == "websocket":
            return await self._app(scope, _checked(user, scope, receive, send), send)
        fits, left = await count_request(user, serving())
        why = None if fits else _too_many()
        if fits and scope["method"] == "POST" and WORK.search(scope["path"]):
            why = await LEDGER.why_spent(user)
        if why is None:
            await self._app(scope, receive, with_headers(left, send))
        else:
            telemetry.THROTTLED.inc()
            more = {} if fits else {"Retry-After": left["X-RateLimit-Reset"]}
            await JSONResponse({"detail": why}, 429, {**left, **more})(scope, receive, send)


def _checked(user: str, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> asgi.Receive:
    """`receive` of a socket; it closes the socket at a command that is refused as a request."""

    async def checked() -> asgi.Message:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return message
        try:
            await authenticate(dict(Headers(scope=scope).raw))
        except (Auth.exceptions.HTTPException, HTTPException) as error:
            why = error.detail
        else:
            if (await count_request(user, serving()))[0]:
                return message
            telemetry.THROTTLED.inc()
            why = _too_many()
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": why[:100]})
        return {"type": "websocket.disconnect", "code": POLICY_VIOLATION}

    return checked


def _too_many() -> str:
    return f"more than {serving().requests_per_minute} requests a minute"


def _is_internal(scope: asgi.Scope) -> bool:
    """Whether the request comes from one of our own routes, in this process."""
    return bool((scope.get("client") or ("", 0))[0] == INTERNAL_HOST)


def _user(scope: asgi.Scope) -> str | None:
    user: Any = scope.get("user")
    return user.identity if getattr(user, "is_authenticated", False) else None
