"""Audit entries about nights and mode changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from memory.audit import AuditEntry, entry_of
from memory.records import NightRecord, Operation
from memory.reports import ModeChange

CAUSES = {
    "request": "on request",
    "go_to_sleep": "of its own accord",
    "schedule": "at its hour",
    "fatigue": "from fatigue",
    "event": "at a message",
    "answer": "at an answer",
    "hours": "at the end of its hours",
}
"""Causes of a mode change, in words."""


def of_night(
    record: NightRecord, operations: Sequence[Operation], *, tick: int, model: str
) -> AuditEntry:
    """A night ended; counts its operations by kind, and lists its errors."""
    started, ended = record["started"], record["ended"] or record["started"]
    took = datetime.fromisoformat(ended) - datetime.fromisoformat(started)
    return entry_of(
        datetime.fromisoformat(ended),
        "night",
        record["id"],
        outcome="error" if record["errors"] else "ok",
        detail={
            "status": record.get("status"),
            "stopped": record.get("stopped"),
            "operations": dict(Counter(operation["kind"] for operation in operations)),
            "held": len(record["held"]),
            "errors": record["errors"],
            "steps": record["steps"],
        },
        duration_ms=round(took.total_seconds() * 1_000),
        model=model,
        tick=tick,
        origin=record["id"],
    )


def of_mode_change(change: ModeChange, *, tick: int | None, origin: str | None) -> AuditEntry:
    """The agent fell asleep or woke."""
    return entry_of(
        datetime.fromisoformat(change["at"]),
        "fell_asleep" if change["mode"] == "sleep" else "woke",
        CAUSES[change["why"]],
        why=change["reason"],
        detail={"why": change["why"]},
        tick=tick,
        origin=origin,
    )


def of_decision(
    record: NightRecord,
    what: Literal["night_approved", "night_discarded"],
    *,
    at: datetime,
    who: str,
) -> AuditEntry:
    """A person applied or discarded a preview or a held night."""
    return entry_of(at, what, record["id"], who=who, origin=record["id"])


def of_undo(record: NightRecord, *, at: datetime, who: str) -> AuditEntry:
    """A night was undone."""
    return entry_of(at, "undo", record["id"], who=who, origin=record["id"])
