"""The inspector on a server: its users' own agents, behind the authentication of the API.

A browser sends no `Authorization`. So a person signs in with their token, which a cookie keeps for
the pages alone; `SignIn` puts it into the header, and everything after that is as for the API.
"""

from __future__ import annotations

from contextlib import aclosing

from langgraph_sdk import Auth
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from graph.inspector import (
    BackgroundJobs,
    Host,
    NightProgress,
    Tell,
    Visit,
    foreign,
    inspector,
    read_form,
    render,
    shielded,
)
from graph.server.agents import ServedAgent, agent_threads
from graph.server.auth import authenticate
from graph.server.settings import INSPECT, serving
from graph.use_cases import AgentContext, applying, nights, want_preview
from memory.models import model_name
from memory.runtime import process_now

COOKIE = "circadian_inspect"

SERVER = "circadian.server"
"""Scope key of the server's application; the pages are an application of their own."""

JOBS = BackgroundJobs()


class OwnAgents(Host):
    """The caller's agents, which the server runs."""

    jobs = JOBS

    @property
    def can_sign_out(self) -> bool:  # type: ignore[override] # it depends on the server
        """Whether people sign in here."""
        return not serving().open

    async def agents(self, request: Request) -> list[str]:
        """The names of the caller's agents."""
        return [name for name, _ in await agent_threads(_outer(request))]

    async def context(self, request: Request, agent: str) -> AgentContext:
        """The context of this agent."""
        return ServedAgent(_outer(request), agent).context

    def model(self) -> str:
        """The name of the server's model."""
        return model_name(process_now().resources.chat_model)

    async def go_on(self, visit: Visit) -> int | None:
        """Go on with the answer in a run of the server."""
        agent = _agent(visit)
        await _run_to_end(agent, None)
        return int((await agent.context.snapshot()).values["tick"])

    async def preview(self, visit: Visit, tell: Tell) -> str | None:
        """Make the preview in a run of the server."""
        agent = _agent(visit)
        before = {line["id"] for line in await nights.list_nights(agent.context)}
        await want_preview(agent.context)
        await _run_to_end(agent, tell)
        made = [line["id"] for line in await nights.list_nights(agent.context)]
        return made[-1] if made and made[-1] not in before else None

    async def apply(self, visit: Visit, night: str, tell: Tell) -> None:
        """Approve the night, and apply it in a run of the server."""
        agent = _agent(visit)
        async with applying(agent.context, night):
            pass
        await _run_to_end(agent, tell)

    async def forgotten(self, visit: Visit) -> None:
        """Renew the thread that the server shows: it is a copy from the end of the last run."""
        await _agent(visit).refresh()


def _outer(request: Request) -> Request:
    """The request as the server's application sees it."""
    return Request({**request.scope, "app": request.scope[SERVER]})


def _agent(visit: Visit) -> ServedAgent:
    return ServedAgent(_outer(visit.request), visit.agent)


async def _run_to_end(agent: ServedAgent, tell: Tell | None) -> None:
    progress = NightProgress(tell or (lambda line: None))
    async with aclosing(agent.follow({})) as events:
        async for event in events:
            await progress.part({"type": "custom", "ns": (), "data": event})


_application = inspector(OwnAgents())


async def _pages(scope: Scope, receive: Receive, send: Send) -> None:
    """The pages as a plain function, which the server's lists of routes leave out."""
    await _application(scope, receive, send)


PAGES = Mount(INSPECT, app=_pages)


class SignIn:
    """Stands before the pages: signs people in and out, and turns their cookie into a header."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        root = str(scope.get("root_path", ""))
        path = str(scope.get("path", "")).removeprefix(root)
        if scope["type"] != "http" or not (path == INSPECT or path.startswith(f"{INSPECT}/")):
            await self._app(scope, receive, send)
            return
        below, home = path.removeprefix(INSPECT), f"{root}{INSPECT}"
        if below.startswith("/static/"):
            await _application({**scope, "root_path": home}, receive, send)
        elif below == "":
            await RedirectResponse(f"{home}/", 303)(scope, receive, send)
        elif below in ("/sign-in", "/sign-out") and scope["method"] == "POST":
            answer = await _sign_in_or_out(Request(scope, receive), home, out=below == "/sign-out")
            await answer(scope, receive, shielded(scope, send))
        else:
            scope = _with_token(scope)
            if (why := await _why_not(scope)) is None:
                await self._app(scope, receive, send)
            else:
                await _sign_in_page(home, why)(scope, receive, shielded(scope, send))


def _with_token(scope: Scope) -> Scope:
    """The request with its cookie's token as a header, unless a header has a token already."""
    headers, scope = Headers(scope=scope), {**scope, SERVER: scope["app"]}
    has_token = "authorization" in headers or "x-api-key" in headers
    if (token := HTTPConnection(scope).cookies.get(COOKIE)) and not has_token:
        header = (b"authorization", f"Bearer {token}".encode("latin-1", "replace"))
        scope["headers"] = [*scope["headers"], header]
    return scope


async def _why_not(scope: Scope) -> str | None:
    """Why a request is not authenticated. None: it is. Empty: it brings no token."""
    headers = Headers(scope=scope)
    try:
        await authenticate(dict(headers.raw))
    except (Auth.exceptions.HTTPException, HTTPException) as error:
        has_token = "authorization" in headers or "x-api-key" in headers
        return f"{error.detail}." if has_token else ""
    return None


async def _sign_in_or_out(request: Request, home: str, *, out: bool) -> Response:
    """Sign a person in or out; only requests from our own pages may."""
    if why := foreign(request.method, request.headers):
        return PlainTextResponse(f"Refused: {why}.\n", 403)
    secure = request.url.scheme == "https"
    answer = RedirectResponse(f"{home}/", 303)
    if out:
        answer.delete_cookie(COOKIE, path=home, secure=secure, httponly=True, samesite="strict")
        return answer
    try:
        token = (await read_form(request)).get("token", "").strip()
    except HTTPException as error:
        return PlainTextResponse(f"Refused: {error.detail}.\n", error.status_code)
    header = (b"authorization", f"Bearer {token}".encode("latin-1", "replace"))
    if why := await _why_not({**request.scope, "headers": [header]}):
        return _sign_in_page(home, why)
    answer.set_cookie(COOKIE, token, path=home, secure=secure, httponly=True, samesite="strict")
    return answer


def _sign_in_page(home: str, why: str) -> Response:
    page = render("sign_in.html", why=why, action=f"{home}/sign-in", static=f"{home}/static")
    return HTMLResponse(page, 401)
