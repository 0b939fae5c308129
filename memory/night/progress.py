"""The progress of a night as custom events of the graph's stream, for who streams mode `custom`.

Each step tells when it begins, goes on and ends, with counts. The night's record says the same and
more; the events are for listeners only and are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeGuard, cast

from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from memory.night.batches import items_done, items_left
from memory.night.plans import Plans
from memory.records import NightRecord
from memory.runtime import settings_of
from memory.settings import Settings

NIGHT = "night"
Progress = Literal["begin", "progress", "end"]


class NightEvent(TypedDict):
    """One line of a night's progress."""

    type: Literal["night"]
    night: str
    dry_run: bool
    step: str
    """The node's name."""
    event: Progress
    done: int
    """Entries, facts or entities that the step has finished."""
    of: int
    """All that it has to do, `done` included; 0 where the step looks at everything at once."""
    operations: int
    """Changes that the step decided so far."""
    llm_calls: int
    tokens: int


def is_night_event(given: Any) -> TypeGuard[NightEvent]:
    """Whether a custom event is one of these: tools may send their own."""
    return isinstance(given, Mapping) and given.get("type") == NIGHT and "step" in given


def tell_progress(record: NightRecord, plans: Plans, step: str, event: Progress) -> None:
    """Put an event into the stream of the current run; outside a run do nothing."""
    try:
        runtime = get_runtime()
    except (RuntimeError, KeyError):
        return
    settings = settings_of(cast(Any, runtime.context))
    runtime.stream_writer(event_of(record, plans, settings, step=step, event=event))


def event_of(
    record: NightRecord, plans: Plans, settings: Settings, *, step: str, event: Progress
) -> NightEvent:
    """How far a step is. Pure."""
    mine = plans.of(step)
    done = len(items_done(mine))
    return {
        "type": "night",
        "night": record["id"],
        "dry_run": record["dry_run"],
        "step": step,
        "event": event,
        "done": done,
        "of": done + items_left(step, record, plans, settings),
        "operations": sum(len(plan["operations"]) for plan in mine),
        "llm_calls": sum(plan["llm_calls"] for plan in mine),
        "tokens": sum(plan["tokens"] for plan in mine),
    }
