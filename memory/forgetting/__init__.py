"""Forgetting: everything derived from a person, an event or a fact, found by names and lineage."""

from memory.forgetting.carrying_out import (
    SAVER_TABLES,
    STORE_TABLES,
    Begun,
    Found,
    begin,
    begun,
    changed_puts,
    clean,
    ended,
    erase,
    erase_memories,
    has_residue,
    mend,
    rows_that_hold,
    unfinished,
)
from memory.forgetting.erasure import ForgetTarget
from memory.forgetting.selection import (
    ErasedMemory,
    Selection,
    counts,
    examples,
    find,
    memories,
)
from memory.forgetting.store_changes import ForgetContext, StoreChanges, store_changes
from memory.forgetting.working import dropped, informed_ticks, state_after

__all__ = [
    "SAVER_TABLES",
    "STORE_TABLES",
    "Begun",
    "ErasedMemory",
    "ForgetContext",
    "ForgetTarget",
    "Found",
    "Selection",
    "StoreChanges",
    "begin",
    "begun",
    "changed_puts",
    "clean",
    "counts",
    "dropped",
    "ended",
    "erase",
    "erase_memories",
    "examples",
    "find",
    "has_residue",
    "informed_ticks",
    "memories",
    "mend",
    "rows_that_hold",
    "state_after",
    "store_changes",
    "unfinished",
]
