"""An installation: what each offers, and opening one in a data folder or a PostgreSQL database.

A data folder that the caller names comes first, then the database of CIRCADIAN_DATABASE_URL, then
the data folder of CIRCADIAN_DATA. `memory.installation.database` is imported only when a database
is used: it needs the extra `postgres`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from langchain_core.embeddings import Embeddings
from pydantic import SecretStr

from memory.errors import InputError
from memory.facts import SemanticMemory
from memory.installation.folder import HEAD, open_folder
from memory.settings import Deployment

if TYPE_CHECKING:
    from memory.installation.database import Examined
    from memory.storage.postgres import Address


class WriterLock(AbstractAsyncContextManager[Any], Protocol):
    """The right to write, as a context manager. Not re-entrant."""

    async def acquire(self) -> None:
        """Take the lock. Raises BusyError, which names the process that keeps it too long."""


class CheckedLock:
    """A lock that is refused once a newer version has upgraded the installation.

    A run that waited for the lock would write an older form over the newer one. Callers of one
    process wait in the order in which they came, without a limit; the lock's own limit counts for
    other processes.
    """

    def __init__(self, lock: WriterLock, check: Callable[[], None], queue: asyncio.Lock) -> None:
        """`check`: the installation's `check`, which blocks. `queue`: of this process."""
        self._lock, self._check, self._queue = lock, check, queue

    async def __aenter__(self) -> Self:
        """Take the lock. Raises as the lock and `Installation.check` do; it is then not held."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._queue)
            await stack.enter_async_context(self._lock)
            await asyncio.to_thread(self._check)
            self._held = stack.pop_all()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._held.__aexit__(*error)


class Installation(Protocol):
    """An open installation: all agents that share an embedder and a memory."""

    @property
    def name(self) -> str:
        """How to call it in a message; contains no password."""

    @property
    def embedder(self) -> str:
        """The name of its embedder, which only `reindex` changes."""

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""

    @property
    def embeddings(self) -> Embeddings:
        """The embedder. Raises InputError if it cannot be loaded, as without its key."""

    def semantic(self) -> SemanticMemory:
        """The semantic memory: the same object at every call."""

    def agent_lock(
        self,
        thread: str,
        *,
        name: str | None = None,
        role: str = "circadian",
        timeout: float = 30.0,
    ) -> WriterLock:
        """The right to run the agent of one thread, and to keep servers off meanwhile.

        `name`: what people call it, for the error that it is in use.
        """

    def server_lock(self, *, timeout: float = 30.0, alone: bool = False) -> WriterLock:
        """A server's right to run every agent, as long as it lives.

        Servers may share it, except with `alone`.
        """

    def check(self) -> None:
        """Check that no newer version has upgraded it since it was opened. Blocking.

        Raises:
            NewerError: one has; this process must not write any more.
            FolderError, DatabaseDown, MemoryStoreError: it cannot be read now.
        """

    def close(self) -> None:
        """Close its files and connections. A later call opens them again. Blocking."""


def open_installation(
    deployment: Deployment,
    *,
    data: Path | None = None,
    embedder: str | None = None,
    embeddings: Embeddings | None = None,
    change: bool = False,
) -> Installation:
    """Open the installation that `data` or the variables name; make it if there is none. Blocking.

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
        from memory.installation.database import open_database
    return open_database(url, **wanted)


def is_made(deployment: Deployment, data: Path | None = None) -> bool:
    """Whether there is an installation. Makes nothing. Blocking; raises as `open_installation`."""
    url = database_url(deployment, data)
    if url is None:
        return ((data or deployment.data).expanduser() / HEAD).exists()
    with _extra():
        from memory.installation.database import is_made
    return is_made(url)


def database_url(deployment: Deployment, data: Path | None = None) -> SecretStr | None:
    """The URL of the database that `open_installation` opens; None for a data folder."""
    return deployment.database_url if data is None else None


def database_address(installation: Installation) -> Address:
    """The address of an installation that is kept in a database."""
    from memory.installation.database import Database

    assert isinstance(installation, Database)
    return installation.address


def examine(url: SecretStr) -> Examined:
    """Look at the database at `url`; changes nothing. Blocking, three seconds at most."""
    with _extra():
        from memory.installation.database import examine
    return examine(url)


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise InputError(
            f"CIRCADIAN_DATABASE_URL needs a package that is not installed ({error}): "
            "pip install '.[postgres]' in the clone"
        ) from error
