"""Assess the task: which execution pattern holds for this tick."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from memory.resources import settings_of
from memory.settings import Settings
from memory.state import State
from memory.state_check import checked
from memory.tick import Assessment
from tools.contexts import CONTEXTS
from tools.pattern import select_execution_pattern


@checked
async def assess_task(state: State, runtime: Runtime[Settings]) -> dict[str, Any]:
    """Compose the pattern from the settings and the tick's context; each layer only narrows."""
    assert state["context"] is not None
    context = CONTEXTS[state["context"]["context_type"]]
    assessment: Assessment = {
        "by": "heuristic",
        "event_class": "unknown",
        "complexity": 3,
        "recommended_mode": None,
        "recommended_iterations": None,
        "recommend_confirm_dangerous": False,
        "reasoning": "",
        "signals": {},
    }
    pattern = select_execution_pattern(settings_of(runtime.context), context)
    return {"pattern": pattern, "assessment": assessment}
