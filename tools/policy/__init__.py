"""Policy: which tools and limits a context gives, as a pattern that layers only narrow."""

from tools.policy.contexts import (
    CONTEXTS,
    ContextConfig,
    context_type_for,
    continued,
    history,
    listeners_of,
    material,
)
from tools.policy.pattern import limits_of, narrowed, narrower, select_execution_pattern

__all__ = [
    "CONTEXTS",
    "ContextConfig",
    "context_type_for",
    "continued",
    "history",
    "limits_of",
    "listeners_of",
    "material",
    "narrowed",
    "narrower",
    "select_execution_pattern",
]
