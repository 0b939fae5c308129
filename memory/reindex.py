"""Reindexing: every memory gets a vector of the embedder in use, as after the embedder was changed.

Nothing is removed first. What is embedded stays embedded: interrupted at any point it goes on from
there, and meanwhile memories are found by their words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memory.semantic import SemanticMemory

BATCH = 128
"""Texts of one call of the embedder, and of one write."""


@dataclass(frozen=True)
class Reindexed:
    """What a reindexing did."""

    embedded: int
    """Memories that got a vector."""
    left: int
    """Those that have none of the embedder in use, as others may have written meanwhile."""


async def reindex(
    memory: SemanticMemory, progress: Callable[[int, int], None] = lambda done, total: None
) -> Reindexed:
    """Embed all that has no vector of the embedder in use, of every agent.

    After each batch `progress` gets how many are done and how many there are to do, which other
    processes may add to.

    Raises:
        MemoryStoreError: the table failed, or the embedder gave what is no vector of this memory.
        ModelError: the embedder gave nothing.
    """
    done, left = 0, await memory.count_unembedded()
    progress(done, left)
    while embedded := await memory.embed_waiting(BATCH):
        done += embedded
        left = await memory.count_unembedded()
        progress(done, done + left)
    return Reindexed(done, left)
