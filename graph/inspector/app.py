"""The inspector as a Starlette application: who may look, its routes, its errors, its files.

A browser sends a cookie along with whatever any page asks of it. So every request that changes
something must say that it comes from our own pages, and the cookie stays out of all others.
Last comes the application on loopback, for whoever started it.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hmac import compare_digest
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.blocking import spare_collections
from graph.following import follow
from graph.inspector import activity, memories
from graph.inspector.visits import (
    STATIC,
    BackgroundJobs,
    Handler,
    Host,
    NightProgress,
    Tell,
    Visit,
    link,
    render,
    root_of,
    segment,
)
from graph.use_cases import AgentContext, applying, of_run, previewing, run
from memory.errors import (
    BusyError,
    CircadianError,
    ConflictError,
    InputError,
    NotFoundError,
    Refusal,
)
from memory.models import model_name

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


PAGES: Sequence[tuple[str, str, Handler]] = (
    ("GET", "/today", activity.today),
    ("POST", "/questions/{id}/{answer}", activity.answer),
    ("GET", "/memory", memories.memory_list),
    ("GET", "/memory/{id:path}", memories.one_memory),
    ("GET", "/correct/{id:path}", memories.correct_form),
    ("POST", "/correct/{id:path}", memories.do_correct),
    ("GET", "/forget/{id:path}", memories.forget_form),
    ("POST", "/forget/{id:path}", memories.do_forget),
    ("GET", "/people", activity.people_list),
    ("GET", "/people/{id}", activity.one_person),
    ("GET", "/people/{id}/forget", activity.forget_person_form),
    ("POST", "/people/{id}/forget", activity.forget_person),
    ("GET", "/nights", activity.night_list),
    ("GET", "/nights/{id}", activity.one_night),
    ("GET", "/nights/{id}/{action}", activity.night_action_form),
    ("POST", "/nights/{id}/{action}", activity.night_action),
    ("GET", "/preview", activity.preview_form),
    ("POST", "/preview", activity.start_preview),
    ("GET", "/ticks", activity.tick_list),
    ("GET", "/ticks/{number}", activity.one_tick),
    ("GET", "/log", activity.show_log),
    ("GET", "/progress", activity.show_work),
    ("GET", "/progress/events", activity.work_events),
)
"""Routes below `/AGENT`. GET changes nothing; POST comes from the inspector's own forms."""


def inspector(host: Host, middleware: Sequence[Middleware] = ()) -> Starlette:
    """The application, to be served by itself or mounted in another application."""

    async def begin(request: Request) -> Response:
        names = await host.agents(request)
        root = root_of(request)
        if not names:
            raise HTTPException(404, "There is no agent: PUT /circadian/agents/NAME makes one.")
        return RedirectResponse(link(root, [segment(names[0]), "today"], {}), 303)

    def page(handler: Handler) -> object:
        async def endpoint(request: Request) -> Response:
            agent = unquote(str(request.path_params["agent"]))
            names = tuple(await host.agents(request))
            if agent not in names:
                raise HTTPException(404, "There is no agent of that name here.")
            request.state.agent = request.path_params["agent"]
            context = await host.context(request, agent)
            if request.method == "POST":
                host.jobs.refuse_while_busy(context.scope)
            return await handler(Visit(request, host, agent, context, names))

        return endpoint

    routes = [
        Route("/", begin),
        Mount("/static", StaticFiles(directory=STATIC), name="static"),
        Route("/{agent}", _to_today),
        *(
            Route(f"/{{agent}}{path}", page(handler), methods=[method])  # type: ignore[arg-type]
            for method, path, handler in PAGES
        ),
    ]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await host.jobs.stop()

    made = Starlette(
        routes=routes,
        middleware=[Middleware(Shield), *middleware],
        exception_handlers={CircadianError: _failed, HTTPException: _refused},
        lifespan=lifespan,
    )
    made.state.host = host
    return made


async def _to_today(request: Request) -> Response:
    root = root_of(request)
    return RedirectResponse(link(root, [request.path_params["agent"], "today"], {}), 303)


STATUSES: tuple[tuple[type[CircadianError], int], ...] = (
    (NotFoundError, 404),
    (InputError, 422),
    (Refusal, 422),
    (ConflictError, 409),
    (BusyError, 409),
    (CircadianError, 503),
)
"""HTTP statuses of errors: the first kind that fits an error decides."""


async def _failed(request: Request, error: Exception) -> Response:
    """Show the error's message: the product raised it on purpose, and nothing was changed."""
    assert isinstance(error, CircadianError)
    status = next(code for kind, code in STATUSES if isinstance(error, kind))
    return problem_page(request, status, error.without_commands)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem_page(request, error.status_code, error.detail)


HEADINGS = {
    404: "Not found",
    405: "This page does not do that",
    409: "Busy at the moment",
    422: "That cannot be done",
    429: "The limit is reached",
    503: "Something failed",
}


def problem_page(request: Request, status: int, why: str) -> Response:
    """What was wrong, and where to go on."""
    root, agent = root_of(request), getattr(request.state, "agent", None)
    host = getattr(request.app.state, "host", None)  # None: it did not come as far as the pages
    heading = HEADINGS.get(status, HTTPStatus(status).phrase)
    page = render(
        "problem.html",
        heading=heading,
        why=why[:1].upper() + why[1:],
        busy=status == 409,
        static=f"{root}/static",
        home=link(root, [agent, "today"], {}) if agent else f"{root}/",
        progress=link(root, [agent, "progress"], {}) if agent else None,
        # Without an agent no page leads on but the first one, or another sign-in.
        sign_out=f"{root}/sign-out" if host and host.can_sign_out and not agent else None,
    )
    return HTMLResponse(page, status)


# On loopback


LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class OneAgent(Host):
    """The one agent that was opened."""

    opened: AgentContext
    jobs: BackgroundJobs = field(default_factory=BackgroundJobs)
    can_sign_out: bool = False

    async def context(self, request: Request, agent: str) -> AgentContext:
        """The agent."""
        return self.opened

    async def agents(self, request: Request) -> list[str]:
        """Its name."""
        return [str(self.opened.name)]

    def model(self) -> str:
        """The name of the model that is used here."""
        return model_name(self.opened.resources.chat_model)

    async def go_on(self, visit: Visit) -> int | None:
        """Run what waited, here."""
        output = await run(visit.context, None, raise_on_failure=False)
        done = output["report"]["ticks"]
        return done[-1]["tick"] if done else None

    async def preview(self, visit: Visit, tell: Tell) -> str | None:
        """Go through the night here."""
        async with previewing(visit.context) as for_the_night:
            report = await follow(for_the_night, {}, NightProgress(tell))
        return of_run({"report": report})["id"]

    async def apply(self, visit: Visit, night: str, tell: Tell) -> None:
        """Apply it here."""
        async with applying(visit.context, night) as for_the_night:
            of_run({"report": await follow(for_the_night, {}, NightProgress(tell))})

    async def forgotten(self, visit: Visit) -> None:
        """Nothing: there are no copies here."""


def local_inspector(host: Host, *, token: str, port: int) -> Starlette:
    """The application behind a token that signs in once."""
    return inspector(host, [Middleware(OneTimeToken, token=token, port=port)])


@asynccontextmanager
async def bound(port: int) -> AsyncIterator[socket.socket]:
    """A socket on loopback; port 0 takes any that is free. Raises InputError for a taken one."""
    with socket.socket() as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((LOOPBACK, port))
            opened.listen()  # whoever opens the address at once waits instead of failing
        except OSError as error:
            raise InputError(f"--port {port}: {error.strerror or error}") from error
        yield opened


async def serve(agent: AgentContext, port: int, started: Callable[[str], None]) -> None:
    """Serve until the process is interrupted; calls `started` with the address to open."""
    import uvicorn  # a server serves these pages with its own

    token = secrets.token_urlsafe(24)
    async with bound(port) as opened:
        number = opened.getsockname()[1]
        app = local_inspector(OneAgent(agent), token=token, port=number)
        config = uvicorn.Config(
            app, log_level="warning", lifespan="on", timeout_graceful_shutdown=2, access_log=False
        )
        server = uvicorn.Server(config)
        spare_collections()
        started(f"http://{LOOPBACK}:{number}/?token={token}")
        await server.serve(sockets=[opened])
