"""Forgetting: everything derived from a person, an event or a fact, found by names and lineage."""

from memory.forgetting.carrying_out import (
    SAVER_TABLES,
    STORE_TABLES,
    Begun,
    ErasedMemory,
    Selection,
    begin,
    changed_puts,
    clean,
    counts,
    ended,
    erase,
    erase_memories,
    examples,
    find,
    left_over,
    memories,
    mend,
    rows_that_hold,
    unfinished,
)
from memory.forgetting.erasure import ForgetTarget
from memory.forgetting.store_changes import ForgetContext, store_changes
from memory.forgetting.working import dropped, informed_ticks, state_after

__all__ = [
    "SAVER_TABLES",
    "STORE_TABLES",
    "Begun",
    "ErasedMemory",
    "ForgetContext",
    "ForgetTarget",
    "Selection",
    "begin",
    "changed_puts",
    "clean",
    "counts",
    "dropped",
    "ended",
    "erase",
    "erase_memories",
    "examples",
    "find",
    "informed_ticks",
    "left_over",
    "memories",
    "mend",
    "rows_that_hold",
    "state_after",
    "store_changes",
    "unfinished",
]
