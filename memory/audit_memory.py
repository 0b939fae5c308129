"""Audit entries about corrections of memory."""

from __future__ import annotations

from datetime import datetime

from memory.audit import AuditEntry, entry_of


def of_correction(old: str, new: str, *, at: datetime, who: str, origin: str) -> AuditEntry:
    """A fact replaced another. Both are named by id only, so that a forget leaves no text here."""
    return entry_of(at, "fact_corrected", old, who=who, detail={"fact": new}, origin=origin)
