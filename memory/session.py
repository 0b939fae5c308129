"""Changes of the whole state that no tool makes: waking, and the rollup after an edit by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from memory.goals import completions, recompute
from memory.session_memory import complete
from memory.state import State


def woken(now: datetime) -> dict[str, Any]:
    """Waking: a session runs from one waking to the next night (ruling 20).

    Its metrics and caches begin anew.
    """
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


def rolled_up(state: State, now: datetime) -> dict[str, Any]:
    """What an edit of the goals by hand leads to, as an update would (ruling 10)."""
    before = state["goals"]
    goals = recompute(before)
    if goals == before:
        return {}
    done = completions(before, goals, now)
    return {"goals": goals, "session_memory": complete(state["session_memory"], done)}
