"""Records of the tick in hand and of what a run reports: what it did and wrote, with ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, cast

from typing_extensions import TypedDict

from memory.records.records import Event, NightStatus, NightStep, Operation, Time, Usage
from memory.settings import Verdict

EndedBy = Literal["noop", "no_tool_call", "other_tool", "max_iterations", "error"]


class ExtractionResult(TypedDict):
    """Outcome of journaling before a compaction."""

    success: bool
    """False if the model gave no usable answer."""
    facts_recorded: int
    """Journal entries."""
    iterations: int
    """Answers of the model."""
    ended: EndedBy | None
    """None if it was interrupted."""


class CompactionResult(TypedDict):
    """How a compaction changed the history."""

    success: bool
    skipped: NotRequired[bool]
    """True if there was nothing to cut."""
    by: Literal["summary", "extract", "masking"]
    """Summarised by the model, quoted from the conversation, or only old tool outputs masked."""
    compacted_count: int
    """Messages that the summary replaced."""
    preserved_count: int
    tokens_before: int
    """Tokens of the history, calibrated."""
    tokens_after: int
    archive: str | None
    """The journal entry with the text."""
    error: str | None
    """Why there is no summary by the model."""


class Results(TypedDict):
    """Results of a night's extraction and compaction."""

    extraction: NotRequired[ExtractionResult]
    compaction: NotRequired[CompactionResult]


def after_answer(
    before: ExtractionResult | None, *, facts: int, ended: EndedBy | None
) -> ExtractionResult:
    """The result after one more answer of the model, or after an error instead of an answer."""
    had = before or {"success": True, "facts_recorded": 0, "iterations": 0, "ended": None}
    return {
        "success": ended != "error",
        "facts_recorded": had["facts_recorded"] + facts,
        "iterations": had["iterations"] + (ended != "error"),
        "ended": ended,
    }


def results_of(plans: Sequence[Mapping[str, Any]]) -> Results:
    """The results in a night's plans."""
    found: Results = {}
    for plan in plans:
        told = plan.get("result")
        if plan["step"] == "compact" and told:
            found["compaction"] = cast(CompactionResult, told)
        if plan["step"] == "extract_facts":
            told = told or {"facts": 0, "ended": "error"}
            found["extraction"] = after_answer(found.get("extraction"), **cast(Any, told))
    return found


def compaction_line(result: CompactionResult) -> str:
    """The compaction as a sentence for a person."""
    before, after = f"{result['tokens_before']:,}", f"{result['tokens_after']:,}"
    if result["by"] == "masking":
        return f"Old tool outputs were taken out of the history: {before} -> {after} tokens."
    what = "a summary" if result["by"] == "summary" else "an extract of their own words"
    line = (
        f"{result['compacted_count']} messages gave way to {what}, {result['preserved_count']} "
        f"stay: {before} -> {after} tokens"
    )
    archive = f"; the journal keeps it as {result['archive']}" if result["archive"] else ""
    return f"{line}{archive}."


def extraction_line(result: ExtractionResult) -> str:
    """The extraction as a sentence for a person."""
    entries, answers = result["facts_recorded"], result["iterations"]
    told = f"{entries} {'conclusion' if entries == 1 else 'conclusions'} journaled before that"
    how = "" if result["success"] else "; then the model gave no usable answer"
    return f"{told}, in {answers} {'answer' if answers == 1 else 'answers'} of the model{how}."


class ToolOutcome(TypedDict):
    """One tool call as a report shows it."""

    name: str
    ok: bool


class CallRecord(TypedDict):
    """One tool call as the audit log keeps it."""

    name: str
    args: dict[str, Any]
    """Without the reasoning; empty if they were too large to run."""
    reasoning: str | None
    """The model's own."""
    ok: bool
    error: str | None
    duration_ms: int
    cached: bool
    """The answer came from the cache; the tool did not run."""


class SentMessage(TypedDict):
    """A message that `send_message` sent to somebody other than the asker."""

    id: str
    to: str
    text: str
    channel: str | None
    tick: int
    at: str


class Classification(TypedDict):
    """The verdict on an event, and the rule behind it."""

    verdict: Verdict
    rule: str
    """disabled | reflection | own_message | mention | direct | cross_talk | permission | channel |
    room_default | fallback."""
    trust: float
    """0..1, the same as in its journal entry."""
    reason: str
    """One sentence for a person."""


# States of older versions may have "observation" and "movement".
EventClass = Literal[
    "communication", "building", "observation", "movement", "query", "goal_action", "unknown"
]


class Assessment(TypedDict):
    """The assessment of a task, with its reasons."""

    by: Literal["heuristic", "model"]
    event_class: EventClass
    complexity: int
    """1..5."""
    recommended_mode: Literal["single_action", "react_loop", "plan_execute"] | None
    recommended_iterations: int | None
    recommend_confirm_dangerous: bool
    reasoning: str
    signals: dict[str, Any]
    """token_pressure (normal | high | critical), recent_errors, event_class, goal_urgency."""


class Question(TypedDict):
    """A question to a person before a dangerous tool runs."""

    id: str
    tool: str
    args: dict[str, Any]
    reason: str | None
    """The model's own."""
    what: str
    """One sentence: what would be done."""
    rests_on: NotRequired[list[str]]
    """People other than owners on whose words the call rests."""
    difference: str | None
    """A unified diff, if the tool changes a text."""
    event_id: str | None
    sender: str | None
    asked_at: Time


class CachedAnswer(TypedDict):
    """A tool's answer that is reused without running the tool again."""

    content: str
    scope: Literal["tick", "session"]
    tick: int
    expires: str | None


class DelegateResult(TypedDict):
    """The result of one sub-agent."""

    call_id: str
    content: str
    """The tool's answer, JSON."""
    ok: bool
    usage: Usage
    calls: list[CallRecord]
    """The call itself, then the calls of the sub-agent's own tools."""


class PatternState(TypedDict):
    """The composed execution pattern."""

    mode: Literal["single_action", "react_loop", "plan_execute"]
    max_iterations: int
    allowed_categories: list[str] | None
    terminal_ends_loop: bool
    dangerous_requires_confirm: bool
    multi_tool_enabled: bool
    sub_agents_enabled: bool
    source_layers: dict[str, str]


class AssembledContext(TypedDict):
    """The part of the prompt that stays the same, byte for byte, through a tick's loop."""

    context_type: str
    now: str
    """The time of the tick and of all its writes."""
    system: str
    """The system message: the part that stays the same from tick to tick."""
    front: NotRequired[str]
    """The part that changes. It precedes the newest event, and is not in the history."""
    after: NotRequired[str]
    """What the context says after the event."""
    tokens: dict[str, int]
    """Calibrated estimate per component key."""
    origins: NotRequired[list[str]]
    """Those besides owners whose words it holds."""
    recalled: NotRequired[dict[str, str]]
    """Texts of the facts recalled for it, by id; facts that the answer uses are credited."""
    shown: NotRequired[list[str]]
    """Ids of the memories that it shows: what was recalled, best first, then what its pages say."""
    heard_by: NotRequired[tuple[Literal["private", "public"], str | None]]
    """Of a sub-agent: audience and channel of its requester's answer."""


class Loop(TypedDict):
    """The loop of the current tick so far."""

    iteration: int
    """Number of model answers that asked for tools."""
    tools: list[ToolOutcome]
    written: list[str]
    """Ids of journal entries and facts that its tools wrote."""
    llm_calls: int
    tokens: int
    reply: str | None
    overflowed: bool
    """The provider found the prompt too long; one compaction and one more try follow."""
    compaction: Literal["none", "due", "forced", "done"]
    next: Literal["act", "use_tools", "park", "confirm", "delegate", "record"]
    """The next node, decided by the previous node."""
    ended: bool
    """A TERMINAL tool has run: no further model call."""
    dangerous: str | None
    """Id of the tick's one DANGEROUS call, once the model has asked for it."""
    decision: Decision | None
    """A person's answer about that call; None if nobody was asked, or has answered yet."""
    raised: int
    """Number of tools that raised or timed out in this tick."""
    sent: list[SentMessage]
    delegating: list[str]
    """Ids of the calls that sub-agents are working on."""
    extracted: NotRequired[ExtractionResult]
    """Outcome of journaling before the tick's compaction."""
    compacted: NotRequired[CompactionResult]
    """The result of that compaction."""
    truncated: NotRequired[bool]
    """The output limit cut the reply off."""
    prompt: dict[str, int]
    """Tokens of the newest prompt beside the assembled components: history and tool schemas."""


class Decision(TypedDict):
    """A person's answer to a question."""

    decision: Literal["approve", "edit", "refuse"]
    args: dict[str, Any] | None
    """With `edit`: the arguments that replace the model's."""
    reason: str | None
    by: str
    at: Time


class ParkedTick(TypedDict):
    """A tick that waits for a person, with its work so far; its event is still in the inbox."""

    question: Question
    event: Event | None
    classification: Classification | None
    assessment: Assessment
    context: AssembledContext
    pattern: PatternState
    loop: Loop
    messages: list[dict[str, Any]]
    """The tick's messages, serialised; they return to the history when the tick resumes."""


class ContextUse(TypedDict):
    """How full the prompt is, tokens (calibrated)."""

    used: int
    limit: int
    percentage: float
    level: Literal["normal", "warning", "critical"]


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
    question: NotRequired[str]
    """Id of the question whose answer it waited for."""
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
    left: NotRequired[dict[str, int]]
    """For each step the number of items that it did not come to."""
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
    at: Time
    """ISO 8601, UTC."""
    who: str
    """`agent`, or a person's id."""
    what: What
    target: str
    """A tool, a goal's id, a version of the prompt, a night's id, ..."""
    why: str | None
    """The reason; for a tool call, the model's reason."""
    outcome: Outcome
    detail: dict[str, Any]
    """Details, JSON, bounded in length."""
    duration_ms: int | None
    model: str | None
    tick: int | None
    origin: str | None
    """Id of the event or night behind it; None in an autonomous tick."""
