"""Storage: access to a LangGraph store of any kind, and the retention of checkpoints."""

from memory.storage.access import (
    FORMS,
    PAGE,
    Shelf,
    ThreadedStore,
    count_items,
    count_named,
    list_items,
    namespaces_below,
    read_ahead,
    read_values,
    shelves,
    write_batch,
    write_new,
)
from memory.storage.checkpoints import HELD, HeldCheckpoints, stored_values

__all__ = [
    "FORMS",
    "HELD",
    "PAGE",
    "HeldCheckpoints",
    "Shelf",
    "ThreadedStore",
    "count_items",
    "count_named",
    "list_items",
    "namespaces_below",
    "read_ahead",
    "read_values",
    "shelves",
    "stored_values",
    "write_batch",
    "write_new",
]
