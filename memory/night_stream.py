"""What a night tells while it goes on: custom events of the graph's stream.

For whoever streams with the mode `custom`: a step begins, goes on, and ends, each with counts. What
is told is told to listeners only; the night's record says the same and more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeGuard, cast

from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from memory.night_batches import comes_again, loops, not_seen, unconsolidated, unscored
from memory.night_plans import Plans
from memory.records import NightRecord, PlanRecord
from memory.resources import settings_of
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
    """Entries, facts or entities that the step is done with."""
    of: int
    """With those that it has still to do; 0 where the step looks at everything at once."""
    operations: int
    """Changes that the step decided so far."""
    llm_calls: int
    tokens: int


def is_night_event(given: Any) -> TypeGuard[NightEvent]:
    """Whether a custom event of the stream is one of these: tools may send their own."""
    return isinstance(given, Mapping) and given.get("type") == NIGHT and "step" in given


def tell(
    record: NightRecord,
    plans: Plans,
    step: str,
    event: Progress,
    *,
    also: Sequence[PlanRecord] = (),
) -> None:
    """Put an event into the stream of the run that goes on; outside of a run nobody listens.

    `also`: plans of batches side by side, of which not all are thought out yet.
    """
    try:
        runtime = get_runtime()
    except (RuntimeError, KeyError):
        return
    settings = settings_of(cast(Any, runtime.context))
    runtime.stream_writer(event_of(record, plans, settings, step=step, event=event, also=also))


def event_of(
    record: NightRecord,
    plans: Plans,
    settings: Settings,
    *,
    step: str,
    event: Progress,
    also: Sequence[PlanRecord] = (),
) -> NightEvent:
    """How far a step is. Pure."""
    before = [plan for plan in plans if plan["step"] == step]
    mine = [*before, *also]
    done = len(_over(mine))
    whole = len(_over(before)) + waiting(step, record, plans, settings)
    return {
        "type": "night",
        "night": record["id"],
        "dry_run": record["dry_run"],
        "step": step,
        "event": event,
        "done": done,
        "of": max(done, whole),
        "operations": sum(len(plan["operations"]) for plan in mine),
        "llm_calls": sum(plan["llm_calls"] for plan in mine),
        "tokens": sum(plan["tokens"] for plan in mine),
    }


def waiting(step: str, record: NightRecord, plans: Plans, settings: Settings) -> int:
    """What a step has still to do; 0 for one that looks at everything at once. Pure."""
    match step:
        case "score_importance":
            return len(unscored(plans))
        case "consolidate":
            going = sum(len(loop) for loop in loops(plans))
            return going + len(unconsolidated(plans, settings.min_importance))
        case "dream":
            return len(not_seen(record.get("facts", []), step, plans))
        case "consolidate_entities":
            return len(not_seen(record.get("entities", []), step, plans))
    return 0


def _over(plans: Sequence[PlanRecord]) -> set[str]:
    """What these plans are done with."""
    done = [plan for plan in plans if plan.get("finished", True) and not comes_again(plan)]
    return {one for plan in done for one in plan["inputs"]}
