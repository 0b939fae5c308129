"""A tick failed: its event goes back to the inbox, and after three failures it is set aside."""

from __future__ import annotations

import logging
from typing import Literal

from langchain_core.runnables import RunnableConfig
from langgraph.errors import NodeError
from langgraph.runtime import Runtime
from langgraph.types import Command

from memory import inbox
from memory.errors import CircadianError
from memory.resources import scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import FailureReport, State
from memory.state_check import checked

log = logging.getLogger("circadian.tick")


def describe(error: BaseException) -> str:
    """One line for a person. An error not raised on purpose names its type."""
    text = " ".join(str(error).split())[:500]
    return text if isinstance(error, CircadianError) else f"{type(error).__name__}: {text}"


@checked
async def return_event(
    state: State, error: NodeError, runtime: Runtime[Settings], config: RunnableConfig
) -> Command[Literal["intake"]]:
    """Count the failure. The parent's state is as before the tick: nothing of it is half kept."""
    event = state.get("event")
    log.error("tick failed", exc_info=error.error)
    text = describe(error.error)
    attempts, aside = 0, False
    if event is not None:
        attempts, aside = await inbox.give_back(
            store_of(runtime),
            scope_of(config),
            event["id"],
            text,
            max_attempts=settings_of(runtime.context).max_failed_ticks,
        )
    failure: FailureReport = {
        "event_id": event["id"] if event else None,
        "error": text,
        "attempts": attempts,
        "set_aside": aside,
    }
    report = state["report"]
    changed = {**report, "failures": [*report["failures"], failure]}
    return Command(update={"report": changed, "returning": True, "event": None}, goto="intake")
