"""The writer's lock: one process runs an agent at a time, a server keeps the whole data folder.

Here on the files of a data folder; in a database: `memory.postgres.lock`. Built on `flock`, which
the operating system releases when its holder dies, and which excludes two handles of one process
from each other too. Lock files are never deleted: a process that waits holds them open.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from memory.errors import BusyError

PAUSE = 0.05
"""Seconds between two tries."""

SERVER_PATIENCE = 3.0
"""Seconds to wait for a server, as it restarts."""

FOLDER_FILE = "folder.lock"


class Refusal(NamedTuple):
    """Why a lock was not taken."""

    patience: float
    """Seconds that it is worth waiting for, from when the lock was asked for."""
    holder: Callable[[], Awaitable[str]]
    """Says who has it."""


async def patiently(attempt: Callable[[], Awaitable[Refusal | None]], what: str) -> None:
    """Try until nothing refuses.

    Raises:
        BusyError: another handle kept it too long; the message says which process.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    while (refusal := await attempt()) is not None:
        if loop.time() >= began + refusal.patience:
            holder = await refusal.holder()
            raise BusyError(f"{what} is in use by {holder}: wait until it has ended, or stop it")
        await asyncio.sleep(PAUSE)


class LockFile(NamedTuple):
    """A file that is locked, and how."""

    path: Path
    exclusive: bool


class Lock:
    """Several lock files, taken together or not at all.

    Not re-entrant: tasks that share one handle exclude each other, as separate handles do.
    """

    def __init__(self, wanted: list[LockFile], what: str, role: str, timeout: float) -> None:
        self._wanted = wanted
        self._what = what
        self._role = role
        self._timeout = timeout
        self._files: list[int] = []

    async def acquire(self) -> None:
        """Take the lock.

        Raises:
            BusyError: another handle kept it for `timeout` seconds; the message says which process.
        """
        await patiently(self._attempt, self._what)

    def _patience(self, refused: Path) -> float:
        """Seconds to wait for the one that is refused."""
        return self._timeout

    def release(self) -> None:
        """Give the lock back. Does nothing where it is not held."""
        files, self._files = self._files, []
        _close(files)

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    async def _attempt(self) -> Refusal | None:
        attempt = asyncio.ensure_future(asyncio.to_thread(_take, self._wanted, self._role))
        try:
            taken = await asyncio.shield(attempt)
        except asyncio.CancelledError:
            attempt.add_done_callback(_drop)  # the thread goes on and may yet take the lock
            raise
        if isinstance(taken, Path):
            refused = taken
            return Refusal(self._patience(refused), lambda: asyncio.to_thread(_holder, refused))
        self._files = taken
        return None


class AgentLock(Lock):
    """The right to run the agent of one thread, and to keep a server off the folder meanwhile."""

    def __init__(
        self, locks_dir: Path, thread: str, *, role: str = "circadian", timeout: float = 30.0
    ) -> None:
        wanted = [
            LockFile(locks_dir / FOLDER_FILE, exclusive=False),
            LockFile(_agent_file(locks_dir, thread), exclusive=True),
        ]
        super().__init__(wanted, f"the agent with thread {thread!r}", role, timeout)

    def _patience(self, refused: Path) -> float:
        """A server keeps the folder as long as it lives: only its restart is waited for."""
        if refused.name == FOLDER_FILE:
            return min(self._timeout, SERVER_PATIENCE)
        return self._timeout


class FolderLock(Lock):
    """The right to run every agent of the folder: a server's, as long as it lives."""

    def __init__(self, locks_dir: Path, *, role: str = "server", timeout: float = 30.0) -> None:
        wanted = [LockFile(locks_dir / FOLDER_FILE, exclusive=True)]
        super().__init__(wanted, f"the data folder {locks_dir.parent}", role, timeout)


def _agent_file(locks_dir: Path, thread: str) -> Path:
    """A thread id may hold anything, a file name may not."""
    return locks_dir / f"agent-{hashlib.sha256(thread.encode()).hexdigest()[:32]}.lock"


def _take(wanted: list[LockFile], role: str) -> list[int] | Path:
    """Take all of them and return the open files, or none and return the one that is refused."""
    files: list[int] = []
    try:
        for one in wanted:
            one.path.parent.mkdir(parents=True, exist_ok=True)
            files.append(os.open(one.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            if not _flock(files[-1], exclusive=one.exclusive):
                _close(files)
                return one.path
            if one.exclusive:
                _sign(files[-1], role)
    except OSError:
        _close(files)
        raise
    return files


def _sign(file: int, role: str) -> None:
    os.ftruncate(file, 0)
    os.pwrite(file, f"process {os.getpid()} ({role})".encode(), 0)


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)


def _drop(attempt: asyncio.Future[list[int] | Path]) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        taken = attempt.result()
        _close(taken if isinstance(taken, list) else [])


def _flock(file: int, *, exclusive: bool) -> bool:
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(path: Path) -> str:
    """Who keeps `path`, as its holder wrote it.

    Only an exclusive holder signs. Where agents share the folder, one of them is named.
    """
    agents = [file for file in path.parent.glob("agent-*.lock") if _is_held(file)]
    signed = agents[0] if agents and path.name == FOLDER_FILE else path
    return signed.read_text() or "another process"


def _is_held(path: Path) -> bool:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return not _flock(file, exclusive=False)
    finally:
        os.close(file)
