"""Planning: goals, projects and session memory, the agent's working state."""

from memory.planning import goals, projects, session_memory
from memory.planning.goals import (
    Goals,
    check_decomposable,
    completions,
    decompose,
    in_hand,
    lines_of,
    recompute,
    tree,
)
from memory.planning.session_memory import MemoryType, complete, corrected

__all__ = [
    "Goals",
    "MemoryType",
    "check_decomposable",
    "complete",
    "completions",
    "corrected",
    "decompose",
    "goals",
    "in_hand",
    "lines_of",
    "projects",
    "recompute",
    "session_memory",
    "tree",
]
