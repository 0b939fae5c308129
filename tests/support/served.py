"""The application of a test's `langgraph dev`, whose queue is asked for runs every 20 ms.

The server's own waits from half a second to a second before each run that comes while it is idle.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from langgraph_api.api import load_custom_app  # type: ignore[import-untyped]
from langgraph_runtime_inmem.ops import Runs  # type: ignore[import-untyped]

from tests.support.source_files import ROOT

_next = Runs.next


async def _soon(wait: bool, limit: int = 1) -> AsyncIterator[tuple[Any, int]]:
    await asyncio.sleep(0.02 if wait else 0)
    async for run in _next(wait=False, limit=limit):
        yield run


Runs.next = _soon
app = load_custom_app(str(ROOT / "graph/server/app.py:app"))  # from its file, as a server does
