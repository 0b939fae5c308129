"""Facts: semantic memory, written through Mem0 over one table with a word index and vectors."""

from memory.facts.semantic import Episode, SemanticMemory, settle_mem0
from memory.facts.table import (
    Counted,
    Kind,
    Listing,
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
    "Kind",
    "Listing",
    "Row",
    "SemanticMemory",
    "Vector",
    "fact_of",
    "metadata_of",
    "scope_filters",
    "settle_mem0",
    "user_filters",
]
