"""Nothing without a user: the server also has routes that its authentication is not asked about.

LangGraph Server leaves its "meta" routes open. Among those of `langgraph dev` are one that shows
any thread, one that empties the server and one that deploys it.
"""

from __future__ import annotations

from langgraph_sdk import Auth
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from graph.server.auth import authenticate, serving
from graph.server.tokens import OPERATOR

PUBLIC = ("/", "/ok", "/info", "/docs", "/openapi.json")
"""What tells nothing of anybody: that it lives, its version, and how it is asked."""
METRICS = "/metrics"
IN_PROCESS = "/noauth"
"""The root path of what the server asks itself; no request can set it."""


class Guard:
    """Lets through what has a user, what is public, and the server's metrics for operators."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it with 401 or 403."""
        refused = await _refused(scope)
        if refused is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocketClose(code=1008)(scope, receive, send)
        else:
            await refused(scope, receive, send)


async def _refused(scope: Scope) -> JSONResponse | None:
    root, user = scope.get("root_path", ""), scope.get("user")
    if serving().open or root.split("/")[:2] == IN_PROCESS.split("/"):
        return None
    if getattr(user, "is_authenticated", False):
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
