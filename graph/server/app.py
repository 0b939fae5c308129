"""Routes beside LangGraph Server's own, behind the same authentication.

An agent's own routes are in `routes`; here are those of users and operators. docs/api.md lists all.
`GET /ok` of the server itself answers without authentication while the process lives.

Graceful shutdown: steps in hand are finished, no step begins, then waiting clients are disconnected
and ask the next server. It begins at the signal itself, before the web server reacts: that waits
for its clients, and a client that waits for a run would block the stop until a supervisor kills the
server in the middle of a step.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from json import JSONDecodeError
from types import FrameType
from typing import Annotated, Any
from urllib.parse import unquote
from uuid import uuid4

from fastapi import Depends, FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from langgraph_sdk import get_client
from langgraph_sdk.errors import APIStatusError
from pydantic import BaseModel, Field, TypeAdapter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.blocking import spare_collections
from graph.server import accounts, health, inspector, routes, settings
from graph.server.agents import Agent, AgentName, agent_threads, user_of
from graph.server.auth import Guard, Throttle, limiter
from graph.server.health import check_operator
from graph.server.problems import Problem, Problems, api_router, of_product, of_request, of_server
from graph.server.routes import Form, Page
from graph.server.settings import serving
from graph.use_cases import naming
from memory import messages, records
from memory.errors import CircadianError
from memory.events import inbox
from memory.models import charging
from memory.runtime import Bounds, process_now
from memory.state import STEPS, GivenEvent
from memory.storage import namespaces_below

EVENT = TypeAdapter(GivenEvent).json_schema()
EVENTS = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"anyOf": [EVENT, {"type": "array", "items": EVENT}]}}
        },
    }
}
"""For the OpenAPI document alone: the inbox checks events."""

router = api_router(prefix="/circadian", tags=["agents"])


# The caller's agents


class AgentLine(BaseModel):
    """One of the caller's agents."""

    agent: str
    thread_id: str
    status: str = Field(description="idle, busy, interrupted or error")


class AgentThread(BaseModel):
    """The thread of an agent. A name always gives the same thread."""

    agent: str
    thread_id: str


class Accepted(BaseModel):
    """What became of posted events, by id."""

    thread_id: str
    accepted: list[str]
    skipped: list[str] = Field(description="Handled before.")


class Erased(BaseModel):
    """What was erased, by kind."""

    erased: dict[str, int]


@router.get("/agents")
async def agents(request: Request) -> list[AgentLine]:
    """The caller's agents by name."""
    return [
        AgentLine(agent=name, thread_id=str(thread["thread_id"]), status=thread["status"])
        for name, thread in await agent_threads(request)
    ]


@router.put("/agents/{name}")
async def agent(served: Agent) -> AgentThread:
    """The thread of one agent, made if there is none."""
    return AgentThread(agent=served.name, thread_id=await served.thread())


@router.post("/agents/{name}/events", status_code=202, openapi_extra=EVENTS)
async def post_events(request: Request, name: AgentName) -> Accepted:
    """Put one event, or a list, into the inbox; they are stored before this answers.

    Each has `text`, and may have `id`, `at` (ISO 8601), `sender`, `channel` and `addressed`. An
    event with an id can be sent again and is taken once.
    """
    user = user_of(request)
    try:
        given = await request.json()
    except (JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from error
    process, raw = process_now(), given if isinstance(given, list) else [given]
    now = process.resources.clock()
    events = [
        messages.valid_event(inbox.completed(event, id_=str(uuid4()), owner=user, now=now))
        for event in raw
    ]
    scope = records.Scope(user, records.thread_id(user, name))
    async with accounts.queue_of(user):
        if over := await accounts.why_too_many(scope, len(events)):
            raise HTTPException(*over)
        also = naming(scope, name)
        posted = await inbox.post(process.served_store, scope, events, now=now, also=also)
    accepted = [id_ for id_ in dict.fromkeys(e["id"] for e in events) if id_ not in posted.skipped]
    return Accepted(thread_id=scope.thread, accepted=accepted, skipped=posted.skipped)


@router.delete("/me")
async def erase_me(request: Request) -> Erased:
    """Erase everything of the caller; after an interruption, call it again."""
    return Erased(erased=await accounts.erase_user(user_of(request), get_client(), process_now()))


# Users, for operators


class Revocation(Form):
    """Which tokens to revoke."""

    id: str | None = Field(
        None, min_length=1, max_length=200, description="One token's `jti`; by default all so far."
    )


class Revoked(BaseModel):
    """What was revoked."""

    user: str
    id: str | None


def checked_user(user: Annotated[str, Path(description="The user, as in tokens.")]) -> str:
    """The user in the path."""
    if not settings.is_user(user):
        raise HTTPException(422, f"a user has 1 to {settings.LONGEST_USER} printable characters")
    return user


UserName = Annotated[str, Depends(checked_user)]
Operator = Depends(check_operator)


@router.get("/users", dependencies=[Operator])
async def list_users(page: Page) -> accounts.UserPage:
    """The users who have memory here, by name (operators)."""
    everybody = await namespaces_below(process_now().served_store, (), 1)
    shown = page.of([label for (label,) in everybody if label != accounts.SPACE])
    return page.listed([await _user_line(label) for label in shown.items], shown.total)


async def _user_line(label: str) -> accounts.UserLine:
    user = unquote(label)
    used = await accounts.used_today(user)
    agents = len(await namespaces_below(process_now().served_store, (label,), 2))
    return accounts.UserLine(user=user, agents=agents, memories=await accounts.kept(user), **used)


@router.delete("/users/{user:path}", dependencies=[Operator])
async def erase_a_user(user: UserName) -> Erased:
    """Erase everything of a user (operators); after an interruption, call it again."""
    return Erased(erased=await accounts.erase_user(user, get_client(), process_now()))


@router.post("/users/{user:path}/revoke", dependencies=[Operator])
async def revoke_tokens(user: UserName, form: Revocation) -> Revoked:
    """Let one token, or all tokens of a user so far, hold no longer (operators)."""
    await accounts.revoke(user, form.id, process_now().resources.clock())
    return Revoked(user=user, id=form.id)


# Start and end


log = logging.getLogger("circadian")
SIGNALS = (signal.SIGTERM, signal.SIGINT)

DISCONNECTED: dict[str, Message] = {
    "http": {"type": "http.disconnect"},
    # 1012: the service restarts (RFC 6455's registry of codes).
    "websocket": {"type": "websocket.disconnect", "code": 1012},
}


class Shutdown:
    """The shutdown of one server."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        """No step is in hand, and none begins any more."""
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin, without waiting; to be called in the server's event loop. Idempotent."""
        if self._task is None:
            self._task = asyncio.create_task(self._stop(), name="shutdown")

    async def finish(self) -> None:
        """Begin if that has not happened yet, and wait for the end."""
        self.begin()
        assert self._task is not None
        await self._task

    async def _stop(self) -> None:
        left = await STEPS.stop(serving().stop_seconds)
        if left:
            log.warning("%d runs were interrupted in a step; the next run repeats it", left)
        self.over.set()


class GracefulApp(FastAPI):
    """Disconnects clients that still wait for an answer once the shutdown is over.

    Outside of all middleware: some of it would complete a truncated answer as if it were whole.
    """

    def build_middleware_stack(self) -> ASGIApp:
        """The middleware, inside the handler of problems and the sign-in of the pages."""
        return inspector.SignIn(Problems(super().build_middleware_stack()))

    def openapi(self) -> dict[str, Any]:
        """FastAPI's document, with the form of errors."""
        found = super().openapi()
        found["components"]["schemas"]["Problem"] = Problem.model_json_schema()
        return found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or the server's start and end."""
        if scope["type"] == "lifespan":
            await super().__call__(scope, receive, _in_one_line(send))
            return
        shutdown: Shutdown | None = getattr(self.state, "shutdown", None)
        if shutdown is None or scope["type"] not in DISCONNECTED:
            await super().__call__(scope, receive, send)
            return
        connection = _Connection(shutdown.over, DISCONNECTED[scope["type"]], receive, send)
        try:
            await super().__call__(scope, connection.receive, connection.send)
        finally:
            connection.close()


def _in_one_line(send: Send) -> Send:
    """`send`, which reports a CircadianError at startup in one line, without a traceback."""

    async def sending(message: Message) -> None:
        error = sys.exc_info()[1]
        if message["type"] == "lifespan.startup.failed" and isinstance(error, CircadianError):
            message["message"] = f"circadian: {error}"
        await send(message)

    return sending


class _Connection:
    """A request whose client counts as disconnected once the shutdown is `over`."""

    def __init__(
        self, over: asyncio.Event, disconnect: Message, receive: Receive, send: Send
    ) -> None:
        self._over, self._disconnect, self._receive, self._send = over, disconnect, receive, send
        self._disconnected = False
        self._asked: asyncio.Future[Message] | None = None
        """The awaited message; kept when its reader is cancelled, so that no message is lost."""

    async def receive(self) -> Message:
        """The client's next message, or its disconnection."""
        asked = self._asked = self._asked or asyncio.ensure_future(self._receive())
        if not asked.done():
            over = asyncio.ensure_future(self._over.wait())
            both: set[asyncio.Future[Any]] = {asked, over}
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                over.cancel()
        if asked.done():
            if self._asked is asked:
                self._asked = None
            return asked.result()
        self._disconnected = True
        return self._disconnect

    def close(self) -> None:
        """Stop waiting for a message."""
        if self._asked is not None:
            self._asked.cancel()

    async def send(self, message: Message) -> None:
        """Send to the client, unless it counts as disconnected: its connection has to break."""
        if not self._disconnected:
            await self._send(message)


@contextmanager
def _signals(shutdown: Shutdown) -> Iterator[None]:
    """Begin the shutdown at a signal, and pass the signal on to the previous handler."""
    loop = asyncio.get_running_loop()
    previous = {number: signal.getsignal(number) for number in SIGNALS}

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(shutdown.begin)
        handler = previous[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    try:
        for number in SIGNALS:
            signal.signal(number, handle)
    except ValueError:  # not in the main thread; the end of the lifespan still shuts down
        yield
        return
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Check the server's variables before the first request; shut down gracefully."""
    settings.check(serving())
    limiter(serving().limits_storage)
    process = process_now()
    bounds = Bounds(accounts.room, accounts.LEDGER.in_ticks)
    process.resources = replace(process.resources, bounds=bounds)
    account = nullcontext() if serving().open else charging(accounts.LEDGER)
    STEPS.start()
    app.state.shutdown = shutdown = Shutdown()
    spare_collections()
    with account, _signals(shutdown):
        try:
            yield
        finally:
            await inspector.JOBS.stop()
            await shutdown.finish()


app = GracefulApp(
    title="Circadian",
    summary="What your agents know and did, and what you can do about it.",
    openapi_url=None,  # LangGraph Server publishes it together with its own.
    middleware=[Middleware(Guard), Middleware(Throttle)],
    exception_handlers={
        CircadianError: of_product,
        RequestValidationError: of_request,
        APIStatusError: of_server,
    },
    lifespan=lifespan,
)
# Not `include_router`: LangGraph Server puts its middleware around each route of a flat list.
OURS: list[BaseRoute] = [
    route
    for part in (health.router, routes.router, routes.changing, router)
    for route in part.routes
]


async def unknown(request: Request) -> Response:
    """Answer 405 if the path takes other methods, else 404, before the server's own routes do."""
    fits = [route for route in OURS if route.matches(request.scope)[0] is Match.PARTIAL]
    if not fits:
        raise HTTPException(404)
    methods = {m for route in fits if isinstance(route, APIRoute) for m in route.methods or ()}
    methods |= {"HEAD"} if "GET" in methods else set()
    raise HTTPException(405, headers={"Allow": ", ".join(sorted(methods))})


METHODS = ["GET", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE"]
UNKNOWN = Route("/circadian/{path:path}", unknown, methods=METHODS, include_in_schema=False)
app.router.routes += [*OURS, inspector.PAGES, UNKNOWN]
