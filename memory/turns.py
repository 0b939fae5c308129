"""What a run can do next: which events wait for what, and whether it works on its goals. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from memory.classification import classify
from memory.records import Event, InboxItem
from memory.reflection import is_reflection
from memory.settings import Settings
from memory.spending import over
from memory.state import State
from memory.tick import Classification

Judged = tuple[Event, Classification]

ASLEEP = "Asleep. A message or `wake` wakes the agent."
NO_GOAL = "Nothing is pending and no goal is active."


class Pending(NamedTuple):
    """The events that wait, by what becomes of them; each oldest first."""

    people: list[Judged]
    """To act on: direct events. They wake it, and keep it awake."""
    own: list[Judged]
    """The assistant's own look at its work."""
    context: list[Event]
    ignored: list[Judged]

    def empty(self) -> bool:
        """Whether no event waits."""
        return not any(self)

    def ready(self, state: State, settings: Settings, now: datetime) -> Judged | None:
        """The event to act on now: people's first. Its own look waits asleep, and after too much
        was spent.
        """
        waits = state["mode"] == "sleep" or over(state["spending"], settings, now) is not None
        return next(iter([*self.people, *([] if waits else self.own)]), None)


def sorted_out(
    items: Sequence[InboxItem], settings: Settings, owners: Sequence[str], *, past: Collection[str]
) -> Pending:
    """What waits; the events whose ids are in `past` have had their turn, or wait for a person."""
    events = [item["event"] for item in items if item["event"]["id"] not in past]
    judged = [(one, classify(one, settings=settings, owners=owners)) for one in events]
    acted = [pair for pair in judged if pair[1]["verdict"] == "act"]
    return Pending(
        people=[pair for pair in acted if not is_reflection(pair[0])],
        own=[pair for pair in acted if is_reflection(pair[0])],
        context=[one for one, found in judged if found["verdict"] == "context"],
        ignored=[pair for pair in judged if pair[1]["verdict"] == "ignore"],
    )


def parked_events(state: State) -> set[str]:
    """The events whose ticks wait for a person."""
    return {one["event"]["id"] for one in state["parked"] if one["event"]}


def goals_parked(state: State) -> bool:
    """Whether a tick on the goals waits for a person: another would ask the same again."""
    return any(one["event"] is None for one in state["parked"])


def why_idle(state: State, settings: Settings, now: datetime) -> str | None:
    """Why it does not work on its goals, in a sentence; None: it does."""
    if not settings.enabled:
        return "Switched off (setting enabled): nothing is done."
    if state["mode"] == "sleep":
        return ASLEEP
    if all(goal["status"] != "active" for goal in state["goals"].values()):
        return NO_GOAL
    return over(state["spending"], settings, now)
