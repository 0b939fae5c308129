"""The graph's state, and changes of mode: working memory, JSON primitives and messages only. Pure.

Only keys that are merged on input or edited record by record have a reducer. A subgraph that
deletes from such a key must end in `record` or `hand_back`; otherwise its parent undoes the
deletion.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Required, TypeVar, cast

from langchain_core.messages import AnyMessage
from pydantic import Field
from typing_extensions import TypedDict

from memory.errors import StateError
from memory.messages import changes, history_share, merge_messages, without_waiting
from memory.planning import complete, completions, recompute
from memory.records import (
    AssembledContext,
    Assessment,
    AssistantPrompt,
    CachedAnswer,
    Classification,
    Conversation,
    DelegateResult,
    Event,
    Goal,
    HandledMark,
    Loop,
    ModeChange,
    ParkedTick,
    PatternState,
    Projects,
    Report,
    SessionMemory,
    empty_report,
)
from memory.settings import Settings

if TYPE_CHECKING:
    from langgraph.channels.base import BaseChannel

T = TypeVar("T")


def ephemeral() -> type[BaseChannel[Any, Any, Any]]:
    """The channel of a key that is gone in the next step; loaded when a graph is built."""
    from langgraph.channels import EphemeralValue

    return EphemeralValue


def merge_by_id(
    old: dict[str, Any] | None, new: dict[str, Any] | None, *, key: str = "records"
) -> dict[str, Any]:
    """Merge records by id, field by field; None deletes. Raises StateError, which names `key`."""
    merged = dict(_object(key, old))
    for id_, value in _object(key, new).items():
        if value is None:
            merged.pop(id_, None)
        elif isinstance(value, dict) and isinstance(merged.get(id_), dict):
            merged[id_] = {**merged[id_], **value}
        else:
            merged[id_] = value
    return merged


def merge_projects(old: Projects | None, new: dict[str, Any] | None) -> Projects:
    """Merge project slots by key; `active` is replaced if it is given. Raises StateError."""
    standing, given = _object("projects", old), _object("projects", new)
    slots = merge_by_id(standing.get("slots"), given.get("slots"), key="projects.slots")
    active = given.get("active", standing.get("active"))
    return cast(Projects, {"active": active, "slots": slots})


def _object(key: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise StateError(f"{key} must be an object of records by id; got {value!r:.80}")
    return value


SCHEMA_VERSION = 1
Mode = Literal["awake", "sleep"]
Phase = Literal["compacting", "dreaming"]
Request = Literal["tick", "sleep", "wake", "stop", "clear_stop"]
Turn = Literal["tick", "night", "rest", "refuse"]
SleepCause = Literal["request", "go_to_sleep", "schedule", "fatigue"]
WakeCause = Literal["request", "event", "answer", "hours"]


class SessionMetrics(TypedDict):
    """Counters of one session, from a waking to the next night."""

    session_start: str | None
    after_tick: NotRequired[int]
    """The last tick of the sessions before."""
    total_tool_calls: int
    successful_calls: int
    failed_calls: int


class Look(TypedDict):
    """The newest look at the goals: a tick without an event."""

    at: str
    found: str
    """Hash of all that the look depended on: goals, projects, events, the day."""
    repeated: int
    """Looks in a row before it that found the same."""


class Spending(TypedDict):
    """Ticks and tokens spent awake in the current hour and day (UTC)."""

    hour: str
    """`YYYY-MM-DDTHH`."""
    autonomous_ticks: int
    day: str
    """`YYYY-MM-DD`."""
    tokens: int
    look: NotRequired[Look]


class Slumber(TypedDict):
    """Since when and why the agent is asleep."""

    since: str | None
    """Start of the sleep; None if awake. Still asleep at its hour, that hour."""
    why: SleepCause | None
    last_hour: str | None
    """When the schedule last sent it to sleep, which happens once per window."""
    rested: float
    """Share of the context that the history filled at the last waking (may exceed 1)."""


class SleepWish(TypedDict):
    """The model's wish to sleep, until the current tick ends."""

    at: str
    reasoning: str


class NightCursor(TypedDict):
    """The current night and its next step; the night's record is in the store."""

    id: str | None
    """None if there was nothing to do."""
    next: str
    """The node to visit next, decided by `next_step`."""


class GivenEvent(TypedDict, total=False):
    """An event as a run brings it: the words are enough, the rest is filled in."""

    text: Required[Annotated[str, Field(title="Text")]]
    sender: Annotated[str, Field(title="Sender", description="Else the user.")]
    channel: Annotated[str | None, Field(title="Channel", description="Where it is said.")]
    addressed: Annotated[bool, Field(title="Addressed", description="False: context only.")]
    at: Annotated[str, Field(title="At", description="ISO 8601, else now.")]
    id: Annotated[str, Field(title="Id", description="The same id is handled once.")]


class AgentInput(TypedDict, total=False):
    """Input of a run; small, because Studio shows it as a form."""

    messages: Annotated[
        list[AnyMessage],
        Field(title="Messages", description="Human messages; `name` is who speaks, else the user."),
        merge_messages,
    ]
    events: Annotated[
        list[GivenEvent],
        Field(
            title="Events",
            description="What happens besides chat: text, sender, channel; not addressed: context.",
        ),
    ]
    request: Annotated[
        Request | None,
        Field(
            title="Request",
            description="tick, sleep, wake, stop or clear_stop. None: what was said or waits.",
        ),
    ]


class AgentOutput(TypedDict, total=False):
    """Output of a run."""

    messages: Annotated[list[AnyMessage], merge_messages]
    mode: Mode
    report: Report


class Course(TypedDict, total=False):
    """The keys of the state that routers go by. LangGraph merges no others for them."""

    turn: Turn
    pattern: PatternState | None
    loop: Loop | None
    exchange: list[AnyMessage]
    night: NightCursor | None


class State(TypedDict, total=False):
    """Everything that is checkpointed; bounded in size."""

    schema_version: int
    mode: Mode
    phase: Phase | None
    tick: int
    messages: Annotated[list[AnyMessage], merge_messages]
    projects: Annotated[Projects, merge_projects]
    goals: Annotated[dict[str, Goal], partial(merge_by_id, key="goals")]
    goal_index: int
    """Goals created so far, which is the next goal's index."""
    session_memory: SessionMemory
    conversations: Annotated[dict[str, Conversation], partial(merge_by_id, key="conversations")]
    shared_channels: dict[str, str]
    """Channels on which others than owners write, and since when; the newest MOST_SHARED."""
    context_buffer: list[Event]
    """The newest unaddressed events, oldest first."""
    metrics: SessionMetrics
    calibration: float
    """Reported tokens / approximate tokens, smoothed."""
    owned: bool
    """An owner has written to it: since then nobody else changes goals, projects or sleep."""
    assistant_prompt: AssistantPrompt
    spending: Spending
    tool_cache: dict[str, CachedAnswer]
    """Answers of cacheable tools by a key of name, arguments and the state they read."""
    consecutive_errors: int
    """Failures in a row."""
    last_reflection: int
    """The tick of the assistant's last review of its own work."""
    emergency_stop: bool
    request: Annotated[Request | None, ephemeral()]
    """Request of one run; ephemeral, so that it never sticks to the thread."""
    events: Annotated[list[Event], ephemeral()]
    returning: Annotated[bool, ephemeral()]
    """Set if `intake` follows a subgraph instead of the start of a run."""
    turn: Turn
    """Next action, decided by `intake`."""
    event: Event | None
    """Current event, in the inbox until its tick is committed; None in an autonomous tick."""
    classification: Classification | None
    """Why the current event is acted on."""
    parked: list[ParkedTick]
    """Ticks waiting for a person, oldest first."""
    resuming: str | None
    """The question whose parked tick is being resumed."""
    handled: list[HandledMark]
    """Events whose ticks this state contains; they may still be in the inbox."""
    context: AssembledContext | None
    assessment: Assessment | None
    pattern: PatternState | None
    loop: Loop | None
    delegated: Annotated[dict[str, DelegateResult], partial(merge_by_id, key="delegated")]
    """Results of the tick's sub-agents by call id; they run in parallel."""
    exchange: list[AnyMessage]
    """Messages of a side loop (extraction, consolidation); empty between loops."""
    night: NightCursor | None
    slumber: Slumber
    sleep_wish: SleepWish | None
    """Set by `go_to_sleep`; `intake` fulfils it or says why not."""
    unattended: bool
    """The current run got no input: nobody waits for it."""
    report: Report


REDUCED_KEYS = ("messages", "projects", "goals", "conversations", "delegated")
"""Keys with a reducer; they are handed back to the parent as they are."""


def held(value: T | None) -> T:
    """What a key holds at this point of a tick."""
    assert value is not None
    return value


def fresh_state() -> State:
    """State of an agent that has never run, without messages."""
    return {
        "schema_version": SCHEMA_VERSION,
        "mode": "awake",
        "phase": None,
        "tick": 0,
        "projects": {"active": None, "slots": {}},
        "goals": {},
        "goal_index": 0,
        "session_memory": {
            "key_facts": [],
            "learned_patterns": [],
            "completed_tasks": [],
            "last_compacted": None,
        },
        "conversations": {},
        "shared_channels": {},
        "context_buffer": [],
        "metrics": {
            "session_start": None,
            "total_tool_calls": 0,
            "successful_calls": 0,
            "failed_calls": 0,
        },
        "calibration": 1.0,
        "assistant_prompt": {"version": 0, "text": "", "versions": []},
        "spending": {"hour": "", "autonomous_ticks": 0, "day": "", "tokens": 0},
        "tool_cache": {},
        "consecutive_errors": 0,
        "last_reflection": 0,
        "emergency_stop": False,
        "turn": "rest",
        "event": None,
        "classification": None,
        "parked": [],
        "resuming": None,
        "handled": [],
        "context": None,
        "assessment": None,
        "pattern": None,
        "loop": None,
        "delegated": {},
        "exchange": [],
        "night": None,
        "slumber": {"since": None, "why": None, "last_hour": None, "rested": 0.0},
        "sleep_wish": None,
        "unattended": False,
        "report": empty_report(),
    }


IN_HAND = (
    *("turn", "event", "classification", "resuming", "context", "assessment", "pattern", "loop"),
    *("delegated", "exchange", "night", "report", "tool_cache"),
)
"""Keys of the current run, tick or night. Dropping them loses nothing: events and nights are
stored.
"""

EPHEMERAL = ("request", "events", "returning")
"""Keys of one run's input."""


def at_rest(values: Mapping[str, Any]) -> dict[str, Any]:
    """A thread's state without the keys of a run in progress; {} if the agent has never run."""
    if not values.get("schema_version"):
        return {}
    fresh: Mapping[str, Any] = fresh_state()
    kept = {key: value for key, value in values.items() if key not in EPHEMERAL}
    return {**kept, **{key: fresh[key] for key in IN_HAND}}


def filled(state: State, settings: Settings) -> float:
    """The share of the context that the history fills; 1 or more if it does not fit."""
    return history_share(state["messages"], state["calibration"], settings.max_context_tokens)


def counted_failure(state: State, loop: Loop) -> dict[str, Any]:
    """The state update for a model that gave no usable answer, which is a failure."""
    return {
        "loop": {**loop, "raised": loop["raised"] + 1},
        "consecutive_errors": state["consecutive_errors"] + 1,
    }


def fallen_asleep(state: State, now: datetime, why: SleepCause, reason: str) -> dict[str, Any]:
    """The state update for falling asleep, or for sleeping on for another reason.

    An agent that fell asleep by itself is taken over by its schedule at its hour, so that the end
    of its hours wakes it. A sleep that a person asked for is not: the clock overrules nobody.
    """
    stamp = now.isoformat()
    slumber, awake = state["slumber"], state["mode"] == "awake"
    by_itself = slumber["why"] in ("go_to_sleep", "fatigue")
    taken_over = why == "request" or (why == "schedule" and by_itself)
    after: Slumber = {
        "since": stamp if awake or taken_over else slumber["since"],
        "why": why if awake or taken_over else slumber["why"],
        "last_hour": stamp if why == "schedule" else slumber["last_hour"],
        "rested": slumber["rested"],
    }
    told = awake or (taken_over and slumber["why"] != why)
    changes = [_change(now, "sleep", why, reason)] if told else []
    return {
        "mode": "sleep",
        "phase": "compacting",
        "slumber": after,
        "sleep_wish": None,
        "report": reported(state["report"], changes),
    }


def woken(
    state: State, settings: Settings, now: datetime, why: WakeCause, reason: str
) -> dict[str, Any]:
    """The state update for waking: a new session with new metrics and caches."""
    asleep = state["mode"] == "sleep"
    share = filled(state, settings)
    after: Slumber = {**state["slumber"], "since": None, "why": None}
    changes = [_change(now, "awake", why, reason)] if asleep else []
    return {
        "mode": "awake",
        "phase": None,
        "metrics": {
            "session_start": now.isoformat(),
            "after_tick": state["tick"],
            "total_tool_calls": 0,
            "successful_calls": 0,
            "failed_calls": 0,
        },
        "tool_cache": {},
        "slumber": {**after, "rested": share} if asleep else after,
        "report": reported(state["report"], changes),
    }


def reported(report: Report, changes: list[ModeChange]) -> Report:
    """`report` with these mode changes appended."""
    return {**report, "mode_changes": [*report["mode_changes"], *changes]}


def _change(
    now: datetime, mode: Literal["awake", "sleep"], why: SleepCause | WakeCause, reason: str
) -> ModeChange:
    return {"at": now.isoformat(), "mode": mode, "why": why, "reason": reason}


def rolled_up(state: State, now: datetime) -> dict[str, Any]:
    """The state update that makes goals consistent after an edit by hand."""
    before = state["goals"]
    goals = recompute(before)
    if goals == before:
        return {}
    done = completions(before, goals, now)
    return {"goals": goals, "session_memory": complete(state["session_memory"], done)}


def lent(state: State) -> State:
    """The state for a subgraph: messages that wait for their own ticks are none of its history."""
    return {**state, "messages": [*without_waiting(state["messages"])]}


def returned(state: State, ended: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that the subgraph changed; of the messages, what it added, changed or removed."""
    before: Mapping[str, Any] = state
    changed = {
        key: value for key, value in ended.items() if key not in before or value is not before[key]
    }
    return {**changed, "messages": changes(lent(state)["messages"], ended["messages"])}
