"""The state of a server's dependencies: for operators, for probes and as metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import datetime
from math import nan
from typing import Any, TypeVar

import httpx
from fastapi import Request
from langgraph_sdk import get_client
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response
from typing_extensions import TypedDict

from graph.server.agents import every
from graph.server.problems import api_router
from graph.server.settings import OPERATOR
from memory import telemetry
from memory.errors import CircadianError
from memory.events import inbox
from memory.runtime import Process, process_now
from memory.state import STEPS
from memory.storage import count_items

SECONDS = 3.0
"""A dependency that takes longer to answer is down."""

T = TypeVar("T")

router = api_router(prefix="/circadian", tags=["operation"])


class Health(TypedDict):
    """The state of one dependency."""

    ok: bool
    detail: str


class HealthReport(BaseModel):
    """The state of all dependencies."""

    ok: bool
    parts: dict[str, Health]


class Readiness(BaseModel):
    """Whether requests can be served."""

    ready: bool


@router.get("/ready", responses={503: {"model": Readiness}}, openapi_extra={"security": []})
async def ready() -> Response:
    """Whether this replica can serve requests: store and memory answer, and it is not stopping."""
    parts = await storage_of(process_now())
    fit = all(part["ok"] for part in parts.values()) and not STEPS.stopping
    return JSONResponse({"ready": fit}, 200 if fit else 503)


@router.get("/health", response_model=HealthReport, responses={503: {"model": HealthReport}})
async def health(request: Request) -> Response:
    """The state of each dependency; 503 if one is down."""
    check_operator(request)
    parts = await health_of(process_now())
    ok = all(part["ok"] for part in parts.values())
    return JSONResponse({"ok": ok, "parts": parts}, 200 if ok else 503)


@router.get("/metrics", response_class=PlainTextResponse)
async def show_metrics(request: Request) -> Response:
    """This process's counters, and what waits in all of the installation."""
    check_operator(request)
    await refresh_gauges()
    return Response(telemetry.exposition(), media_type=telemetry.CONTENT_TYPE)


def check_operator(request: Request) -> None:
    """Raise 403 for a token without the operator's permission."""
    if OPERATOR not in request.auth.scopes:
        raise HTTPException(403, f"this is for tokens with the permission {OPERATOR!r}")


async def refresh_gauges() -> None:
    """Set the gauges that no event of this process sets. What cannot be read is NaN."""
    process = process_now()
    store, now = process.served_store, process.resources.clock()
    _, found, questions = await asyncio.gather(
        health_of(process), _read(inbox.waiting_now(store)), _read(_questions())
    )
    waiting, oldest = found or (None, None)
    telemetry.EVENTS_WAITING.set(nan if waiting is None else waiting)
    telemetry.QUESTIONS_WAITING.set(nan if questions is None else questions)
    age = (now - datetime.fromisoformat(oldest)).total_seconds() if oldest else 0.0
    telemetry.OLDEST_EVENT.set(nan if waiting is None else max(0.0, age))


async def _questions() -> int:
    """How many questions wait. Counted in the states: a thread interrupts for one at a time."""
    parked: Any = {"select": ["thread_id"], "extract": {"parked": "values.parked"}}
    found = await every(get_client().threads.search, status="interrupted", **parked)
    return sum(len(one["extracted"]["parked"] or ()) for one in found)


async def _read(question: Awaitable[T]) -> T | None:
    try:
        async with asyncio.timeout(SECONDS):
            return await question
    except (TimeoutError, CircadianError, httpx.HTTPError):
        return None


async def health_of(process: Process) -> dict[str, Health]:
    """Each dependency by name; also sets its gauge. No model is called: its breaker knows."""
    found = await storage_of(process)
    breakers = process.resources.breakers
    for name, breaker in (("model", breakers.model), ("embedder", breakers.embedder)):
        state = breaker.state
        found[name] = {"ok": state != "open", "detail": f"breaker {state}"}
    for name, part in found.items():
        telemetry.SERVICE_UP.labels(name).set(part["ok"])
    return found


async def storage_of(process: Process) -> dict[str, Health]:
    """Whether store and semantic memory answer."""
    semantic = process.resources.semantic
    store, memory = await asyncio.gather(
        _answer(count_items(process.served_store, ("health",))),
        # Past the breaker: a probe that counted as a failure would keep memory closed for longer.
        _answer(asyncio.to_thread(lambda: semantic.open_table().count({"id": "health"}))),
    )
    return {"store": store, "memory": memory}


async def _answer(question: Awaitable[object]) -> Health:
    try:
        async with asyncio.timeout(SECONDS):
            await question
    except TimeoutError:
        return {"ok": False, "detail": f"no answer within {SECONDS:g} s"}
    except (CircadianError, OSError) as error:
        return {"ok": False, "detail": str(error)}
    return {"ok": True, "detail": "answers"}
