"""The writer's lock: one process runs an agent at a time, a server keeps the whole data folder.

These are the locks of a data folder; `database` has those of a database. They use `flock`:
the operating system releases the lock of a process that dies, and two handles of one process
exclude each other. Lock files are never deleted: waiting processes have them open.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from memory.errors import BusyError

PAUSE = 0.05
"""Seconds between two attempts."""

SERVER_PATIENCE = 3.0
"""Seconds to wait for a server that restarts."""

FOLDER_FILE = "folder.lock"

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
