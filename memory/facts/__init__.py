"""Facts: semantic memory, written through Mem0 over one table with a word index and vectors."""

from memory.facts.semantic import Episode, Matches, SemanticMemory
from memory.facts.table import (
    Counted,
    Listing,
    MemoryTable,
    Row,
    Vector,
    fact_of,
    metadata_of,
    scope_filters,
    user_filters,
)

__all__ = [
    "Counted",
    "Episode",
    "Listing",
    "Matches",
    "MemoryTable",
    "Row",
    "SemanticMemory",
    "Vector",
    "fact_of",
    "metadata_of",
    "scope_filters",
    "user_filters",
]
