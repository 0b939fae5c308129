"""What a data folder and a database have in common: metadata, embedder, facts, the writer's lock.

A data folder keeps its metadata in a file, a database in a table. The lock lets one process run an
agent at a time, and a server keep all agents.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.embeddings import Embeddings
from pydantic import BaseModel

from memory.errors import BusyError, FolderError
from memory.facts import MemoryTable, SemanticMemory
from memory.models import DIMENSION as OFFLINE_DIMENSION
from memory.models import OFFLINE, choose_embedder, embedding_dimension, load_embedder

_CUSTOM = "custom:"


class Metadata(BaseModel):
    """The content of the file or the table."""

    schema_version: int
    embedder: str
    """A model's name, or `custom:<class>` for embeddings that Python code gave."""
    dimension: int
    """Numbers in a vector."""


class WantedEmbedder:
    """The embedder that a caller wants: by name, as an object, or the recorded one."""

    def __init__(self, embedder: str | None, offline: bool, embeddings: Embeddings | None) -> None:
        self._offline, self._embeddings = offline, embeddings
        given = None if embeddings is None else f"{_CUSTOM}{type(embeddings).__name__}"
        self.name = given or embedder or (OFFLINE if offline else None)
        """The embedder the caller insists on. None: the recorded one, or else the default."""

    def new(self, schema: int) -> Metadata:
        """The metadata of a new installation. Blocking: it may have to embed a word."""
        name = self.name or choose_embedder(None, offline=self._offline)
        return Metadata(schema_version=schema, embedder=name, dimension=self._dimension(name))

    def changed(self, head: Metadata) -> Metadata:
        """`head` with the wanted embedder instead of the recorded one. Raises as `new`."""
        name = self.name or head.embedder
        if name.startswith(_CUSTOM) and self._embeddings is None:
            return head
        return head.model_copy(update={"embedder": name, "dimension": self._dimension(name)})

    def check(self, head: Metadata, where: str) -> None:
        """Raise FolderError if the installation called `where` has another embedder."""
        made = f"{where} was made with the embedder {head.embedder}"
        if self.name is not None and self.name != head.embedder:
            by_name = f"`circadian reindex --embedder {self.name}`"
            way = by_name if self._embeddings is None else "`graph.use_cases.reindex`"
            raise FolderError(f"{made}, not {self.name}; {way} changes it and embeds all anew")
        if head.embedder.startswith(_CUSTOM) and self._embeddings is None:
            raise FolderError(
                f"{where} was made with embeddings given from Python ({head.embedder}); open it "
                "from Python with the same ones, or `circadian reindex --embedder NAME` for others"
            )
        if head.embedder == OFFLINE and head.dimension != OFFLINE_DIMENSION:
            raise FolderError(
                f"{made} when its vectors had {head.dimension} numbers; now they have "
                f"{OFFLINE_DIMENSION}: `circadian reindex --embedder {OFFLINE}` embeds all anew"
            )

    def load(self, name: str) -> Embeddings:
        """The embedder. Raises InputError if it cannot be loaded, as without its key."""
        return self._embeddings if self._embeddings is not None else load_embedder(name)

    def _dimension(self, name: str) -> int:
        return embedding_dimension(name, self.load(name))


class InstalledMemory(ABC):
    """An open installation: its embedder and its facts. Both open when they are first used."""

    def __init__(self, embedder: str, dimension: int, load: Callable[[], Embeddings]) -> None:
        """`embedder`, `dimension`: of the metadata; `load`: loads the embedder, called once."""
        self.embedder, self.dimension, self._load = embedder, dimension, load

    @cached_property
    def embeddings(self) -> Embeddings:
        """The embedder. Raises InputError if it cannot be loaded, as without its key."""
        return self._load()

    def semantic(self) -> SemanticMemory:
        """The facts: the same object at every call."""
        return self._semantic

    @cached_property
    def _semantic(self) -> SemanticMemory:
        return SemanticMemory(
            self.open_facts,
            mem0_dir=self.mem0_dir,
            dimension=self.dimension,
            embeddings=lambda: self.embeddings,
        )

    @property
    @abstractmethod
    def mem0_dir(self) -> Path:
        """Mem0's own files."""

    @abstractmethod
    def open_facts(self) -> MemoryTable:
        """The table of facts, brought up to date. To be closed."""


# The writer's lock


PAUSE = 0.05
"""Seconds between two attempts."""

SERVER_PATIENCE = 3.0
"""Seconds to wait for a server that restarts."""

PRODUCT = "circadian"
"""How the holder of an agent signs."""


class WriterLock(AbstractAsyncContextManager[None]):
    """The right to write, to be taken again and again, by one task at a time; else BusyError."""

    def __init__(self, hold: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        """`hold`: a context that takes the lock and gives it back, made for each time."""
        self._hold = hold

    async def __aenter__(self) -> None:
        taken = self._hold()
        await taken.__aenter__()
        self._taken = taken

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._taken.__aexit__(*error)


class Contention(NamedTuple):
    """Why a lock was not taken."""

    patience: float
    """Seconds to keep trying, counted from the first attempt."""
    holder: Callable[[], Awaitable[str]]
    """Says which process holds the lock."""


async def retry_while_contended(
    attempt: Callable[[], Awaitable[Contention | None]], what: str
) -> None:
    """Repeat `attempt` until nothing refuses."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while (refusal := await attempt()) is not None:
        if loop.time() >= began + refusal.patience:
            holder = await refusal.holder()
            raise BusyError(f"{what} is in use by {holder}: wait until it has ended, or stop it")
        await asyncio.sleep(PAUSE)


def called(thread: str, name: str | None) -> str:
    """The agent, for an error: by the name that people gave it, where it is known."""
    return f"the agent with thread {thread!r}" if name is None else f"the agent {name!r:.80}"
