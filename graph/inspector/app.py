"""The inspector as a Starlette application: its routes, its errors, its files.

Last comes that application on loopback, for whoever started it.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from graph.blocking import spare_collections
from graph.following import follow
from graph.inspector import activity, memories, people
from graph.inspector.rendering import STATIC, link, render
from graph.inspector.security import OneTimeToken, Shield
from graph.inspector.visits import (
    BackgroundJobs,
    Handler,
    Host,
    NightProgress,
    Tell,
    Visit,
    root_of,
    step,
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

PAGES: Sequence[tuple[str, str, Handler]] = (
    ("GET", "/today", activity.today),
    ("POST", "/questions/{id}/{answer}", activity.answer),
    ("GET", "/memory", memories.memory_list),
    ("GET", "/memory/{id:path}", memories.one_memory),
    ("GET", "/correct/{id:path}", memories.correct_form),
    ("POST", "/correct/{id:path}", memories.do_correct),
    ("GET", "/forget/{id:path}", memories.forget_form),
    ("POST", "/forget/{id:path}", memories.do_forget),
    ("GET", "/people", people.people_list),
    ("GET", "/people/{id}", people.one_person),
    ("GET", "/people/{id}/forget", people.forget_person_form),
    ("POST", "/people/{id}/forget", people.forget_person),
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
        return RedirectResponse(link(root, [step(names[0]), "today"], {}), 303)

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
