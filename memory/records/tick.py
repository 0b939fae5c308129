"""Records of the current tick: its assessment, its execution pattern, its loop and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, cast

from typing_extensions import TypedDict

from memory.records.records import Event, Usage
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
    facts, answers = result["facts_recorded"], result["iterations"]
    told = f"{facts} {'fact' if facts == 1 else 'facts'} journaled before that"
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
    """Those besides owners on whose words the call rests."""
    difference: str | None
    """A unified diff, if the tool changes a text."""
    event_id: str | None
    sender: str | None
    asked_at: str


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
    """The call itself, then those of the sub-agent's own tools."""


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
    """The texts of the facts recalled for it, by id; those that the answer uses are credited."""
    shown: NotRequired[list[str]]
    """Ids of the memories that it shows: what was recalled, best first, then what its pages say."""


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
    """The next node, decided by the one that ran last."""
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
    at: str


class ParkedTick(TypedDict):
    """A tick that waits for a person, with its work so far; its event is still in the inbox."""

    question: Question
    event: Event | None
    classification: Classification | None
    assessment: Assessment | None
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
