"""What the audit log tells of nights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from memory.audit import AuditEntry, entry_of
from memory.records import NightRecord, Operation


def of_night(
    record: NightRecord, operations: Sequence[Operation], *, tick: int, model: str
) -> AuditEntry:
    """A night that ended: how many operations of each kind, what it held, what failed."""
    started, ended = record["started"], record["ended"] or record["started"]
    took = datetime.fromisoformat(ended) - datetime.fromisoformat(started)
    return entry_of(
        datetime.fromisoformat(ended),
        "night",
        record["id"],
        outcome="ok" if record["complete"] else "error",
        detail={
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
