"""What every installation offers: where memory is kept, its embedder, and its locks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, Self

from langchain_core.embeddings import Embeddings

from memory.facts import SemanticMemory


class WriterLock(AbstractAsyncContextManager[Any], Protocol):
    """The right to write, as a context manager. Not re-entrant."""

    async def acquire(self) -> None:
        """Take the lock. Raises BusyError, which names the process that keeps it too long."""
        ...


class CheckedLock:
    """A lock that is refused once a newer version has upgraded the installation.

    A run that waited for the lock would write an older form over the newer one.
    """

    def __init__(self, lock: WriterLock, check: Callable[[], None]) -> None:
        """`check`: the installation's `check`, which blocks."""
        self._lock, self._check = lock, check

    async def __aenter__(self) -> Self:
        """Take the lock. Raises as the lock and `Installation.check` do; it is then not held."""
        await self._lock.__aenter__()
        try:
            await asyncio.to_thread(self._check)
        except BaseException:
            await self._lock.__aexit__(*sys.exc_info())
            raise
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._lock.__aexit__(*error)


class Installation(Protocol):
    """An open installation: all agents that share an embedder and a memory."""

    @property
    def name(self) -> str:
        """How to call it in a message; contains no password."""
        ...

    @property
    def embedder(self) -> str:
        """The name of its embedder, which only `reindex` changes."""
        ...

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        ...

    @property
    def embeddings(self) -> Embeddings:
        """The embedder. Raises InputError if it cannot be loaded, as without its key."""
        ...

    def semantic(self) -> SemanticMemory:
        """The semantic memory: the same object at every call."""
        ...

    def agent_lock(
        self, thread: str, *, role: str = "circadian", timeout: float = 30.0
    ) -> WriterLock:
        """The right to run the agent of one thread, and to keep servers off meanwhile."""
        ...

    def server_lock(self, *, timeout: float = 30.0, alone: bool = False) -> WriterLock:
        """A server's right to run every agent, as long as it lives.

        Servers may share it, except with `alone`.
        """
        ...

    def check(self) -> None:
        """Check that no newer version has upgraded it since it was opened. Blocking.

        Raises:
            NewerError: one has; this process must not write any more.
            FolderError, DatabaseDown, MemoryStoreError: it cannot be read now.
        """
        ...

    def close(self) -> None:
        """Close its files and connections. A later call opens them again. Blocking."""
        ...
