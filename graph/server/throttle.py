"""The bound on a user's requests a minute, on every route of the server."""

from __future__ import annotations

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.server import limits
from graph.server.auth import serving

TOO_MANY = 1008
"""A socket's code for what the server does not allow (RFC 6455, section 7.4.1)."""
IN_PROCESS = "circadian"
"""The client's host of what our own routes ask; from the network it is an address."""


class Throttle:
    """Answers 429 to a user who asks too often. Runs behind the authentication.

    On a socket each command is a request; it is closed where there are too many.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._serving = app, serving()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or not."""
        user = scope.get("user")
        ours = (scope.get("client") or ("", 0))[0] == IN_PROCESS
        if user is None or not getattr(user, "is_authenticated", False) or ours:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._app(scope, self._counted(user.identity, receive, send), send)
        elif await limits.allowed(user.identity, self._serving):
            await self._app(scope, receive, send)
        else:
            answer = JSONResponse({"detail": self._why()}, 429, headers={"Retry-After": "60"})
            await answer(scope, receive, send)

    def _counted(self, user: str, receive: Receive, send: Send) -> Receive:
        async def heard() -> Message:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return message
            if await limits.allowed(user, self._serving):
                return message
            await send({"type": "websocket.close", "code": TOO_MANY, "reason": self._why()})
            return {"type": "websocket.disconnect", "code": TOO_MANY}

        return heard

    def _why(self) -> str:
        return f"more than {self._serving.requests_per_minute} requests a minute"
