"""Transfer: a whole memory as lines of JSON, out of one agent and into an empty one."""

from memory.transfer import exporting, importing
from memory.transfer.exporting import AgentMemory, Taken
from memory.transfer.format import line_of, state_of
from memory.transfer.importing import Checked

__all__ = [
    "AgentMemory",
    "Checked",
    "Taken",
    "exporting",
    "importing",
    "line_of",
    "state_of",
]
