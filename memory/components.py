"""Prompt components: the building blocks of a prompt, in id order (architecture-context-system, 2).

The ids are 1000 apart (1500 aside), which leaves room for others between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memory import rendering

SYSTEM_PROMPT = 0
CHARACTER_CONTEXT = 1000
ENTITY_CONTEXT = 1500
SEMANTIC_MEMORIES = 2000
CONTEXT_BUFFER = 3000
GOALS = 4000
CONVERSATION_HISTORY = 5000
PENDING_EVENT = 6000
TOOL_RESULT = 7000

Role = Literal["system", "user", "assistant", "tool", "mixed"]


@dataclass(frozen=True)
class PromptComponent:
    """One block of a prompt."""

    id: int
    """Its place: blocks stand in id order."""
    key: str
    name: str
    description: str
    content: str
    """Its fixed text; empty where it is rendered from the state."""
    is_static: bool
    """True for the built-in ones."""
    enabled: bool
    role: Role


def _static(id_: int, key: str, role: Role, description: str, content: str = "") -> PromptComponent:
    name = key.replace("_", " ").title()
    return PromptComponent(id_, key, name, description, content, True, True, role)


STATIC: tuple[PromptComponent, ...] = (
    _static(SYSTEM_PROMPT, "system_prompt", "system", "Core instructions", rendering.SYSTEM_PROMPT),
    _static(
        CHARACTER_CONTEXT,
        "character_context",
        "system",
        "Persona, active project, session memory",
    ),
    _static(ENTITY_CONTEXT, "entity_context", "system", "Open conversations"),
    _static(SEMANTIC_MEMORIES, "semantic_memories", "system", "Recalled facts"),
    _static(CONTEXT_BUFFER, "context_buffer", "system", "Unaddressed events"),
    _static(GOALS, "goals", "system", "Active goals with their subtasks"),
    _static(CONVERSATION_HISTORY, "conversation_history", "mixed", "Recent messages"),
    _static(PENDING_EVENT, "pending_event", "user", "What set this call off"),
    _static(TOOL_RESULT, "tool_result", "tool", "Answers of the tools called so far"),
)
"""The nine built-in components, in id order."""

COMPONENTS: dict[int, PromptComponent] = {one.id: one for one in STATIC}
"""The same by id."""
