"""Who may look: headers that keep a page to itself, refusal of other sites, and sign-in by token.

A browser sends a cookie along with whatever any page asks of it. So every request that changes
something must say that it comes from our own pages, and the cookie stays out of all others.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from hmac import compare_digest
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.inspector.rendering import render

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""Content security policy: our own files and nothing else, no inline script or style."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

SAFE = ("GET", "HEAD")


def foreign(method: str, headers: Headers) -> str | None:
    """Why a request is not from our own pages; None if it is, or if it changes nothing.

    Browsers say it in Sec-Fetch-Site, older ones in Origin. What says neither is refused.
    """
    if method in SAFE:
        return None
    site = headers.get("sec-fetch-site")
    if site is not None:
        return None if site == "same-origin" else f"the request comes from another site ({site})"
    origin = headers.get("origin")
    if origin is None:
        return "the request does not say from where it comes"
    if urlsplit(origin).netloc == headers.get("host"):
        return None
    return f"the request comes from {origin:.100}"


class Shield:
    """Refuses what other sites ask for, and keeps other sites out of every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with the headers, or answer it with 403."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if why := foreign(scope["method"], Headers(scope=scope)):
            refusal = PlainTextResponse(f"Refused: {why}.\n", 403)
            await refusal(scope, receive, shielded(scope, send))
            return
        await self._app(scope, receive, shielded(scope, send))


def shielded(scope: Scope, send: Send) -> Send:
    """`send` with the headers; memory is in no cache, our own files may be."""
    cache = "max-age=3600" if _is_file(scope) else "no-store"
    return with_headers({**HEADERS, "Cache-Control": cache}, send)


def _is_file(scope: Scope) -> bool:
    """Whether the request is for one of our own files, and not for a page of the same name."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root).startswith("/static/")


def with_headers(headers: Mapping[str, str], send: Send) -> Send:
    """`send`, with more headers in the answer."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(headers)
        await send(message)

    return sending if headers else send


class OneTimeToken:
    """Signs in whoever opens the address with the token, once; from then on a cookie does.

    For a server on loopback that one person started: the address is printed on their terminal.
    Requests for another host name are refused, since a foreign name may lead to this machine.
    """

    def __init__(self, app: ASGIApp, *, token: str, port: int) -> None:
        self._app, self._token = app, token
        self._unused = True
        self._session = secrets.token_urlsafe(32)
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        # Cookies do not tell ports apart; several inspectors may run at once.
        self._cookie = f"circadian_inspect_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a signed-in request on; else sign in, or say how to."""
        if scope["type"] != "http" or _is_file(scope):
            await self._app(scope, receive, send)
            return
        await (self._answer(scope) or self._app)(scope, receive, send)

    def _answer(self, scope: Scope) -> Callable[[Scope, Receive, Send], Awaitable[None]] | None:
        asked = HTTPConnection(scope)
        if asked.headers.get("host") not in self._hosts:
            return PlainTextResponse("Refused: this address is for 127.0.0.1 alone.\n", 403)
        if compare_digest(asked.cookies.get(self._cookie, "").encode(), self._session.encode()):
            return None
        given = asked.query_params.get("token", "")
        if not given:
            return _unsigned("Open the address that circadian inspect printed.")
        if not compare_digest(given.encode(), self._token.encode()):
            return _unsigned("The address has a wrong token.")
        if scope["method"] != "GET":
            return _unsigned("The address is for a browser, once.")
        if not self._unused:
            return _unsigned("The address was used: it opens one browser, once.")
        self._unused = False
        answer = RedirectResponse(scope["path"], 303)
        answer.set_cookie(self._cookie, self._session, httponly=True, samesite="strict")
        return answer


def _unsigned(why: str) -> Response:
    return HTMLResponse(render("unsigned.html", why=why, static="/static"), 401)
