"""Reindexing: changing an installation's embedder, and embedding every memory without a vector."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from langchain_core.embeddings import Embeddings

from memory.errors import FolderError
from memory.facts import SemanticMemory
from memory.installation import open_installation
from memory.records import Scope
from memory.settings import Deployment, configured

BATCH = 128
"""Texts per embedder call and per write."""


async def embed_in_batches(
    memory: SemanticMemory,
    progress: Callable[[int, int], object] = lambda done, total: None,
    scope: Scope | None = None,
) -> tuple[int, int]:
    """Embed all memories without a vector of the current embedder, of one agent or of all.

    Returns how many got one, and how many have none, as others wrote them meanwhile.
    """
    done, left = 0, await memory.count_unembedded(scope)
    progress(done, left)
    while embedded := await memory.embed_waiting(BATCH, scope):
        done += embedded
        left = await memory.count_unembedded(scope)
        progress(done, done + left)
    return done, left


class Reindexing(NamedTuple):
    """The result of a reindexing."""

    embedder: str
    """The recorded embedder."""
    dimension: int
    """Numbers per vector."""
    was: str | None
    """The embedder recorded before; None if it could not be loaded."""
    embedded: int
    """Memories that got a vector now."""
    left: int
    """Memories still without one, as others wrote them meanwhile."""


async def reindex(
    data: Path | None = None,
    embedder: str | Embeddings | None = None,
    *,
    deployment: Deployment | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Reindexing:
    """Record another embedder if one is given, and embed every memory that has no vector of it.

    For all agents of the data folder or database; none of them runs meanwhile. After an
    interruption, the next call continues. CIRCADIAN_EMBEDDER and CIRCADIAN_OFFLINE are ignored.
    `deployment`: where; by default as it is configured. `progress` is called with the numbers of
    memories done and to do.

    Raises:
        BusyError: another process runs an agent, or a server does.
        InputError: the embedder is unknown or lacks its key; nothing was changed.
        ModelError: the embedder failed; what is done stays done.
    """
    if deployment is None:
        deployment = (await asyncio.to_thread(configured, data)).deployment
    undecided = deployment.model_copy(update={"embedder": None, "offline": False})
    as_recorded = partial(open_installation, undecided, data=data)
    changed = partial(
        as_recorded,
        embedder=embedder if isinstance(embedder, str) else None,
        embeddings=embedder if isinstance(embedder, Embeddings) else None,
        change=embedder is not None,
    )
    try:
        recorded = await asyncio.to_thread(as_recorded)
        was: str | None = recorded.embedder
    except FolderError:  # An object from Python cannot be loaded by its name: record the new one.
        recorded, was = await asyncio.to_thread(changed), None
    try:
        async with recorded.server_lock(timeout=deployment.lock_timeout, alone=True):
            home = await asyncio.to_thread(changed)
            try:
                embedded, left = await embed_in_batches(home.semantic(), progress)
            finally:
                await asyncio.to_thread(home.close)
    finally:
        await asyncio.to_thread(recorded.close)
    return Reindexing(home.embedder, home.dimension, was, embedded, left)
