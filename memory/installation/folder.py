"""The data folder: an installation in files, and its writers' locks.

First comes what it has in common with a database: metadata, embedder, facts, the writer's lock,
which lets one process run an agent at a time, and a server keep all agents.

The locks use `flock`: the operating system releases the lock of a process that dies, and two
handles of one process exclude each other. Lock files are never deleted: waiting processes have
them open.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from langchain_core.embeddings import Embeddings
from pydantic import BaseModel, ValidationError

from memory.errors import BusyError, FolderError, NewerError
from memory.facts import MemoryTable, SemanticMemory
from memory.facts.sqlite import SqliteTable
from memory.models import DIMENSION as OFFLINE_DIMENSION
from memory.models import OFFLINE, choose_embedder, embedding_dimension, load_embedder
from memory.settings import replacing

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
    def semantic(self) -> SemanticMemory:
        """The facts."""
        return SemanticMemory(
            self.open_facts,
            mem0_dir=self.mem0_dir,
            dimension=self.dimension,
            embeddings=self._load,
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


WriterLock = AbstractAsyncContextManager[None]
"""The right to write, taken once; else BusyError."""


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


FOLDER_SCHEMA = 1
"""The layout of the folder. It counts every change that an older version cannot read."""

HEAD = "folder.json"
"""The file that makes a folder a data folder."""


class DataFolder(InstalledMemory):
    """An open data folder. Opening one writes nothing, unless it is new or of an older layout."""

    def __init__(
        self, path: Path, embedder: str, dimension: int, load: Callable[[], Embeddings]
    ) -> None:
        super().__init__(embedder, dimension, load)
        self.path, self.name = path, str(path)
        self.checkpoints_db = path / "checkpoints.db"
        """Checkpoints: working memory."""
        self.store_db = path / "store.db"
        """The store: journal, links, inbox, nights."""
        self.facts_db = path / "facts.db"
        """Facts: semantic memory."""
        self.locks_dir = path / "locks"
        """One lock file per agent."""

    @property
    def mem0_dir(self) -> Path:
        """Mem0's own files."""
        return self.path / "mem0"

    def open_facts(self) -> SqliteTable:
        """The table of facts, brought up to date. To be closed."""
        return SqliteTable(self.facts_db, model=self.embedder, dimension=self.dimension)

    def agent_lock(
        self, thread: str, *, name: str | None = None, timeout: float = 30.0
    ) -> WriterLock:
        """The right to run the agent of one thread, refused as `check` refuses it.

        A run that waited for it would write an older form over the newer one.
        """
        place = files_of_agent(self.locks_dir, thread), called(thread, name), PRODUCT
        return hold_files(*place, timeout, self.check)

    def server_lock(self, *, timeout: float = 30.0, alone: bool = False) -> WriterLock:
        """A server's right to run every agent. Always `alone`: servers do not share a folder."""
        wanted, what = {self.locks_dir / FOLDER_FILE: True}, f"the data folder {self.path}"
        return hold_files(wanted, what, "server", timeout)

    def check(self) -> None:
        """Raise NewerError if a newer version has upgraded the folder since it was opened."""
        _read(self.path)

    def close(self) -> None:
        """Close its files. A later call opens them again."""
        self.semantic.close()


def open_folder(
    path: Path,
    *,
    embedder: str | None = None,
    offline: bool = False,
    embeddings: Embeddings | None = None,
    change: bool = False,
) -> DataFolder:
    """Open the data folder at `path`; make it if there is none.

    A new folder records its embedder: `embeddings`, or else `embedder`, or else the default
    (offline with `offline`, or if no OpenAI key is set). Later openings use the recorded one; to
    ask for another is an error, except with `change`, which records it for `reindex`.

    Raises FolderError where it cannot be used so, NewerError for a newer version's, and InputError
    for an embedder that is unknown or lacks its key.
    """
    path = path.expanduser().absolute()
    wanted = WantedEmbedder(embedder, offline, embeddings)
    head = _read(path) or _make(path, wanted.new(FOLDER_SCHEMA))
    if change and (new := wanted.changed(head)) != head:
        with _alone(path):
            head = _written(path, new)
    wanted.check(head, str(path))
    folder = DataFolder(path, head.embedder, head.dimension, lambda: wanted.load(head.embedder))
    if head.schema_version < FOLDER_SCHEMA:
        _bring_up_to_date(folder)
    return folder


def _bring_up_to_date(folder: DataFolder) -> None:
    """Upgrade the facts, then the version that older programs check; a kill repeats both."""
    if folder.facts_db.exists():
        folder.open_facts().close()
    with _alone(folder.path):
        head = _read(folder.path)
        if head is not None and head.schema_version < FOLDER_SCHEMA:
            _written(folder.path, head.model_copy(update={"schema_version": FOLDER_SCHEMA}))


def _read(path: Path) -> Metadata | None:
    try:
        text = (path / HEAD).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, error) from error
    head = _parsed(path, text)
    if not os.access(path, os.W_OK | os.X_OK):
        raise FolderError(f"the data folder {path} is not writable")
    return head


def _parsed(path: Path, text: bytes) -> Metadata:
    try:
        version = int(json.loads(text)["schema_version"])
        if version > FOLDER_SCHEMA:
            raise NewerError(
                f"{path} was made by a newer Circadian (schema {version}, this one reads "
                f"{FOLDER_SCHEMA}); update Circadian"
            )
        return Metadata.model_validate_json(text)
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise FolderError(f"{path / HEAD} is damaged; restore it from a backup") from error


def _make(path: Path, head: Metadata) -> Metadata:
    """Make the folder, unless another process just did; return the stored metadata."""
    with _alone(path):
        return _read(path) or _written(path, head)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Exclude other processes that change the metadata; what is written is on disk at the end."""
    try:
        path.mkdir(0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise _unusable(path, error) from error


def _written(path: Path, head: Metadata) -> Metadata:
    with replacing(path / HEAD) as file:
        file.write(head.model_dump_json(indent=2) + "\n")
    return head


def _unusable(path: Path, error: OSError) -> FolderError:
    return FolderError(f"the data folder {path} cannot be used: {error.strerror or error}")


# Locks


FOLDER_FILE = "folder.lock"


def files_of_agent(locks_dir: Path, thread: str) -> dict[Path, bool]:
    """An agent's lock files, each with whether it is exclusive; the shared one stops servers."""
    file = f"agent-{hashlib.sha256(thread.encode()).hexdigest()[:32]}.lock"
    return {locks_dir / FOLDER_FILE: False, locks_dir / file: True}


@asynccontextmanager
async def hold_files(
    wanted: Mapping[Path, bool],
    what: str,
    role: str,
    patience: float,
    check: Callable[[], None] | None = None,
) -> AsyncIterator[None]:
    """Hold lock files, taken together or not at all. `wanted`: see `files_of_agent`.

    `check` is called with the files taken; where it raises, they are given back.
    """
    files: list[int] = []
    taking = partial(take, wanted, role, check)
    await retry_while_contended(lambda: _attempt(taking, wanted, patience, files), what)
    try:
        yield
    finally:
        close(files)


async def _attempt(
    take_all: Callable[[], list[int] | Path],
    wanted: Mapping[Path, bool],
    patience: float,
    files: list[int],
) -> Contention | None:
    taking = asyncio.ensure_future(asyncio.to_thread(take_all))
    try:
        taken = await asyncio.shield(taking)
    except asyncio.CancelledError:
        taking.add_done_callback(_drop)  # the thread goes on and may yet take the lock
        raise
    if isinstance(taken, Path):
        # A server keeps the shared file as long as it lives: wait only for one that restarts.
        patience = patience if wanted[taken] else min(patience, SERVER_PATIENCE)
        return Contention(patience, partial(asyncio.to_thread, _holder, taken))
    files += taken
    return None


def take(
    wanted: Mapping[Path, bool], role: str, check: Callable[[], None] | None = None
) -> list[int] | Path:
    """Take all files and return them open, or take none and return the file that is refused."""
    files: list[int] = []
    try:
        for path, exclusive in wanted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            files.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            if not _flock(files[-1], exclusive=exclusive):
                close(files)
                return path
            if exclusive:
                os.ftruncate(files[-1], 0)
                os.pwrite(files[-1], f"process {os.getpid()} ({role})".encode(), 0)
        if check is not None:
            check()
    except BaseException:
        close(files)
        raise
    return files


def close(files: list[int]) -> None:
    """Give files back that were taken."""
    for file in files:
        os.close(file)


def _flock(file: int, *, exclusive: bool) -> bool:
    """Lock an open file unless another handle has it; whether that was possible."""
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _drop(attempt: asyncio.Future[list[int] | Path]) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        taken = attempt.result()
        close(taken if isinstance(taken, list) else [])


def _holder(path: Path) -> str:
    """Who holds `path`, as its exclusive holder signed it; of several agents one is named."""
    agents = [file for file in path.parent.glob("agent-*.lock") if _is_held(file)]
    signed = agents[0] if agents and path.name == FOLDER_FILE else path
    return signed.read_text() or "another process"


def _is_held(path: Path) -> bool:
    with path.open() as file:
        return not _flock(file.fileno(), exclusive=False)
