"""What every request passes: the guard of routes without a user, and the limit of requests."""

from __future__ import annotations

from typing import Any

from langgraph_sdk import Auth
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from graph.server.auth import allowed, authenticate
from graph.server.settings import serving
from graph.server.tokens import OPERATOR

PUBLIC = ("/", "/ok", "/info", "/docs", "/openapi.json")
"""Routes that disclose nothing of any user."""

METRICS = "/metrics"

INTERNAL_ROOT = "/noauth"
"""The root path of the server's requests to itself; no request from outside can set it."""

INTERNAL_HOST = "circadian"
"""The client's host of our own routes' requests; from the network it is an address."""

POLICY_VIOLATION = 1008
"""A socket's close code for what the server does not allow (RFC 6455, section 7.4.1)."""


class Guard:
    """Lets through requests of a user, public routes, and the server's metrics for operators.

    LangGraph Server does not authenticate its "meta" routes. Among those of `langgraph dev` are one
    that shows any thread, one that empties the server and one that deploys it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with 401 or 403."""
        refusal = await _refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocketClose(code=POLICY_VIOLATION)(scope, receive, send)
        else:
            await refusal(scope, receive, send)


async def _refusal(scope: Scope) -> JSONResponse | None:
    root = scope.get("root_path", "")
    if serving().open or root.split("/")[:2] == INTERNAL_ROOT.split("/") or _user(scope):
        return None
    path = str(scope["path"]).removeprefix(root) or "/"
    if path in PUBLIC:
        return None
    if path != METRICS:
        return JSONResponse({"detail": "this route is not for users of the server"}, 403)
    try:
        found = await authenticate(dict(Headers(scope=scope).raw))
    except Auth.exceptions.HTTPException as error:
        return JSONResponse({"detail": error.detail}, error.status_code)
    if OPERATOR in found["permissions"]:
        return None
    return JSONResponse({"detail": f"this is for tokens with the permission {OPERATOR!r}"}, 403)


class Throttle:
    """Answers 429 to a user with too many requests a minute, on every route of the server.

    On a socket each command counts as a request; a socket with too many is closed.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with 429."""
        user = _user(scope)
        internal = (scope.get("client") or ("", 0))[0] == INTERNAL_HOST
        if user is None or internal:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._app(scope, _counting(user, receive, send), send)
        elif await allowed(user, serving()):
            await self._app(scope, receive, send)
        else:
            answer = JSONResponse({"detail": _too_many()}, 429, headers={"Retry-After": "60"})
            await answer(scope, receive, send)


def _counting(user: str, receive: Receive, send: Send) -> Receive:
    """`receive` of a socket, which counts what it receives and closes the socket at the limit."""

    async def counted() -> Message:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return message
        if await allowed(user, serving()):
            return message
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": _too_many()})
        return {"type": "websocket.disconnect", "code": POLICY_VIOLATION}

    return counted


def _too_many() -> str:
    return f"more than {serving().requests_per_minute} requests a minute"


def _user(scope: Scope) -> str | None:
    user: Any = scope.get("user")
    return user.identity if getattr(user, "is_authenticated", False) else None
