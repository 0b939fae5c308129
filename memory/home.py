"""An installation: everything that agents share, kept in a data folder or a PostgreSQL database.

This module chooses between them: a data folder that the caller names comes first, then the database
of CIRCADIAN_DATABASE_URL, then the data folder of CIRCADIAN_DATA.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from langchain_core.embeddings import Embeddings
from pydantic import SecretStr

from memory.errors import InputError
from memory.folder import HEAD, open_folder
from memory.semantic import SemanticMemory
from memory.settings import Deployment


class WriterLock(Protocol):
    """The right to write, as a context manager. Not re-entrant."""

    async def acquire(self) -> None:
        """Take the lock.

        Raises:
            BusyError: another holder keeps it too long; the message names the process.
        """
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class HeldLock:
    """Stands in for a lock that the caller already holds: takes nothing."""

    async def acquire(self) -> None:
        """Do nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


class CheckedLock:
    """A lock that is refused once a newer version has upgraded the installation.

    A run that waited for the lock would write an older form over the newer one.
    """

    def __init__(self, lock: WriterLock, check: Callable[[], None]) -> None:
        """`check`: the installation's `check`, which blocks."""
        self._lock, self._check = lock, check

    async def acquire(self) -> None:
        """Take the lock. Raises as the lock does, and as `Home.check`; then it is not held."""
        await self._lock.acquire()
        try:
            await asyncio.to_thread(self._check)
        except BaseException:
            await self._lock.__aexit__(*sys.exc_info())
            raise

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._lock.__aexit__(kind, error, trace)


class Home(Protocol):
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


def open_home(
    deployment: Deployment,
    *,
    data: Path | None = None,
    embedder: str | None = None,
    embeddings: Embeddings | None = None,
    change: bool = False,
) -> Home:
    """Open the installation that `data` or the variables name; make it if there is none. Blocking.

    Args:
        deployment: the variables.
        data: a data folder; it comes before every variable.
        embedder: the embedder's name; default CIRCADIAN_EMBEDDER.
        embeddings: the embedder itself; it comes before a name.
        change: record the wanted embedder in place of another one; for `memory.reindex`.

    Raises:
        FolderError: it cannot be used as asked; see `open_folder`, `open_database`.
        DatabaseDown: the database cannot be reached.
        InputError: unknown embedder, missing key, wrong URL or missing package.
    """
    url = database_url(deployment, data)
    wanted: dict[str, Any] = {
        "embedder": embedder or deployment.embedder,
        "offline": deployment.offline,
        "embeddings": embeddings,
        "change": change,
    }
    if url is None:
        return open_folder(data or deployment.data, **wanted)
    with _extra():
        from memory.postgres.database import open_database
    return open_database(url, **wanted)


def is_made(deployment: Deployment, data: Path | None = None) -> bool:
    """Whether there is an installation. Makes nothing. Blocking; raises as `open_home`."""
    url = database_url(deployment, data)
    if url is None:
        return ((data or deployment.data).expanduser() / HEAD).exists()
    with _extra():
        from memory.postgres.database import is_made
    return is_made(url)


def database_url(deployment: Deployment, data: Path | None = None) -> SecretStr | None:
    """The URL of the database that `open_home` opens; None for a data folder."""
    return deployment.database_url if data is None else None


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise InputError(
            f"CIRCADIAN_DATABASE_URL needs a package that is not installed ({error}): "
            "pip install 'circadian-agent[postgres]'"
        ) from error
