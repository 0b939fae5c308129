"""A person's stop, kept in the store, so that it reaches a run that is under way.

Store namespace (below `(user, thread)`): `controls` "stop" -> {at, by}. `intake` looks there before
each event; the mark goes once a checkpoint that holds the stop is on disk, or when it is cleared.
"""

from __future__ import annotations

from datetime import datetime

from langgraph.store.base import BaseStore

from memory.scope import Scope

CONTROLS, STOP = "controls", "stop"


def sentence(waiting: int) -> str:
    """That it stands, and how many events wait for its end."""
    if waiting == 0:
        return "Emergency stop: nothing waits, and nothing is done until it is cleared."
    events = "1 event waits" if waiting == 1 else f"{waiting:,} events wait"
    return f"Emergency stop: {events} until it is cleared."


async def ask_for_stop(store: BaseStore, scope: Scope, *, at: datetime, by: str) -> None:
    """Takes no lock: it works while a run holds the agent."""
    await store.aput(scope.namespace(CONTROLS), STOP, {"at": at.isoformat(), "by": by})


async def stop_asked_by(store: BaseStore, scope: Scope) -> str | None:
    """Who asked for it; None: nobody."""
    item = await store.aget(scope.namespace(CONTROLS), STOP)
    return str(item.value["by"]) if item else None


async def forget_stop(store: BaseStore, scope: Scope) -> None:
    """It is in the state, or it is cleared."""
    await store.adelete(scope.namespace(CONTROLS), STOP)
