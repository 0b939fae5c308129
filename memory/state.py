"""The graph's state: working memory, checkpointed. JSON primitives and messages only.

Only keys that are merged on input or edited one record at a time have a reducer. What a subgraph
deletes from such a key comes back in its parent unless the subgraph ends in `hand_back`.
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
    """Counters of one session, from a waking to the next night (ruling 20)."""

    session_start: str | None
    total_tool_calls: int
    successful_calls: int
    failed_calls: int


class PromptVersion(TypedDict):
    """One version of the assistant's own prompt."""

    version: int
    """From 1; 0 is the empty prompt that it began with."""
    text: str
    at: str
    reason: str
    by: str
    """Whose event set the change off, and who approved it."""


class AssistantPrompt(TypedDict):
    """The assistant's own guidelines; the user's prompt is a setting and stands above them."""

    version: int
    """The one that holds."""
    text: str
    versions: list[PromptVersion]
    """Oldest first, bounded."""


class Spending(TypedDict):
    """What was spent awake in the hour and on the day in hand (UTC)."""

    hour: str
    """`YYYY-MM-DDTHH`."""
    autonomous_ticks: int
    day: str
    """`YYYY-MM-DD`."""
    tokens: int


class Slumber(TypedDict):
    """How it came to be asleep, and when its own hours last sent it there."""

    since: str | None
    """Since when it is asleep; None awake. Sleeping on at its hour, it is the hour's own time."""
    why: SleepCause | None
    last_hour: str | None
    """When its schedule last sent it to sleep: once in each window."""
    rested: float
    """The share (0..1 and more) of the context that the history filled when it last woke."""


class SleepWish(TypedDict):
    """The model's own wish to sleep, until the tick in hand has ended."""

    at: str
    reasoning: str


class NightCursor(TypedDict):
    """Which night is in hand, and what comes next. The night itself stands in the store."""

    id: str | None
    """None: there was nothing to do."""
    next: str
    """The node to visit next, decided by `next_step`."""


class AgentInput(TypedDict, total=False):
    """What a run may be given; small on purpose: it is Studio's form."""

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
    """What a run gives back."""

    messages: Annotated[list[AnyMessage], merge_messages]
    mode: Mode
    report: Report


class State(TypedDict, total=False):
    """Everything that is checkpointed, bounded in size."""

    schema_version: int
    mode: Mode
    phase: Phase | None
    tick: int
    messages: Annotated[list[AnyMessage], merge_messages]
    projects: Annotated[Projects, merge_projects]
    goals: Annotated[dict[str, Goal], merge_goals]
    goal_index: int
    """Goals made so far: the next goal's index."""
    session_memory: SessionMemory
    conversations: Annotated[dict[str, Conversation], merge_conversations]
    context_buffer: list[Event]
    """The last unaddressed events, oldest first."""
    metrics: SessionMetrics
    calibration: float
    """Reported tokens / approximate tokens, smoothed."""
    assistant_prompt: AssistantPrompt
    spending: Spending
    tool_cache: dict[str, CachedAnswer]
    """Answers of cacheable tools by a key of name, arguments and what they read."""
    consecutive_errors: int
    """Failures in a row (ruling 19)."""
    last_reflection: int
    """The tick after which the assistant was last asked to look at its own work."""
    emergency_stop: bool
    request: Annotated[Request | None, EphemeralValue]
    """One run's request: gone after `intake`, so that it never sticks to the thread."""
    events: Annotated[list[Event], EphemeralValue]
    returning: Annotated[bool, EphemeralValue]
    """Set where `intake` is reached from a subgraph, and not from the start of a run."""
    turn: Turn
    """What `intake` decided to do next."""
    event: Event | None
    """The event in hand, leased until its tick is committed; None in an autonomous tick."""
    classification: Classification | None
    """Why the event in hand is acted on."""
    parked: list[ParkedTick]
    """Ticks that wait for a person, oldest first."""
    resuming: str | None
    """The question of the parked tick in hand."""
    handled: list[HandledMark]
    """Ticks contained in this state whose events may still stand in the inbox."""
    context: AssembledContext | None
    assessment: Assessment | None
    pattern: PatternState | None
    loop: Loop | None
    delegated: Annotated[dict[str, DelegateResult], merge_delegated]
    """What the tick's sub-agents came back with, by call id; they run side by side."""
    exchange: list[AnyMessage]
    """A side loop's own messages (extraction, consolidation); empty between loops."""
    night: NightCursor | None
    slumber: Slumber
    sleep_wish: SleepWish | None
    """Set by `go_to_sleep`; `intake` carries it out, or says why not."""
    unattended: bool
    """The run in hand was given nothing: nobody waits for it."""
    report: Report


REDUCED_KEYS = ("messages", "projects", "goals", "conversations", "delegated")
"""The keys with a reducer: `hand_back` hands them to the parent as they are."""


def fresh_state() -> State:
    """The state of an agent that has never run, without its messages."""
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
