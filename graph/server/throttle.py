"""The bound on a user's requests a minute, on every route of the server."""

from __future__ import annotations

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from graph.server import limits
from graph.server.auth import serving

IN_PROCESS = "circadian"
"""The client's host of what our own routes ask; from the network it is an address."""


class Throttle:
    """Answers 429 to a user who asks too often. Runs behind the authentication."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._serving = app, serving()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or not."""
        user = scope.get("user")
        ours = (scope.get("client") or ("", 0))[0] == IN_PROCESS
        known = scope["type"] == "http" and getattr(user, "is_authenticated", False) and not ours
        if user is None or not known or await limits.allowed(user.identity, self._serving):
            await self._app(scope, receive, send)
            return
        detail = f"more than {self._serving.requests_per_minute} requests a minute"
        answer = JSONResponse({"detail": detail}, 429, headers={"Retry-After": "60"})
        await answer(scope, receive, send)
