"""Records of a run's report: what it did and wrote, with ids."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from memory.records.records import NightStatus, NightStep, Operation
from memory.records.tick import (
    Assessment,
    Classification,
    CompactionResult,
    ContextUse,
    ExtractionResult,
    PatternState,
    Question,
    SentMessage,
    ToolOutcome,
)


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
    shown: NotRequired[list[str]]
    """Ids of the memories it was shown: recalled, on its pages, then what its tools recalled."""
    classification: Classification | None
    """Why the event was acted on; None in an autonomous tick."""
    assessment: Assessment
    context: ContextUse
    advice: str
    """Recommended action at the current context use."""
    components: dict[str, int]
    """Tokens per prompt component."""
    sent: list[SentMessage]
    duration_ms: int
    truncated: NotRequired[bool]
    """The model's output limit cut the reply off."""
    extraction: NotRequired[ExtractionResult]
    """In an emergency: what was journaled before the history was cut."""
    compaction: NotRequired[CompactionResult]


class TickPrompt(TypedDict):
    """The prompt of a tick's first model call, without the conversation, which is kept itself."""

    tick: int
    at: str
    system: str
    """The system message."""
    front: str
    """What stood in front of the newest event: the clock, people, memories, goals."""
    messages: int
    """Messages of the conversation between the two."""


class IgnoredReport(TypedDict):
    """An ignored event, and why."""

    event_id: str
    rule: str
    reason: str


class FailureReport(TypedDict):
    """A failed tick; its event went back to the inbox or was set aside."""

    event_id: str | None
    error: str
    kind: NotRequired[str]
    """The type of the error, such as ConfigurationError."""
    attempts: int
    """0: it does not count against the event."""
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
    status: NotRequired[NightStatus]
    """Missing if there was nothing to do."""
    stopped: NotRequired[str | None]
    """Why it stopped early."""
    gate: NotRequired[dict[str, Any] | None]
    """Measurements before it was applied; its `held` says why it was held back."""
    refused: NotRequired[list[str]]
    """Rejected parts of the model's answers, with reasons."""
    extraction: NotRequired[ExtractionResult]
    """What was journaled before the history was cut."""
    compaction: NotRequired[CompactionResult]


class ModeChange(TypedDict):
    """The agent fell asleep or woke."""

    at: str
    mode: Literal["awake", "sleep"]
    why: str
    """request | go_to_sleep | schedule | fatigue; waking: request | event | answer | hours."""
    reason: str
    """A few words for a person."""


class OpenQuestion(TypedDict):
    """A contradiction, or a fact in doubt, as a question to an owner."""

    text: str
    facts: list[str]
    """Ids of the two facts, the newer one first; of a doubt the fact, and what it rests on."""


class Briefing(TypedDict):
    """What an owner should know after a night, each point one sentence; at most 150 words."""

    night: str
    """The night's id."""
    at: str
    """When it ended."""
    changed: list[str]
    questions: list[OpenQuestion]
    deadlines: list[str]
    """Within seven days, the nearest first."""
    waiting: list[str]
    """What waits for a person."""


class Report(TypedDict):
    """What a run did and wrote, with ids."""

    ticks: list[TickReport]
    context_only: list[str]
    """Events taken as context."""
    ignored: list[IgnoredReport]
    questions: list[Question]
    """Questions to a person; their ticks wait."""
    skipped: list[str]
    """Ids of events handled before."""
    failures: list[FailureReport]
    mode_changes: list[ModeChange]
    """Oldest first."""
    night: NightReport | None
    notes: list[str]
    """Sentences for a person: nothing to do, emergency stop, ..."""
    briefing: NotRequired[Briefing | None]
    """After a night that was applied."""


def empty_report() -> Report:
    """The report of a run that has done nothing yet."""
    return {
        "ticks": [],
        "context_only": [],
        "ignored": [],
        "questions": [],
        "skipped": [],
        "failures": [],
        "mode_changes": [],
        "night": None,
        "notes": [],
    }


What = Literal[
    "tool_call",
    "goal_created",
    "goal_updated",
    "goal_completed",
    "goal_deleted",
    "fact_corrected",
    "prompt_changed",
    "prompt_rolled_back",
    "question_asked",
    "question_answered",
    "emergency_stop",
    "stop_cleared",
    "fell_asleep",
    "woke",
    "night",
    "night_approved",
    "night_discarded",
    "undo",
    "forgotten",
    "compaction",
]

Outcome = Literal["ok", "error", "refused", "cached"]


class AuditEntry(TypedDict):
    """One action or event."""

    id: str
    """`audit_<YYYYMMDD>_<digest of the content>`; a repeated write is one entry."""
    at: str
    """ISO 8601, UTC."""
    who: str
    """`agent`, or a person's id."""
    what: What
    target: str
    """A tool, a goal's id, a version of the prompt, a night's id, ..."""
    why: str | None
    """The reason; for a tool call the one that the model gave."""
    outcome: Outcome
    detail: dict[str, Any]
    """Details, JSON, bounded in length."""
    duration_ms: int | None
    model: str | None
    tick: int | None
    origin: str | None
    """Id of the event or night behind it; None in an autonomous tick."""
