"""What model work cost, added up."""

from __future__ import annotations

from typing import Any

from memory.records import Usage
from memory.state import State
from memory.tick import Loop


def total(one: Usage, other: Usage) -> Usage:
    """Both together."""
    return {
        "llm_calls": one["llm_calls"] + other["llm_calls"],
        "tokens": one["tokens"] + other["tokens"],
    }


def counted_failure(state: State, loop: Loop) -> dict[str, Any]:
    """The change of the state by a model that gave no usable answer: a failure (ruling 19)."""
    return {
        "loop": {**loop, "raised": loop["raised"] + 1},
        "consecutive_errors": state["consecutive_errors"] + 1,
    }


def charged(loop: Loop, usage: Usage) -> Loop:
    """The tick's loop with `usage` on its account."""
    return {
        **loop,
        "llm_calls": loop["llm_calls"] + usage["llm_calls"],
        "tokens": loop["tokens"] + usage["tokens"],
    }
