"""The results of a compaction and of the extraction before it, for the report (data-flow-01)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, cast

from typing_extensions import TypedDict

EndedBy = Literal["noop", "no_tool_call", "other_tool", "max_iterations", "error"]


class ExtractionResult(TypedDict):
    """What was journaled before a compaction (data-flow-01, section 3)."""

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
    """The results that a night has."""

    extraction: NotRequired[ExtractionResult]
    compaction: NotRequired[CompactionResult]


def after_answer(
    before: ExtractionResult | None, *, facts: int, ended: EndedBy | None
) -> ExtractionResult:
    """The result after one more answer of the model, or after an error in place of one."""
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
