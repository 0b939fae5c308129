"""The graph's state: checkpointed working memory, JSON primitives and messages only.

Only keys that are merged on input or edited record by record have a reducer. A subgraph that
deletes from such a key must end in `hand_back`; otherwise the deletion is undone in its parent.
"""

from __future__ import annotations

from typing import Annotated, Literal

from langchain_core.messages import AnyMessage
from langgraph.channels import EphemeralValue
from pydantic import Field
from typing_extensions import TypedDict

from memory.history import merge_messages
from memory.merging import merge_conversations, merge_delegated, merge_goals, merge_projects
from memory.records import Conversation, Event, Goal, HandledMark, Projects, SessionMemory
from memory.reports import Report, empty_report
from memory.tick import (
    AssembledContext,
    Assessment,
    CachedAnswer,
    Classification,
    DelegateResult,
    Loop,
    ParkedTick,
    PatternState,
)

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
    total_tool_calls: int
    successful_calls: int
    failed_calls: int


class PromptVersion(TypedDict):
    """One version of the assistant's own prompt."""

    version: int
    """From 1; 0 is the initial empty prompt."""
    text: str
    at: str
    reason: str
    by: str
    """Whose event caused the change, and who approved it."""


class AssistantPrompt(TypedDict):
    """The assistant's own guidelines; the user's prompt is a setting and comes before them."""

    version: int
    """The current version."""
    text: str
    versions: list[PromptVersion]
    """Oldest first, bounded."""


class Spending(TypedDict):
    """Ticks and tokens spent awake in the current hour and day (UTC)."""

    hour: str
    """`YYYY-MM-DDTHH`."""
    autonomous_ticks: int
    day: str
    """`YYYY-MM-DD`."""
    tokens: int


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


class AgentInput(TypedDict, total=False):
    """Input of a run; small, because Studio shows it as a form."""

    messages: Annotated[
        list[AnyMessage],
        Field(title="Messages", description="Human messages; `name` is who speaks, else the user."),
        merge_messages,
    ]
    events: Annotated[
        list[Event],
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


class State(TypedDict, total=False):
    """Everything that is checkpointed; bounded in size."""

    schema_version: int
    mode: Mode
    phase: Phase | None
    tick: int
    messages: Annotated[list[AnyMessage], merge_messages]
    projects: Annotated[Projects, merge_projects]
    goals: Annotated[dict[str, Goal], merge_goals]
    goal_index: int
    """Goals created so far, which is the next goal's index."""
    session_memory: SessionMemory
    conversations: Annotated[dict[str, Conversation], merge_conversations]
    context_buffer: list[Event]
    """The newest unaddressed events, oldest first."""
    metrics: SessionMetrics
    calibration: float
    """Reported tokens / approximate tokens, smoothed."""
    assistant_prompt: AssistantPrompt
    spending: Spending
    tool_cache: dict[str, CachedAnswer]
    """Answers of cacheable tools by a key of name, arguments and the state they read."""
    consecutive_errors: int
    """Failures in a row."""
    last_reflection: int
    """The tick of the assistant's last review of its own work."""
    emergency_stop: bool
    request: Annotated[Request | None, EphemeralValue]
    """Request of one run; ephemeral, so that it never sticks to the thread."""
    events: Annotated[list[Event], EphemeralValue]
    returning: Annotated[bool, EphemeralValue]
    """Set if `intake` follows a subgraph instead of the start of a run."""
    turn: Turn
    """Next action, decided by `intake`."""
    event: Event | None
    """Current event, leased until its tick is committed; None in an autonomous tick."""
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
    delegated: Annotated[dict[str, DelegateResult], merge_delegated]
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
"""Keys with a reducer; `hand_back` returns them to the parent as they are."""


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
