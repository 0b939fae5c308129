"""What a night tells while it goes on: custom events of the graph's stream.

For whoever streams with the mode `custom`: a step begins, goes on, and ends, each with counts. What
is told is told to listeners only; the night's record says the same and more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeGuard, cast

from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from memory.night_batches import comes_again, not_seen, to_consolidate, to_score
from memory.records import JournalEntry, NightRecord, PlanRecord
from memory.resources import settings_of
from memory.settings import Settings

NIGHT = "night"
Progress = Literal["begin", "progress", "end"]
EVERY = 10**9
"""More than there are."""


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
    entries: Mapping[str, JournalEntry],
    plans: Sequence[PlanRecord],
    step: str,
    event: Progress,
) -> None:
    """Put an event into the stream of the run that goes on; outside of a run nobody listens."""
    try:
        runtime = get_runtime()
    except (RuntimeError, KeyError):
        return
    settings = settings_of(cast(Any, runtime.context))
    runtime.stream_writer(event_of(record, entries, plans, settings, step=step, event=event))


def event_of(
    record: NightRecord,
    entries: Mapping[str, JournalEntry],
    plans: Sequence[PlanRecord],
    settings: Settings,
    *,
    step: str,
    event: Progress,
) -> NightEvent:
    """How far a step is. Pure."""
    mine = [plan for plan in plans if plan["step"] == step]
    over = [plan for plan in mine if plan.get("finished", True) and not comes_again(plan)]
    done = len({one for plan in over for one in plan["inputs"]})
    return {
        "type": "night",
        "night": record["id"],
        "dry_run": record["dry_run"],
        "step": step,
        "event": event,
        "done": done,
        "of": done + waiting(step, record, entries, plans, settings),
        "operations": sum(len(plan["operations"]) for plan in mine),
        "llm_calls": sum(plan["llm_calls"] for plan in mine),
        "tokens": sum(plan["tokens"] for plan in mine),
    }


def waiting(
    step: str,
    record: NightRecord,
    entries: Mapping[str, JournalEntry],
    plans: Sequence[PlanRecord],
    settings: Settings,
) -> int:
    """What a step has still to do; 0 for one that looks at everything at once. Pure."""
    whole: Any = {"size": EVERY, "tokens": EVERY, "most": EVERY}
    match step:
        case "score_importance":
            return _together(to_score(entries, plans, **whole))
        case "consolidate":
            least = settings.min_importance
            return _together(to_consolidate(entries, plans, min_importance=least, **whole))
        case "dream":
            return len(not_seen(record.get("facts", []), step, plans))
        case "consolidate_entities":
            return len(not_seen(record.get("entities", []), step, plans))
    return 0


def _together(batches: Sequence[Sequence[JournalEntry]]) -> int:
    return sum(len(batch) for batch in batches)
