"""Recall: the memories that fit a query, best first."""

from memory.recall import episodes
from memory.recall.episodes import index_entries, repair
from memory.recall.recall import BESIDE, IN_PROMPT, LONGEST_LINE, fit_for, recall, within

__all__ = [
    "BESIDE",
    "IN_PROMPT",
    "LONGEST_LINE",
    "episodes",
    "fit_for",
    "index_entries",
    "recall",
    "repair",
    "within",
]
