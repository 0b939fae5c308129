"""What a run can do next: budgets, waiting events by verdict, goals, the emergency stop.

Pure, except for a person's request for an emergency stop. The request is in the store, so that it
reaches a run in progress: namespace (below `(user, thread)`) `controls` "stop" -> {at, by}.
`intake` reads it before each event. It is deleted once a checkpoint holds the stop, or when the
stop is cleared.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from langgraph.store.base import BaseStore

from memory.events.rules import classify
from memory.records import Classification, Event, InboxItem, Scope, is_reflection
from memory.settings import Settings
from memory.state import Look, Spending, State

FIRST_WAIT = timedelta(minutes=1)
"""Until the second of two looks at the same goals."""

_DAY, _HOUR = len("2026-03-02"), len("2026-03-02T14")


def spent(
    spending: Spending, now: datetime, *, tokens: int, autonomous: bool, acted: bool = False
) -> Spending:
    """`spending` after one more tick. Tokens always count.

    `autonomous`: no event set it off. `acted`: it changed something outside of the agent, so that
    the next look at the goals waits for nothing.
    """
    held = held_at(spending, now)
    if acted:
        held.pop("look", None)
    return {
        **held,
        "autonomous_ticks": held["autonomous_ticks"] + autonomous,
        "tokens": held["tokens"] + tokens,
    }


def over(spending: Spending, settings: Settings, now: datetime) -> str | None:
    """Why only events are answered now, as a sentence; None while the budget lasts.

    A limit of 0 allows no autonomous ticks.
    """
    held = held_at(spending, now)
    most = settings.autonomous_ticks_per_hour
    if not most or not settings.tokens_per_day:
        name = "tokens_per_day" if most else "autonomous_ticks_per_hour"
        return f"{name} is 0: only events are answered."
    if held["tokens"] >= settings.tokens_per_day:
        return (
            f"{held['tokens']:,} model tokens were spent on {held['day']} UTC (tokens_per_day "
            f"{settings.tokens_per_day:,}): until that day is over only events are answered."
        )
    if held["autonomous_ticks"] >= most:
        return (
            f"{held['autonomous_ticks']:,} ticks of its own in the hour from {held['hour'][-2:]}:00"
            f" UTC (autonomous_ticks_per_hour {most:,}): until it is over only events are answered."
        )
    return None


def held_at(spending: Spending, now: datetime) -> Spending:
    """The part of `spending` that counts at `now`: its hour and its day."""
    stamp = now.astimezone(UTC).isoformat()
    hour, ticks = _rolled(spending["hour"], stamp[:_HOUR], spending["autonomous_ticks"])
    day, tokens = _rolled(spending["day"], stamp[:_DAY], spending["tokens"])
    held: Spending = {"hour": hour, "autonomous_ticks": ticks, "day": day, "tokens": tokens}
    return {**held, "look": spending["look"]} if "look" in spending else held


def _rolled(held: str, current: str, count: int) -> tuple[str, int]:
    """The hour or day to count in, and what was spent in it.

    Setting the clock back by hours does not renew the budget: within a day the later hour stays.
    If it is set back by days, as in a replay of old events, the count goes on from the new day;
    otherwise a single time far in the future would block the assistant until then.
    """
    if current > held:
        return current, 0
    return (held if held[:_DAY] == current[:_DAY] else current), count


def looked(state: State, settings: Settings, now: datetime) -> Spending:
    """`spending` as it is when a look at the goals begins."""
    found, before = _fingerprint(state, settings, now), state["spending"].get("look")
    same = before is not None and before["found"] == found
    repeated = before["repeated"] + 1 if before is not None and same else 0
    look = Look(at=now.isoformat(), found=found, repeated=repeated)
    return {**state["spending"], "look": look}


def next_look(state: State, settings: Settings, now: datetime) -> datetime | None:
    """When the goals are looked at again; None if now.

    Where nothing has changed since the last look, a model would say the same again. The waits
    double from FIRST_WAIT to `goal_pause_minutes`, because what the agent cannot see may change,
    too.
    """
    look = state["spending"].get("look")
    if look is None or look["found"] != _fingerprint(state, settings, now):
        return None
    longest = timedelta(minutes=settings.goal_pause_minutes)
    wait = min(FIRST_WAIT * 2.0 ** min(look["repeated"], 20), longest)
    last = datetime.fromisoformat(look["at"])
    return last + wait if last <= now < last + wait else None  # a clock may be set back


def why_wait(state: State, settings: Settings, now: datetime) -> str | None:
    """Why a run that nobody asked for does not look at the goals now; None if it does."""
    due = next_look(state, settings, now)
    if due is None:
        return None
    when = due.astimezone(settings.zone)
    return (
        f"Nothing has changed since the last look at the goals: the next is at {when:%H:%M %Z}, or "
        "when something happens."
    )


def _fingerprint(state: State, settings: Settings, now: datetime) -> str:
    """Of all that a look at the goals may depend on. The day counts: a text may name a date."""
    seen = [
        *(state[key] for key in ("goals", "projects", "session_memory", "conversations")),
        [event["id"] for event in state["context_buffer"]],
        state["assistant_prompt"]["version"],
        state["metrics"]["session_start"],
        now.astimezone(settings.zone).date().isoformat(),
    ]
    return sha256(json.dumps(seen, sort_keys=True, default=str).encode()).hexdigest()[:16]


Judged = tuple[Event, Classification]
ASLEEP = "Asleep. A message or `wake` wakes the agent."
NO_GOAL = "Nothing is pending and no goal is active."


class Pending(NamedTuple):
    """Waiting events by verdict, each list oldest first."""

    people: list[Judged]
    """To act on. They wake the agent, and keep it awake."""
    own: list[Judged]
    """Reflections: reviews of the assistant's own work."""
    context: list[Event]
    ignored: list[Judged]

    def empty(self) -> bool:
        """Whether no event waits."""
        return not any(self)

    def ready(self, state: State, settings: Settings, now: datetime) -> Judged | None:
        """The event to act on now, people's first.

        Reflections wait while the agent is asleep, and while the budget is used up.
        """
        waits = state["mode"] == "sleep" or over(state["spending"], settings, now) is not None
        return next(iter([*self.people, *([] if waits else self.own)]), None)


def sorted_out(
    items: Sequence[InboxItem], settings: Settings, owners: Sequence[str], *, past: Collection[str]
) -> Pending:
    """The waiting events by verdict, without those in `past` (tried in this run, or parked)."""
    events = [item["event"] for item in items if item["event"]["id"] not in past]
    judged = [(event, classify(event, settings=settings, owners=owners)) for event in events]
    acted = [pair for pair in judged if pair[1]["verdict"] == "act"]
    return Pending(
        people=[pair for pair in acted if not is_reflection(pair[0])],
        own=[pair for pair in acted if is_reflection(pair[0])],
        context=[event for event, found in judged if found["verdict"] == "context"],
        ignored=[pair for pair in judged if pair[1]["verdict"] == "ignore"],
    )


def parked_events(state: State) -> set[str]:
    """Ids of the events whose ticks wait for a person."""
    return {tick["event"]["id"] for tick in state["parked"] if tick["event"]}


def goals_parked(state: State) -> bool:
    """Whether an autonomous tick waits for a person; another would ask the same again."""
    return any(tick["event"] is None for tick in state["parked"])


def why_idle(state: State, settings: Settings, now: datetime) -> str | None:
    """Why the agent does not work on its goals, as a sentence; None if it does."""
    if not settings.enabled:
        return "Switched off (setting enabled): nothing is done."
    if state["mode"] == "sleep":
        return ASLEEP
    if all(goal["status"] != "active" for goal in state["goals"].values()):
        return NO_GOAL
    return over(state["spending"], settings, now)


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
