"""The writer's lock: one process runs an agent at a time, a server keeps the whole data folder.

These are the locks of a data folder; `database_locks` has those of a database. They use `flock`:
the operating system releases the lock of a process that dies, and two handles of one process
exclude each other. Lock files are never deleted: waiting processes have them open.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

from memory.errors import BusyError

PAUSE = 0.05
"""Seconds between two attempts."""

SERVER_PATIENCE = 3.0
"""Seconds to wait for a server that restarts."""

FOLDER_FILE = "folder.lock"


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


class FileLocks:
    """Several lock files, taken together or not at all.

    Not re-entrant: tasks that share a handle exclude each other, too.
    """

    def __init__(self, wanted: dict[Path, bool], what: str, role: str, timeout: float) -> None:
        """`wanted`: whether each file is locked exclusively, or shared."""
        self._wanted = wanted
        self._what = what
        self._role = role
        self._timeout = timeout
        self._files: list[int] = []

    async def acquire(self) -> None:
        """Take the lock."""
        await retry_while_contended(self._attempt, self._what)

    def release(self) -> None:
        """Give the lock back. Does nothing if it is not held."""
        files, self._files = self._files, []
        _close(files)

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(self, *error: object) -> None:
        self.release()

    def _patience(self, refused: Path) -> float:
        """Seconds to wait for this file."""
        return self._timeout

    async def _attempt(self) -> Contention | None:
        attempt = asyncio.ensure_future(asyncio.to_thread(_take, self._wanted, self._role))
        try:
            taken = await asyncio.shield(attempt)
        except asyncio.CancelledError:
            attempt.add_done_callback(_drop)  # the thread goes on and may yet take the lock
            raise
        if isinstance(taken, Path):
            return Contention(self._patience(taken), partial(asyncio.to_thread, _holder, taken))
        self._files = taken
        return None


class FolderAgentLock(FileLocks):
    """The right to run the agent of one thread, and to keep a server off the folder meanwhile."""

    def __init__(
        self,
        locks_dir: Path,
        thread: str,
        *,
        name: str | None = None,
        role: str = "circadian",
        timeout: float = 30.0,
    ) -> None:
        # A thread id may hold any character, a file name may not.
        file = f"agent-{hashlib.sha256(thread.encode()).hexdigest()[:32]}.lock"
        wanted = {locks_dir / FOLDER_FILE: False, locks_dir / file: True}
        super().__init__(wanted, called(thread, name), role, timeout)

    def _patience(self, refused: Path) -> float:
        """A server keeps the folder as long as it lives: wait only for one that restarts."""
        if refused.name == FOLDER_FILE:
            return min(self._timeout, SERVER_PATIENCE)
        return self._timeout


class FolderServerLock(FileLocks):
    """The right to run every agent of the folder: a server's, as long as it lives."""

    def __init__(self, locks_dir: Path, *, role: str = "server", timeout: float = 30.0) -> None:
        wanted = {locks_dir / FOLDER_FILE: True}
        super().__init__(wanted, f"the data folder {locks_dir.parent}", role, timeout)


def _take(wanted: dict[Path, bool], role: str) -> list[int] | Path:
    """Take all files and return them open, or take none and return the file that is refused."""
    files: list[int] = []
    try:
        for path, exclusive in wanted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            files.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            if not _flock(files[-1], exclusive=exclusive):
                _close(files)
                return path
            if exclusive:
                os.ftruncate(files[-1], 0)
                os.pwrite(files[-1], f"process {os.getpid()} ({role})".encode(), 0)
    except OSError:
        _close(files)
        raise
    return files


def _flock(file: int, *, exclusive: bool) -> bool:
    """Lock an open file unless another handle has it; whether that was possible."""
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)


def _drop(attempt: asyncio.Future[list[int] | Path]) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        taken = attempt.result()
        _close(taken if isinstance(taken, list) else [])


def _holder(path: Path) -> str:
    """Who holds `path`, as its holder signed it.

    Only exclusive holders sign. Of several agents that share the folder, one is named.
    """
    agents = [file for file in path.parent.glob("agent-*.lock") if _is_held(file)]
    signed = agents[0] if agents and path.name == FOLDER_FILE else path
    return signed.read_text() or "another process"


def _is_held(path: Path) -> bool:
    with path.open() as file:
        return not _flock(file.fileno(), exclusive=False)
