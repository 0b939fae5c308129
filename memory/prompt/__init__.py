"""Prompts: components, the lists they show, and their assembly within a budget of tokens."""

from memory.prompt import assembly, assistant_prompt, components, rendering
from memory.prompt.assembly import Material
from memory.prompt.assistant_prompt import rolled_back
from memory.prompt.components import (
    CONVERSATION_HISTORY,
    ENTITY_CONTEXT,
    HISTORY,
    PAGES,
    SEMANTIC_MEMORIES,
    TOOLS,
    ComponentHealth,
    Extensions,
    PromptComponent,
    PromptHealth,
    component,
    context_use,
    prompt_health,
    recommended_action,
    registered,
)
from memory.prompt.rendering import block, goals, in_buffer, recent

__all__ = [
    "CONVERSATION_HISTORY",
    "ENTITY_CONTEXT",
    "HISTORY",
    "PAGES",
    "SEMANTIC_MEMORIES",
    "TOOLS",
    "ComponentHealth",
    "Extensions",
    "Material",
    "PromptComponent",
    "PromptHealth",
    "assembly",
    "assistant_prompt",
    "block",
    "component",
    "components",
    "context_use",
    "goals",
    "in_buffer",
    "prompt_health",
    "recent",
    "recommended_action",
    "registered",
    "rendering",
    "rolled_back",
]
