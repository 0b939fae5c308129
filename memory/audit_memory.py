"""What the audit log tells of people who mend memory."""

from __future__ import annotations

from datetime import datetime

from memory.audit import AuditEntry, entry_of


def of_correction(old: str, new: str, *, at: datetime, who: str, origin: str) -> AuditEntry:
    """A fact took the place of another, both by id: what they say stands with them alone.

    So `forget` of either leaves no text of it here.
    """
    return entry_of(at, "fact_corrected", old, who=who, detail={"fact": new}, origin=origin)
