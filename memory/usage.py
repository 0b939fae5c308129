"""Usage of models: calls and tokens, added up."""

from __future__ import annotations

from typing import Any

from memory.errors import ModelError
from memory.records import Usage
from memory.state import State
from memory.tick import Loop


def total(one: Usage, other: Usage) -> Usage:
    """The sum of both."""
    return {
        "llm_calls": one["llm_calls"] + other["llm_calls"],
        "tokens": one["tokens"] + other["tokens"],
    }


def in_vain(error: ModelError) -> Usage:
    """The cost of answers that could not be used."""
    return {"llm_calls": error.llm_calls, "tokens": error.tokens}


def counted_failure(state: State, loop: Loop) -> dict[str, Any]:
    """The state update for a model that gave no usable answer, which is a failure (ruling 19)."""
    return {
        "loop": {**loop, "raised": loop["raised"] + 1},
        "consecutive_errors": state["consecutive_errors"] + 1,
    }


def charged(loop: Loop, usage: Usage) -> Loop:
    """The tick's loop with `usage` added to its own."""
    return {
        **loop,
        "llm_calls": loop["llm_calls"] + usage["llm_calls"],
        "tokens": loop["tokens"] + usage["tokens"],
    }
