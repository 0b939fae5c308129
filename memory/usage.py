"""What model work cost, added up."""

from __future__ import annotations

from memory.records import Usage
from memory.tick import Loop


def total(one: Usage, other: Usage) -> Usage:
    """Both together."""
    return {
        "llm_calls": one["llm_calls"] + other["llm_calls"],
        "tokens": one["tokens"] + other["tokens"],
    }


def charged(loop: Loop, usage: Usage) -> Loop:
    """The tick's loop with `usage` on its account."""
    return {
        **loop,
        "llm_calls": loop["llm_calls"] + usage["llm_calls"],
        "tokens": loop["tokens"] + usage["tokens"],
    }
