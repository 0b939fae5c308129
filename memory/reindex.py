"""Reindexing: give every memory a vector of the current embedder, after the embedder was changed.

Nothing is removed first. Interrupted at any point, a second run continues; meanwhile memories
without a vector are found by their words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memory.semantic import SemanticMemory

BATCH = 128
"""Texts per embedder call and per write."""


@dataclass(frozen=True)
class Reindexed:
    """What a reindexing did."""

    embedded: int
    """Memories embedded."""
    left: int
    """Memories still without a vector of the current embedder, written meanwhile by others."""


async def reindex(
    memory: SemanticMemory, progress: Callable[[int, int], None] = lambda done, total: None
) -> Reindexed:
    """Embed all memories without a vector of the current embedder, of every agent.

    Args:
        memory: the index of all memories.
        progress: called after each batch with (done, total); other processes may add to the total.

    Raises:
        MemoryStoreError: the table failed, or a vector has the wrong dimension.
        ModelError: the embedder failed.
    """
    done, left = 0, await memory.count_unembedded()
    progress(done, left)
    while embedded := await memory.embed_waiting(BATCH):
        done += embedded
        left = await memory.count_unembedded()
        progress(done, done + left)
    return Reindexed(done, left)
