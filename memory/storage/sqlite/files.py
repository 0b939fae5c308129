"""SQLite files: whole transactions, clear errors, write-ahead logging, checks and free space.

An opened file of the data folder is a connection with a thread of its own; threads share the one of
an `SqliteFile`.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    asynccontextmanager,
    closing,
    contextmanager,
    suppress,
)
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, TypeVar, cast
from urllib.parse import quote

from memory.errors import FolderError, MemoryStoreError, consequence

T = TypeVar("T")


@contextmanager
def atomic(
    conn: sqlite3.Connection, mode: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE"
) -> Iterator[None]:
    """Commit the block, or roll back on any exception. Joins an open transaction. Blocking.

    A block that writes must be IMMEDIATE: if another process writes after a deferred transaction
    has read, that transaction cannot write any more, and SQLite fails at once instead of waiting.
    """
    if conn.in_transaction:
        yield
        return
    try:
        conn.execute(f"BEGIN {mode}")
        yield
        conn.commit()
    except BaseException:
        conn.rollback()  # does nothing if no transaction is open
        raise


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into one clear line that names the file and says what it means."""
    try:
        yield
    except sqlite3.Error as error:
        raise _clear(error, path) from error


def _clear(error: sqlite3.Error, path: Path) -> MemoryStoreError:
    return MemoryStoreError(f"{path}: {error}: {consequence()}")


PATIENCE = 30.0
"""Seconds to wait for other processes."""

PAUSE = 0.02


def use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to write-ahead logging: readers continue while a process writes. Blocking.

    SQLite ignores its busy timeout here: of several processes that open a new file at once, some
    would fail with "database is locked".
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(PAUSE)
        else:
            return


FREE_PAGES_KEPT = 64
"""Free pages that a file may keep however small it is (256 kB)."""

VACUUM_PAGES = 256
"""Pages returned to the file system at one time, at most (1 MB)."""


def pages_to_free(free: int, total: int) -> int:
    """Free pages to return now, in small steps; a quarter stays, for the next checkpoint."""
    return min(max(0, free - max(FREE_PAGES_KEPT, total // 4)), VACUUM_PAGES)


def quick_check(path: Path) -> str | None:
    """What SQLite finds wrong with the file, on one line; None for a sound file. Blocking, slow."""
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    except sqlite3.Error as error:
        return str(error)
    try:
        found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)")]
    except sqlite3.Error as error:
        return str(error)
    finally:
        connection.close()
    return None if found == ["ok"] else " ".join("; ".join(found).split())


WAL_LIMIT = 4 * 1024 * 1024
"""Bytes that a write-ahead log may keep after a checkpoint."""

READS_IN_A_ROW = 8
"""Quick reads between two turns of the event loop."""


@dataclass(eq=False)
class _Work:
    """A function for a connection's thread, and its outcome in the event loop that waits for it."""

    function: Callable[[], Any]
    outcome: asyncio.Future[Any]
    shares_commit: bool
    result: Any = None
    error: BaseException | None = None
    ended: bool = False

    def run(self) -> None:
        """Run it alone."""
        try:
            self.result = self.function()
        except BaseException as error:  # noqa: BLE001  # the caller gets it
            self.error = error


def _settle(works: Sequence[_Work]) -> None:
    for work in works:
        if work.outcome.done():  # its caller was cancelled
            continue
        if work.error is None:
            work.outcome.set_result(work.result)
        elif isinstance(work.error, StopIteration):  # no future takes it
            work.outcome.set_exception(RuntimeError(repr(work.error)))
        else:
            work.outcome.set_exception(work.error)


def _tell(works: Sequence[_Work]) -> None:
    """Wake each event loop once for all of its works."""
    for loop in {work.outcome.get_loop() for work in works}:
        some = [work for work in works if work.outcome.get_loop() is loop]
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, some)


class OpenedFile:
    """A connection in autocommit mode, its thread, and a second connection for quick reads.

    `run` hands a whole function to the thread: a hand-off costs more than a statement. Quick reads
    need none: with write-ahead logging a reader never waits for a writer.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.RLock()
        """Held while the connection is used; `run` holds it."""
        self.conn: sqlite3.Connection
        self._reader: sqlite3.Connection | None = None
        self._reading = threading.Lock()
        """Held while the reader is used: another event loop has a thread of its own."""
        self._reads = 0
        self._closed = False
        self._work: SimpleQueue[_Work | None] = SimpleQueue()  # None closes the file
        # No executor: those take no more work once the interpreter ends, when an agent that was
        # never closed is closed.
        self._thread = threading.Thread(target=self._take, name=f"circadian-{path.name}")
        self._thread.start()

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        """Run `work` in the connection's thread. Raises MemoryStoreError."""
        return cast(T, await self._run(partial(work, *args), shares_commit=False))

    async def write(self, work: Callable[..., T], *args: Any) -> T:
        """Run `work`, which is one transaction; what waits beside it shares its commit.

        So agents that write at once wait for one commit. If one of them fails, all are rolled back,
        and each runs again alone. Raises MemoryStoreError.
        """
        return cast(T, await self._run(partial(work, *args), shares_commit=True))

    async def _run(self, function: Callable[[], Any], *, shares_commit: bool) -> Any:
        """The outcome of `function`. If the caller is cancelled, a running one ends first.

        Otherwise a write could outlive the caller's lock of the agent.
        """
        work = _Work(function, asyncio.get_running_loop().create_future(), shares_commit)
        self._work.put(work)
        if self._closed:  # nobody takes it any more
            raise self._is_closed()
        try:
            return await work.outcome
        except sqlite3.Error as error:
            raise _clear(error, self.path) from error
        except asyncio.CancelledError:
            await _until(lambda: work.ended or self._closed)
            raise

    async def read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """What a quick `look` finds: some rows by their keys, all from one state of the file."""
        if self._closed:
            raise self._is_closed()
        self._reads += 1
        if self._reads % READS_IN_A_ROW == 0:
            await asyncio.sleep(0)  # a reader in a loop must let other tasks go on
        if self._reader is not None and self._reading.acquire(blocking=False):
            try:
                return looked(look, self._reader)
            except sqlite3.Error as error:
                # Busy: another process recovers or closes the file, and a reader has to wait.
                if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY:
                    raise _clear(error, self.path) from error
            finally:
                self._reading.release()
        return await self.run(looked, look, self.conn)

    async def rows(self, statement: str, params: Sequence[Any] = ()) -> list[Any]:
        """The rows that a statement returns."""
        return await self.run(lambda: self.conn.execute(statement, params).fetchall())

    def _take(self) -> None:
        """What the thread does: what waits, in order; a loop is woken once for all of a commit."""
        while not self._closed:
            waiting = [self._work.get()]
            while not self._work.empty():
                waiting.append(self._work.get())
            given = filter(None, waiting)
            for share, group in itertools.groupby(given, lambda work: work.shares_commit):
                works = [*group]
                wanted = [work for work in works if not work.outcome.cancelled()]
                with self.lock:
                    if not (share and self._committed_together(wanted)):
                        for work in wanted:
                            work.run()
                for work in works:
                    work.ended = True
                _tell(wanted)
            if None in waiting:
                with self.lock:
                    self._close()
        while not self._work.empty():
            if (late := self._work.get()) is not None:
                late.error = self._is_closed()
                _tell([late])

    def _is_closed(self) -> MemoryStoreError:
        return MemoryStoreError(f"{self.path} was closed: {consequence()}. Open it again")

    def _committed_together(self, works: Sequence[_Work]) -> bool:
        """Whether one commit ended all of them; else none is written."""
        try:
            with atomic(self.conn):
                for work in works:
                    work.result = work.function()
        except BaseException as error:  # noqa: BLE001  # the callers get it
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY:
                return False  # each runs again alone, and fails alone
            for work in works:  # another process writes: alone, each would wait as long again
                work.error = error
        return True

    def open(self, *, quick_reads: bool) -> None:
        """Connect. Blocking.

        `synchronous=FULL`: an event leaves the inbox (one file) once its tick is in another file.
        With NORMAL, a power failure can undo commits of one file alone, and lose that event.
        """
        try:
            _make_private(self.path)
            with closing(sqlite3.connect(self.path, timeout=PATIENCE)) as connection:
                # Before write-ahead logging: it takes effect only in an empty file.
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
                use_wal(connection)
            self.conn = self._connect(PATIENCE)
            self.conn.execute("PRAGMA synchronous = FULL")
            self.conn.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT}")
            if quick_reads:
                self._reader = self._connect(0.0)
                self._reader.execute("PRAGMA query_only = ON")
        except (sqlite3.DatabaseError, OSError) as error:
            raise FolderError(f"cannot open {self.path}: {error}") from error

    def _connect(self, patience: float) -> sqlite3.Connection:
        """A connection. Transactions are begun explicitly; the lock guards it between threads."""
        return sqlite3.connect(
            self.path, isolation_level=None, timeout=patience, check_same_thread=False
        )

    def end(self) -> None:
        """Close the connections after all work that was handed over. Returns at once."""
        self._work.put(None)

    async def ended(self) -> None:
        """Wait for the thread's end."""
        try:
            await _until(lambda: not self._thread.is_alive())
        except BaseException:
            # It must not outlive the event loop, which cancels all tasks as it ends.
            self._thread.join()
            raise

    def _close(self) -> None:
        self._closed = True
        for connection in (self._reader, getattr(self, "conn", None)):
            if connection is not None:
                connection.close()


@asynccontextmanager
async def open_file(path: Path, *, quick_reads: bool = True) -> AsyncIterator[OpenedFile]:
    """The file `path`, open; with `quick_reads` also for the event loop. Raises FolderError."""
    file = OpenedFile(path)
    try:
        # In the file's own thread: a cancelled opening ends before the file is closed.
        await file.run(lambda: file.open(quick_reads=quick_reads))
        yield file
    finally:
        file.end()
        await file.ended()


async def _until(done: Callable[[], bool]) -> None:
    for pause in itertools.repeat(0.001):
        if done():
            return
        await asyncio.sleep(pause)


def looked(look: Callable[[sqlite3.Connection], T], conn: sqlite3.Connection) -> T:
    """What `look` finds, all from one state of the file. Blocking."""
    conn.execute("BEGIN DEFERRED")
    try:
        return look(conn)
    finally:
        conn.rollback()  # which only ends it: nothing was written


PAGE_SIZE = 8_192
"""Bytes, of a new file: five vectors of 384 numbers fit; half that size would waste a quarter."""


PAGES_KEPT_KB = 65_536
"""Pages of a file that stay in memory (64 MB): a search reads rows from all over it."""


def _make_private(path: Path) -> None:
    """Make the file, if it is new, for its owner's eyes; SQLite gives its log the same mode."""
    if not path.exists() and os.access(path.parent, os.W_OK):
        path.touch(0o600)


class SqliteFile:
    """An SQLite file with one connection: its lock, transactions and errors. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self.lock = threading.RLock()
        """Held during every transaction; hold it to make several atomic within this process."""
        self.writing = False
        """A write transaction is open; its rows may yet be rolled back."""
        self._path = path
        with clear_errors(self._path):
            _make_private(path)
            self.connection = sqlite3.connect(
                path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self.connection.close()
                raise

    def _prepare(self) -> None:
        """WAL lets others read while one writes; FULL makes a commit survive a power cut."""
        self.connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        use_wal(self.connection)
        self.connection.execute(f"PRAGMA cache_size = -{PAGES_KEPT_KB}")
        self.connection.execute("PRAGMA synchronous = FULL")
        # Deleted content is overwritten at once; `scrub` then finds less.
        self.connection.execute("PRAGMA secure_delete = ON")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make the writes inside atomic; an error rolls them back. Joins an open transaction."""
        with self._transaction("IMMEDIATE"):
            outer, self.writing = self.writing, True
            try:
                yield
            finally:
                self.writing = outer

    def reading(self) -> AbstractContextManager[None]:
        """Let all reads inside see the file as of one moment."""
        return self._transaction("DEFERRED")

    @contextmanager
    def _transaction(self, mode: Literal["IMMEDIATE", "DEFERRED"]) -> Iterator[None]:
        with self.lock:
            if self.connection.in_transaction:
                yield  # the outer one ends it, and makes errors clear
                return
            with clear_errors(self._path), atomic(self.connection, mode):
                yield

    def compact(self) -> None:
        """Rewrite the file and empty its write-ahead log, so that no deleted text is left."""
        with self.lock, clear_errors(self._path):
            self.connection.execute("VACUUM")
            busy, *_ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise MemoryStoreError(
                    "another process still reads deleted data; close it, and delete again"
                )

    def close(self) -> None:
        """Close the connection. Every write was committed."""
        with self.lock:
            self.connection.close()


def drop_mentions(connection: sqlite3.Connection, table: str) -> None:
    """Drop the index of an earlier state of this version: it would keep the words of what goes."""
    for what in (f"TRIGGER IF EXISTS {table}_INSERT", f"TRIGGER IF EXISTS {table}_UPDATE"):
        connection.execute(f"DROP {what}")
    for name in ("mentions", "unread"):
        connection.execute(f"DROP TABLE IF EXISTS {table}_{name}")
