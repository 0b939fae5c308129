"""Storage: access to a LangGraph store of any kind, and the retention of checkpoints."""

from memory.storage.access import (
    FORMS,
    PAGE,
    TOGETHER,
    Shelf,
    Sieve,
    ThreadedStore,
    Wanted,
    count_items,
    count_named,
    list_items,
    namespaces,
    namespaces_below,
    read_ahead,
    shelves,
    write_batch,
    write_new,
)
from memory.storage.retention import HELD, HeldCheckpoints, stored_values

__all__ = [
    "FORMS",
    "HELD",
    "PAGE",
    "TOGETHER",
    "HeldCheckpoints",
    "Shelf",
    "Sieve",
    "ThreadedStore",
    "Wanted",
    "count_items",
    "count_named",
    "list_items",
    "namespaces",
    "namespaces_below",
    "read_ahead",
    "shelves",
    "stored_values",
    "write_batch",
    "write_new",
]
