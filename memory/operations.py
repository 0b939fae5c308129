"""Operations: the one form in which steps and tools ask for changes to long-term memory.

Awake, a tool's operations are applied at once; in a night they join the night's list. Both go
through `memory.apply.apply_operations`.
"""

from __future__ import annotations

import hashlib
from typing import Any

from memory.records import FactDraft, JournalEntry, Operation


def operation_id(*parts: str) -> str:
    """An id from sources and position (32 hex digits). The same parts give the same id."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]


def add_entry(entry: JournalEntry, reason: str) -> Operation:
    """Write a journal entry."""
    return _operation("add_entry", entry["id"], None, dict(entry), entry["sources"], reason)


def score_entry(entry: JournalEntry, importance: int, reason: str) -> Operation:
    """Replace a heuristic importance (1..10) by the model's."""
    before = {"importance": entry["importance"], "scoring_method": entry["scoring_method"]}
    after = {"importance": importance, "scoring_method": "llm"}
    return _operation("score_entry", entry["id"], before, after, entry["sources"], reason)


def mark_entry(entry: JournalEntry, consolidation: str, reason: str) -> Operation:
    """Settle an entry: `consolidated` or `below_threshold`."""
    before = {"consolidation": entry["consolidation"]}
    after = {"consolidation": consolidation}
    return _operation("mark_entry", entry["id"], before, after, entry["sources"], reason)


def add_fact(draft: FactDraft, reason: str) -> Operation:
    """Write a fact; the operation's id is the draft's `op`."""
    sources = [*draft["source_entries"], *draft["source_events"]]
    return {
        "id": draft["op"],
        "kind": "add_fact",
        "target": draft["op"],
        "before": None,
        "after": dict(draft),
        "sources": sources,
        "reason": reason,
    }


def link(entry_id: str, fact_op: str, created: str, reason: str) -> Operation:
    """Link a journal entry and a fact, both ways. The fact is named by its operation id."""
    after = {"fact_op": fact_op, "created": created}
    return _operation("link", entry_id, None, after, [entry_id, fact_op], reason)


def _operation(
    kind: Any, target: str, before: Any, after: Any, sources: list[str], reason: str
) -> Operation:
    place = after["fact_op"] if kind == "link" else ""
    return {
        "id": operation_id(kind, target, place),
        "kind": kind,
        "target": target,
        "before": before,
        "after": after,
        "sources": list(sources),
        "reason": reason,
    }
