"""The application of a test's `langgraph dev`, whose queue is asked for runs every 20 ms.

The server's own waits from half a second to a second before each run that comes while it is idle.
Here `/openapi.json` also names those routes of LangGraph Server that its own document leaves out,
so that the tests of isolation ask every route that there is.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from langgraph_api.api import load_custom_app  # type: ignore[import-untyped]
from langgraph_api.api.openapi import openapi as documented  # type: ignore[import-untyped]
from langgraph_runtime_inmem.ops import Runs  # type: ignore[import-untyped]
from starlette.schemas import SchemaGenerator

from tests.support.source_files import ROOT

_next = Runs.next


async def _soon(wait: bool, limit: int = 1) -> AsyncIterator[tuple[Any, int]]:
    await asyncio.sleep(0.02 if wait else 0)
    async for run in _next(wait=False, limit=limit):
        yield run


Runs.next = _soon
app = load_custom_app(str(ROOT / "graph/server/app.py:app"))  # from its file, as a server does
_own_document = app.openapi


def _with_every_route() -> dict[str, Any]:
    found: dict[str, Any] = _own_document()
    for route in SchemaGenerator({}).get_endpoints(app.routes):
        told = [one["paths"].get(route.path, ()) for one in (documented, found)]
        if not any(route.http_method in methods for methods in told):
            shown = {"responses": {"default": {"description": route.func.__name__}}}
            found["paths"].setdefault(route.path, {})[route.http_method] = shown
    return found


app.openapi = _with_every_route
