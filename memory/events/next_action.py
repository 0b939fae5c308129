"""What a run can do next: budgets, waiting events by verdict, goals, sleep, the emergency stop.

Pure, except for a person's request for an emergency stop, which reaches a run in progress through
the store: namespace (below `(user, thread)`) `controls` "stop" -> {at, by}, until a checkpoint
holds the stop, or it is cleared.

Hours of sleep are local, times are aware. If the clocks skip the start hour, the night begins right
after the skip; if the hour comes twice, the night begins the first time.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, time, timedelta
from hashlib import sha256
from typing import NamedTuple

from langgraph.store.base import BaseStore

from memory.events.rules import classify
from memory.records import Classification, Event, InboxItem, Report, Scope, is_reflection
from memory.settings import Settings
from memory.state import Look, SleepCause, Spending, State, filled
from memory.text import zone_name

FIRST_WAIT = timedelta(minutes=1)
"""Shortest wait between two looks at the same goals."""

_DAY, _HOUR = len("2026-03-02"), len("2026-03-02T14")


def spending_after_tick(
    spending: Spending, now: datetime, *, tokens: int, autonomous: bool, acted: bool = False
) -> Spending:
    """`spending` after one more tick. Tokens always count.

    After a tick that `acted` outside of the agent the next look at the goals does not wait.
    """
    used = spending_at(spending, now)
    if acted:
        used.pop("look", None)
    return {
        **used,
        "autonomous_ticks": used["autonomous_ticks"] + autonomous,
        "tokens": used["tokens"] + tokens,
    }


def at_least(spending: Spending, now: datetime, tokens: int) -> Spending:
    """`spending` with no fewer than these tokens of the day, whoever edited it."""
    used = spending_at(spending, now)
    return spending if used["tokens"] >= tokens else {**used, "tokens": tokens}


def why_only_events(spending: Spending, settings: Settings, now: datetime) -> str | None:
    """Why only events are answered now, as a sentence; None while the budget lasts."""
    used = spending_at(spending, now)
    most = settings.autonomous_ticks_per_hour
    if not most or not settings.tokens_per_day:
        name = "tokens_per_day" if most else "autonomous_ticks_per_hour"
        return f"{name} is 0: only events are answered."
    if used["tokens"] >= settings.tokens_per_day:
        return (
            f"{used['tokens']:,} model tokens were spent on {used['day']} UTC (tokens_per_day "
            f"{settings.tokens_per_day:,}): until that day is over only events are answered."
        )
    if used["autonomous_ticks"] >= most:
        return (
            f"{used['autonomous_ticks']:,} autonomous ticks in the hour from {used['hour'][-2:]}:00"
            f" UTC (autonomous_ticks_per_hour {most:,}): until it is over only events are answered."
        )
    return None


def spending_at(spending: Spending, now: datetime) -> Spending:
    """The part of `spending` that counts at `now`: its hour and its day."""
    stamp = now.astimezone(UTC).isoformat()
    hour, day = stamp[:_HOUR], stamp[:_DAY]
    return {
        **spending,
        "hour": hour,
        "autonomous_ticks": spending["autonomous_ticks"] if spending["hour"] == hour else 0,
        "day": day,
        "tokens": spending["tokens"] if spending["day"] == day else 0,
    }


def spending_after_look(state: State, settings: Settings, now: datetime) -> Spending:
    """`spending` with the look at the goals that begins now."""
    found, before = _fingerprint(state, settings, now), state["spending"].get("look")
    same = before is not None and before["found"] == found
    repeated = before["repeated"] + 1 if before is not None and same else 0
    look = Look(at=now.isoformat(), found=found, repeated=repeated)
    return {**state["spending"], "look": look}


def next_look(state: State, settings: Settings, now: datetime) -> datetime | None:
    """When the goals are looked at again; None: now.

    If nothing changed, a model would say the same again: the wait doubles from FIRST_WAIT to
    `goal_pause_minutes`. It ends, because things that the agent cannot see may change.
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
    """A hash of all that a look at the goals depends on; also of the day, as texts name dates."""
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
        """The event to act on now, people's first; reflections wait for a waking and a budget."""
        waits = state["mode"] == "sleep" or why_only_events(state["spending"], settings, now)
        return next(iter([*self.people, *([] if waits else self.own)]), None)


def by_verdict(
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
    return why_only_events(state["spending"], settings, now)


CONTROLS, STOP = "controls", "stop"


def stop_sentence(waiting: int) -> str:
    """Say that the stop is on, and how many events wait."""
    if waiting == 0:
        return "Emergency stop: the inbox is empty, and nothing is done until the stop is cleared."
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


RECOVERY = 0.05
"""Share of the context by which the history must grow before fatigue sends to sleep again."""


class Window(NamedTuple):
    """The hours of one night, UTC; `end` is exclusive."""

    start: datetime
    end: datetime


def window_of(day: date, settings: Settings) -> Window:
    """The hours of sleep that begin on the local `day`."""
    zone = settings.zone
    # fold=0 takes the first of two equal hours, and reads a skipped hour with the earlier offset,
    # which gives the first moment after the skip.
    start = datetime.combine(day, time(settings.sleep_start_hour), zone).astimezone(UTC)
    return Window(start, start + timedelta(hours=settings.sleep_duration_hours))


def window_at(now: datetime, settings: Settings) -> Window | None:
    """The hours of sleep that contain `now`; None outside of them, or without a schedule."""
    if not settings.sleep_schedule_enabled:
        return None
    today = now.astimezone(settings.zone).date()
    for day in (today, today - timedelta(days=1)):
        window = window_of(day, settings)
        if window.start <= now < window.end:
            return window
    return None


def next_start(now: datetime, settings: Settings) -> datetime:
    """The next beginning of the hours of sleep after `now`."""
    today = now.astimezone(settings.zone).date()
    starts = (window_of(today + timedelta(days=days), settings).start for days in range(3))
    return next(start for start in starts if start > now)


def sleep_due(now: datetime, settings: Settings, *, last: datetime | None) -> bool:
    """Whether the schedule sends the agent to sleep: once a window. `last`: when it last did."""
    window = window_at(now, settings)
    return window is not None and (last is None or last < window.start)


def wake_due(now: datetime, settings: Settings, *, asleep_since: datetime | None) -> bool:
    """Whether the window in which the agent fell asleep is over."""
    if asleep_since is None or not settings.sleep_schedule_enabled:
        return False
    window = window_at(asleep_since, settings)
    return window is not None and now >= window.end


def fatigued(share: float, settings: Settings, *, pending: bool, rested: float = 0.0) -> bool:
    """Whether fatigue sends the agent to sleep: the history is long and nothing is `pending`.

    `share` (0..1) of the context is filled now, and `rested` was when the agent last woke.
    """
    at = settings.fatigue_threshold
    if at is None or pending or share < at:
        return False
    return rested < at or share >= rested + RECOVERY


def own_sleep_cause(
    state: State, settings: Settings, now: datetime, pending: Pending
) -> SleepCause | None:
    """Why the agent falls asleep by itself now, or sleeps on at its hour; None if not.

    It stays awake while events to act on are `pending` or the emergency stop is on. Schedule and
    fatigue apply only to runs that nobody waits for.
    """
    if pending.people or state["emergency_stop"] or not settings.enabled:
        return None
    if state["mode"] == "awake" and state["sleep_wish"] is not None:
        return "go_to_sleep"
    if not state["unattended"]:
        return None
    last = state["slumber"]["last_hour"]
    if sleep_due(now, settings, last=_moment(last)):
        return "schedule"
    if state["mode"] == "sleep":
        return None
    share, rested = filled(state, settings), state["slumber"]["rested"]
    tired = fatigued(share, settings, pending=not pending.empty(), rested=rested)
    return "fatigue" if tired else None


def hours_over(state: State, settings: Settings, now: datetime) -> bool:
    """Whether the schedule wakes the agent. A night that a person asked for has no hours."""
    slumber = state["slumber"]
    if state["mode"] != "sleep" or slumber["why"] in ("request", None):
        return False
    return wake_due(now, settings, asleep_since=_moment(slumber["since"]))


def why_dreaming_ends(state: State, settings: Settings, now: datetime) -> str | None:
    """Why dreaming ends early, apart from new messages; None if it does not.

    A person woke the agent, or its hours are over. Compacting is always finished.
    """
    changes = state["report"]["mode_changes"]
    awake = state["mode"] == "awake"
    by_hours = changes[-1:] and changes[-1]["why"] == "hours"
    if awake and not by_hours:
        return "it was woken"
    over = awake or hours_over(state, settings, now)
    return f"its hours are over ({hours_named(settings)})" if over else None


def hours_named(settings: Settings) -> str:
    """`02:00 Europe/Berlin, 4 h`."""
    hours = f"{settings.sleep_duration_hours:g} h"
    return f"{settings.sleep_start_hour:02d}:00 {zone_name(settings.zone)}, {hours}"


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def misconfigured(report: Report) -> str | None:
    """Why every further tick of this run would fail: key, name or address of the model is wrong."""
    wrong = [one for one in report["failures"] if one.get("kind") == "ConfigurationError"]
    return wrong[-1]["error"] if len(wrong) > 1 and not report["ticks"] else None
