"""The inspector of a data folder or database, on loopback, for whoever started it."""

from __future__ import annotations

import gc
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request

from graph.api import Agents
from graph.following import follow
from graph.inspector import (
    BackgroundJobs,
    Host,
    NightProgress,
    OneTimeToken,
    Tell,
    Visit,
    inspector,
)
from graph.use_cases import AgentContext, applying, of_run, previewing, run
from memory.errors import InputError
from memory.models import model_name

LOOPBACK = "127.0.0.1"

PATIENCE = 3.0
"""Seconds that a change waits for another process's run; the page then says who is at work."""


@dataclass(frozen=True)
class OneAgent(Host):
    """The one agent that was opened."""

    name: str
    opened: Agents
    jobs: BackgroundJobs = field(default_factory=BackgroundJobs)
    can_sign_out: bool = False

    async def context(self, request: Request, agent: str) -> AgentContext:
        """The agent."""
        return self.opened.agent(self.name).context

    async def agents(self, request: Request) -> list[str]:
        """Its name."""
        return [self.name]

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


def spare_collections() -> None:
    """Exempt the objects made so far from garbage collection, which would cost a page 100 ms."""
    gc.collect()
    gc.freeze()


async def serve(name: str, agents: Agents, port: int, started: Callable[[str], None]) -> None:
    """Serve until the process is interrupted; calls `started` with the address to open."""
    patient = replace(agents, lock_timeout=min(agents.lock_timeout, PATIENCE))
    token = secrets.token_urlsafe(24)
    async with bound(port) as opened:
        number = opened.getsockname()[1]
        app = local_inspector(OneAgent(name, patient), token=token, port=number)
        import uvicorn  # a server serves these pages with its own

        config = uvicorn.Config(
            app, log_level="warning", lifespan="on", timeout_graceful_shutdown=2, access_log=False
        )
        server = uvicorn.Server(config)
        spare_collections()
        started(f"http://{LOOPBACK}:{number}/?token={token}")
        await server.serve(sockets=[opened])
