"""Say what is wrong with the thread's state.

A node of its own behind `intake`: LangGraph takes an edit by hand as made by the last node that
ended, and where that is the start of the graph it drops every key that is no input.
"""

from __future__ import annotations

from typing import Any

from memory.errors import StateError
from memory.state import State, checked, state_problem


@checked
async def refuse(state: State) -> dict[str, Any]:
    """Raise StateError naming the key; nothing when the state was mended meanwhile."""
    problem = state_problem(state)
    if problem is not None:
        raise StateError(problem)
    return {}
