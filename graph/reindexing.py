"""Changing the embedder of an installation, and embedding whatever has no vector of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from langchain_core.embeddings import Embeddings

from memory.errors import FolderError
from memory.home import Home, open_home
from memory.reindex import reindex as embed_anew
from memory.settings import Deployment


class Reindexing(NamedTuple):
    """What was done."""

    embedder: str
    """The one that is recorded now."""
    dimension: int
    """Numbers in one vector."""
    was: str | None
    """The one that was recorded before; None where that could not be opened."""
    embedded: int
    """Memories that got a vector."""
    left: int
    """Those that others wrote meanwhile, and that have none."""


async def reindex(
    data: Path | None = None,
    embedder: str | Embeddings | None = None,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Reindexing:
    """Record another embedder where one is given, and embed all that has no vector of it.

    Of every agent of the data folder, or of the database in its place; none runs meanwhile. Broken
    off at any point, the next call goes on from there. CIRCADIAN_EMBEDDER and CIRCADIAN_OFFLINE
    change nothing here. `progress` gets how many are done, and how many there are to do.

    Raises:
        BusyError: another process runs an agent, or a server does.
        InputError: the embedder is unknown or lacks its key; nothing was changed.
        ModelError: the embedder failed; what is done stays done.
    """
    deployment = Deployment()
    undecided = deployment.model_copy(update={"embedder": None, "offline": False})
    as_recorded = partial(open_home, undecided, data=data)
    changed = partial(
        as_recorded,
        embedder=embedder if isinstance(embedder, str) else None,
        embeddings=embedder if isinstance(embedder, Embeddings) else None,
        change=embedder is not None,
    )
    recorded, was = await asyncio.to_thread(_recorded, as_recorded, changed)
    try:
        async with recorded.server_lock(timeout=deployment.lock_timeout, alone=True):
            home = await asyncio.to_thread(changed)
            try:
                done = await embed_anew(home.semantic(), progress)
            finally:
                await asyncio.to_thread(home.close)
    finally:
        await asyncio.to_thread(recorded.close)
    return Reindexing(home.embedder, home.dimension, was, done.embedded, done.left)


def _recorded(
    as_recorded: Callable[[], Home], changed: Callable[[], Home]
) -> tuple[Home, str | None]:
    """The home as it is, to be locked, and its embedder.

    One that only embeddings from Python open is opened by none: there the embedder asked for is
    recorded at once, and what it was is not told.
    """
    try:
        home = as_recorded()
    except FolderError:
        return changed(), None
    return home, home.embedder
