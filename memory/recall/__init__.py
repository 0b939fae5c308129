"""Recall: the memories that fit a query, best first."""

from memory.recall import episodes, probes
from memory.recall.episodes import index_entries, repair
from memory.recall.probes import used
from memory.recall.recall import IN_PROMPT, fit_for, recall

__all__ = [
    "IN_PROMPT",
    "episodes",
    "fit_for",
    "index_entries",
    "probes",
    "recall",
    "repair",
    "used",
]
