"""Health and metrics, for operators: what a server depends on, and what it counted."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from typing_extensions import TypedDict

from graph.server.tokens import OPERATOR
from memory import inbox, metrics
from memory.errors import CircadianError
from memory.resources import Process, process_now
from memory.store_access import count_items

SECONDS = 3.0
"""A dependency that has not answered by then is down."""


class Health(TypedDict):
    """The state of one dependency."""

    ok: bool
    detail: str


async def health(request: Request) -> Response:
    """The state of each dependency; 503 if one is down."""
    _check_operator(request)
    parts = await health_of(process_now())
    ok = all(part["ok"] for part in parts.values())
    return JSONResponse({"ok": ok, "parts": parts}, status_code=200 if ok else 503)


async def show_metrics(request: Request) -> Response:
    """This process's counters, and the number of events that wait in all inboxes."""
    _check_operator(request)
    process = process_now()
    await health_of(process)
    metrics.EVENTS_WAITING.set(await inbox.count_waiting(process.served_store))
    return Response(metrics.exposition(), media_type=metrics.CONTENT_TYPE)


def _check_operator(request: Request) -> None:
    if OPERATOR not in request.auth.scopes:
        raise HTTPException(403, f"this is for tokens with the permission {OPERATOR!r}")


async def health_of(process: Process) -> dict[str, Health]:
    """Each dependency by name; also sets the gauges. No model is called: its breaker knows."""
    semantic = process.resources.semantic
    store, memory = await asyncio.gather(
        _answer(count_items(process.served_store, ("health",))),
        _answer(semantic.run(lambda: semantic.open_table().count({"id": "health"}))),
    )
    found = {"store": store, "memory": memory}
    breakers = process.resources.breakers
    for name, breaker in (("model", breakers.model), ("embedder", breakers.embedder)):
        state = breaker.state
        found[name] = {"ok": state != "open", "detail": f"breaker {state}"}
    for name, part in found.items():
        metrics.SERVICE_UP.labels(name).set(part["ok"])
    return found


async def _answer(question: object) -> Health:
    try:
        async with asyncio.timeout(SECONDS):
            await question  # type: ignore[misc]
    except TimeoutError:
        return {"ok": False, "detail": f"no answer within {SECONDS:g} s"}
    except CircadianError as error:
        return {"ok": False, "detail": str(error)}
    return {"ok": True, "detail": "answers"}
