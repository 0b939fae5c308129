"""The graph's state: working memory, checkpointed. JSON primitives and messages only.

Only keys that are merged on input or edited one record at a time have a reducer. What a subgraph
deletes from such a key comes back in its parent unless the subgraph ends in `hand_back`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from langchain_core.messages import AnyMessage
from langgraph.channels import EphemeralValue
from typing_extensions import TypedDict

from memory.history import merge_messages
from memory.merging import merge_conversations, merge_goals, merge_projects
from memory.records import (
    Conversation,
    Event,
    Goal,
    NightStep,
    Operation,
    Projects,
    SessionMemory,
)

SCHEMA_VERSION = 1

Mode = Literal["awake", "sleep"]
Phase = Literal["compacting", "dreaming"]
Request = Literal["tick", "sleep", "wake", "stop", "clear_stop"]
Turn = Literal["tick", "night", "rest", "refuse"]


class SessionMetrics(TypedDict):
    """Counters of one session, from a waking to the next night (ruling 20)."""

    session_start: str | None
    total_tool_calls: int
    successful_calls: int
    failed_calls: int


class ToolOutcome(TypedDict):
    """One tool call as a report shows it."""

    name: str
    ok: bool


class PatternState(TypedDict):
    """The composed execution pattern (architecture-context-system, section 3)."""

    mode: Literal["single_action", "react_loop", "plan_execute"]
    max_iterations: int
    allowed_categories: list[str] | None
    terminal_ends_loop: bool
    dangerous_requires_confirm: bool
    multi_tool_enabled: bool
    sub_agents_enabled: bool
    source_layers: dict[str, str]


class AssembledContext(TypedDict):
    """The part of the prompt that stays byte-identical through a tick's loop."""

    context_type: str
    now: str
    """The tick's time: every write of the tick carries it."""
    system: str
    """Components 0..4000, in id order."""
    tokens: dict[str, int]
    """Calibrated estimate per component key."""


class Loop(TypedDict):
    """Where the tick in hand stands."""

    iteration: int
    """Model answers that asked for tools so far."""
    tools: list[ToolOutcome]
    written: list[str]
    """Ids of journal entries and facts that its tools wrote."""
    llm_calls: int
    tokens: int
    reply: str | None
    overflowed: bool
    """The provider said that the prompt is too long; one compaction and one more try follow."""
    compaction: Literal["none", "due", "forced", "done"]


class HandledMark(TypedDict):
    """An event whose tick this state contains; `intake` takes it out of the inbox."""

    id: str
    tick: int
    at: str


class TickReport(TypedDict):
    """What one tick did."""

    tick: int
    event_id: str | None
    context_type: str
    pattern: PatternState
    tools: list[ToolOutcome]
    llm_calls: int
    tokens: int
    reply: str
    written: list[str]
    """Ids of journal entries and facts."""


class FailureReport(TypedDict):
    """A tick that failed: its event went back to the inbox, or was set aside."""

    event_id: str | None
    error: str
    attempts: int
    set_aside: bool


class NightReport(TypedDict):
    """A night as `sleep --json` prints it."""

    id: str | None
    dry_run: bool
    started: str
    ended: str | None
    complete: bool
    held: list[str]
    steps: list[NightStep]
    operations: list[Operation]
    errors: list[str]


class Report(TypedDict):
    """What this run did and wrote, with ids."""

    ticks: list[TickReport]
    context_only: list[str]
    """Events taken as context."""
    skipped: list[str]
    """Ids that had been handled before."""
    failures: list[FailureReport]
    night: NightReport | None
    notes: list[str]
    """Sentences for a person: nothing to do, emergency stop, ..."""


class NightCursor(TypedDict):
    """Which night is in hand, and what comes next. The night itself stands in the store."""

    id: str | None
    """None: there was nothing to do."""
    next: str
    """The node to visit next, decided by `memory.night.next_step`."""


class AgentInput(TypedDict, total=False):
    """What a run may be given; small on purpose: it is Studio's form."""

    messages: Annotated[list[AnyMessage], merge_messages]
    """Chat: human messages; `name` is the sender, else the owner."""
    events: list[Event]
    """World: events with sender, text, channel, addressed."""
    request: Request | None
    """tick | sleep | wake | stop | clear_stop."""


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
    handled: list[HandledMark]
    """Ticks contained in this state whose events may still stand in the inbox."""
    context: AssembledContext | None
    pattern: PatternState | None
    loop: Loop | None
    exchange: list[AnyMessage]
    """A side loop's own messages (extraction, consolidation); empty between loops."""
    night: NightCursor | None
    report: Report


REDUCED_KEYS = ("messages", "projects", "goals", "conversations")
"""The keys with a reducer: `hand_back` hands them to the parent as they are."""


def empty_report() -> Report:
    """A report of a run that did nothing yet."""
    return {
        "ticks": [],
        "context_only": [],
        "skipped": [],
        "failures": [],
        "night": None,
        "notes": [],
    }


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
        "emergency_stop": False,
        "turn": "rest",
        "event": None,
        "handled": [],
        "context": None,
        "pattern": None,
        "loop": None,
        "exchange": [],
        "night": None,
        "report": empty_report(),
    }
