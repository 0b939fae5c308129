"""Recall: the memories that fit a query, best first."""

from memory.recall import episodes, probes
from memory.recall.episodes import index_entries, repair
from memory.recall.recall import recall

__all__ = [
    "episodes",
    "index_entries",
    "probes",
    "recall",
    "repair",
]
