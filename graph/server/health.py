"""Whether what a server needs is there: its store, its memory, and the services behind breakers."""

from __future__ import annotations

import asyncio

from typing_extensions import TypedDict

from memory import metrics
from memory.errors import CircadianError
from memory.resources import Process
from memory.store_access import count_items

SECONDS = 3.0
"""A part that has not answered by then is down."""


class Part(TypedDict):
    """One thing that the server needs."""

    ok: bool
    detail: str


async def parts(process: Process) -> dict[str, Part]:
    """Each part by name. No model is asked: that costs, and its breaker knows of the last calls."""
    semantic = process.resources.semantic
    store, memory = await asyncio.gather(
        _asked(count_items(process.served_store, ("health",))),
        _asked(semantic.run(lambda: semantic.open_table().count({"id": "health"}))),
    )
    found = {"store": store, "memory": memory}
    breakers = process.resources.breakers
    for name, breaker in (("model", breakers.model), ("embedder", breakers.embedder)):
        state = breaker.state
        found[name] = {"ok": state != "open", "detail": f"breaker {state}"}
    for name, part in found.items():
        metrics.SERVICE_UP.labels(name).set(part["ok"])
    return found


async def _asked(question: object) -> Part:
    try:
        async with asyncio.timeout(SECONDS):
            await question  # type: ignore[misc]
    except TimeoutError:
        return {"ok": False, "detail": f"no answer within {SECONDS:g} s"}
    except CircadianError as error:
        return {"ok": False, "detail": str(error)}
    return {"ok": True, "detail": "answers"}
