"""Waking: a session runs from one waking to the next night (ruling 20)."""

from __future__ import annotations

from datetime import datetime
from typing import Any


def woken(now: datetime) -> dict[str, Any]:
    """The change of state that waking is: session metrics and caches begin anew."""
    return {
        "mode": "awake",
        "phase": None,
        "metrics": {
            "session_start": now.isoformat(),
            "total_tool_calls": 0,
            "successful_calls": 0,
            "failed_calls": 0,
        },
        "tool_cache": {},
    }
