"""What keeps an installation: a data folder or a PostgreSQL database, chosen here alone.

A data folder that a caller names comes first, then the database of CIRCADIAN_DATABASE_URL, then the
data folder of CIRCADIAN_DATA.
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
        """Take it. Raises BusyError, which names the holder, where another keeps it too long."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class HeldLock:
    """The lock of runs whose caller holds the agent's lock already: nothing is taken."""

    async def acquire(self) -> None:
        """Nothing is to be taken."""

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
    """`lock`, for this software alone: whoever waited for it may find the installation made newer.

    A run that begins then would write in an older form over the newer one.
    """

    def __init__(self, lock: WriterLock, check: Callable[[], None]) -> None:
        """`check` is the installation's; blocking."""
        self._lock, self._check = lock, check

    async def acquire(self) -> None:
        """Take it. Raises as the lock does, and as `Home.check`; then it is not held."""
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
        """How to call it in a message; never a password."""
        ...

    @property
    def embedder(self) -> str:
        """The name of the embedder that it was made with, and keeps until `reindex`."""
        ...

    @property
    def dimension(self) -> int:
        """Numbers in one vector."""
        ...

    @property
    def embeddings(self) -> Embeddings:
        """The embedder. InputError where it cannot be loaded, as without its key."""
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
        """The right to run every agent: a server's, as long as it lives.

        Servers may share it; `alone` nobody does.
        """
        ...

    def check(self) -> None:
        """Look whether a newer version changed its form since it was opened. Blocking.

        Raises:
            NewerError: it did; whoever has it open must write no more.
            FolderError, DatabaseDown, MemoryStoreError: that cannot be said now.
        """
        ...

    def close(self) -> None:
        """Close what is open of it. A later call opens it again. Blocking."""
        ...


def open_home(
    deployment: Deployment,
    *,
    data: Path | None = None,
    embedder: str | None = None,
    embeddings: Embeddings | None = None,
    change: bool = False,
) -> Home:
    """Open the installation that `data` or the variables name, or make it there. Blocking.

    Args:
        deployment: the variables.
        data: a data folder that the caller names; it comes before every variable.
        embedder: the embedder's name, else CIRCADIAN_EMBEDDER.
        embeddings: the embedder itself; says more than a name.
        change: where another embedder is recorded, record the one wanted; for `memory.reindex`.

    Raises:
        FolderError: it cannot be used as asked; see `open_folder`, `open_database`.
        DatabaseDown: the database cannot be reached.
        InputError: an unknown embedder, a missing key, a wrong URL or a missing package.
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
    """Whether `open_home` would find anything. Makes nothing. Blocking; raises as it does."""
    url = database_url(deployment, data)
    if url is None:
        return ((data or deployment.data).expanduser() / HEAD).exists()
    with _extra():
        from memory.postgres.database import is_made
    return is_made(url)


def database_url(deployment: Deployment, data: Path | None = None) -> SecretStr | None:
    """Where the database is that `open_home` opens; None where it opens a data folder."""
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
