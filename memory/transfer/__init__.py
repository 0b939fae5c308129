"""Transfer: a whole memory as lines of JSON, out of one agent and into an empty one."""

from memory.transfer import exporting, importing
from memory.transfer.exporting import AgentMemory, Taken, line_of
from memory.transfer.importing import state_of

__all__ = ["AgentMemory", "Taken", "exporting", "importing", "line_of", "state_of"]
