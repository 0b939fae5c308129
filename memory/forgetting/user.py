"""Erasing all memories of a user, whichever agent of theirs has them."""

from __future__ import annotations

from memory.scope import Scope
from memory.semantic import SemanticMemory
from memory.vectorstore.payload import user_filters

BATCH = 500
"""Facts that are removed in one transaction."""


async def erase_memories(semantic: SemanticMemory, user: str) -> int:
    """Remove every row of the user's, with what Mem0 kept of their changes; how many.

    Raises:
        MemoryStoreError: the files cannot be written, or cleaned of what was removed.
    """
    count = await semantic.run(_erase, semantic, user)
    await semantic.scrub()
    return count


def _erase(semantic: SemanticMemory, user: str) -> int:
    """Facts through Mem0, whose history names each; then what finds the journal's entries."""
    filters = user_filters(Scope(user, ""))
    ids = [row.id for row in semantic.open_table().select({**filters, "kind": "fact"})]
    for first in range(0, len(ids), BATCH):
        with semantic.writing() as mem0:
            for one in ids[first : first + BATCH]:
                mem0.delete(one)
    return len(ids) + semantic.open_table().delete(filters)
