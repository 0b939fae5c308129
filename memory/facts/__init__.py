"""Facts: semantic memory, written through Mem0 over one table with a word index and vectors."""

from memory.facts.semantic import Episode, SemanticMemory, settle_mem0
from memory.facts.table import (
    Counted,
    Kind,
    Row,
    SessionPlace,
    Vector,
    metadata_of,
    scope_filters,
    user_filters,
)

__all__ = [
    "Counted",
    "Episode",
    "Kind",
    "Row",
    "SemanticMemory",
    "SessionPlace",
    "Vector",
    "metadata_of",
    "scope_filters",
    "settle_mem0",
    "user_filters",
]
