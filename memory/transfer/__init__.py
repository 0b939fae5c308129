"""Transfer: a whole memory as lines of JSON, out of one agent and into an empty one."""

from memory.transfer.transfer import (
    IMPORTING,
    NOT_EMPTY,
    AgentMemory,
    Taken,
    begun,
    check,
    check_target,
    check_whole,
    header,
    line_of,
    mark,
    records,
    state_of,
    unfinished,
    waiting_in,
    write,
)

__all__ = [
    "IMPORTING",
    "NOT_EMPTY",
    "AgentMemory",
    "Taken",
    "begun",
    "check",
    "check_target",
    "check_whole",
    "header",
    "line_of",
    "mark",
    "records",
    "state_of",
    "unfinished",
    "waiting_in",
    "write",
]
