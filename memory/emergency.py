"""A person's request for an emergency stop, kept in the store so that it reaches a running run.

Store namespace (below `(user, thread)`): `controls` "stop" -> {at, by}. `intake` reads it before
each event. It is deleted once a checkpoint holds the stop, or when the stop is cleared.
"""

from __future__ import annotations

from datetime import datetime

from langgraph.store.base import BaseStore

from memory.scope import Scope

CONTROLS, STOP = "controls", "stop"


def sentence(waiting: int) -> str:
    """Say that the stop is on, and how many events wait."""
    if waiting == 0:
        return "Emergency stop: nothing waits, and nothing is done until it is cleared."
    events = "1 event waits" if waiting == 1 else f"{waiting:,} events wait"
    return f"Emergency stop: {events} until it is cleared."


async def ask_for_stop(store: BaseStore, scope: Scope, *, at: datetime, by: str) -> None:
    """Request the stop. Takes no lock, so that it works while a run holds the agent."""
    await store.aput(scope.namespace(CONTROLS), STOP, {"at": at.isoformat(), "by": by})


async def stop_asked_by(store: BaseStore, scope: Scope) -> str | None:
    """Who requested the stop; None if nobody did."""
    item = await store.aget(scope.namespace(CONTROLS), STOP)
    return str(item.value["by"]) if item else None


async def forget_stop(store: BaseStore, scope: Scope) -> None:
    """Delete the request: the stop is in the state, or was cleared."""
    await store.adelete(scope.namespace(CONTROLS), STOP)
