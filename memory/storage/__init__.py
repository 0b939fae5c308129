"""Storage: access to a LangGraph store of any kind, and the retention of checkpoints."""

from memory.storage.access import (
    PAGE,
    Shelf,
    ThreadedStore,
    count_items,
    count_items_named,
    least_named,
    list_items,
    namespaces,
    namespaces_below,
    shelves,
    write_batch,
    write_new,
)

__all__ = [
    "PAGE",
    "Shelf",
    "ThreadedStore",
    "count_items",
    "count_items_named",
    "least_named",
    "list_items",
    "namespaces",
    "namespaces_below",
    "shelves",
    "write_batch",
    "write_new",
]
