"""The records of a run's report: what it did and wrote, with ids."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from memory.compacted import CompactionResult, ExtractionResult
from memory.records import NightStatus, NightStep, Operation
from memory.tick import (
    Assessment,
    Classification,
    ContextUse,
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
    classification: Classification | None
    """Why the event was acted on; None in an autonomous tick."""
    assessment: Assessment
    context: ContextUse
    advice: str
    """The recommended action at this use of the context."""
    components: dict[str, int]
    """Tokens per prompt component."""
    sent: list[SentMessage]
    duration_ms: int
    extraction: NotRequired[ExtractionResult]
    """Of an emergency: what was journaled before the history was cut."""
    compaction: NotRequired[CompactionResult]


class IgnoredReport(TypedDict):
    """An event that was left alone, and why."""

    event_id: str
    rule: str
    reason: str


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
    status: NotRequired[NightStatus]
    """What has become of it; none where there was nothing to do."""
    stopped: NotRequired[str | None]
    """Why it stopped before everything was done."""
    gate: NotRequired[dict[str, Any] | None]
    """What was measured before it was applied; `held` says why it was held back."""
    refused: NotRequired[list[str]]
    """What of the model's answers came to nothing, and why."""
    extraction: NotRequired[ExtractionResult]
    """What was journaled before the history was cut."""
    compaction: NotRequired[CompactionResult]


class ModeChange(TypedDict):
    """That it fell asleep or woke, and why."""

    at: str
    mode: Literal["awake", "sleep"]
    why: str
    """request | go_to_sleep | schedule | fatigue; waking: request | event | answer | hours."""
    reason: str
    """A few words for a person."""


class Report(TypedDict):
    """What this run did and wrote, with ids."""

    ticks: list[TickReport]
    context_only: list[str]
    """Events taken as context."""
    ignored: list[IgnoredReport]
    questions: list[Question]
    """What a person is asked; their ticks wait."""
    skipped: list[str]
    """Ids that had been handled before."""
    failures: list[FailureReport]
    mode_changes: list[ModeChange]
    """That it fell asleep or woke in this run, in order."""
    night: NightReport | None
    notes: list[str]
    """Sentences for a person: nothing to do, emergency stop, ..."""


def empty_report() -> Report:
    """A report of a run that did nothing yet."""
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
