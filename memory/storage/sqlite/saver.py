"""LangGraph's SQLite checkpointer with retention, strict serialisation and whole transactions.

The saver itself prunes, so that Python and a server prune alike. That is safe for plain channels
only: a `DeltaChannel` is rebuilt from the older checkpoints that are deleted here.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial, wraps
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.sqlite import SqliteSaver

from memory.storage.checkpoints import Chunk, HoldingSaver, MessageSerializer, Root, retention
from memory.storage.sqlite.files import OpenedFile, atomic, pages_to_free

_SOURCE = "json_extract(CAST(metadata AS TEXT), '$.source')"

_RUN_ID = "json_extract(CAST(metadata AS TEXT), '$.run_id')"

_KEY = "thread_id, checkpoint_ns, checkpoint_id"

_CHECKPOINT = "parent_checkpoint_id, type, checkpoint, chunks"

_WRITE = "task_id, task_path, idx, channel, type, value"

_OF_A_TASK = "checkpoint_ns > '' AND instr(checkpoint_ns, ':') > 0"
"""The namespace of one task's subgraph (`awake:<task id>`); a stateful subgraph's has no colon."""


def _in_thread(method: Callable[..., Any]) -> Any:
    """A method of the saver as a coroutine, which runs it on the connection's thread."""

    @wraps(method)
    async def run(self: SqliteCheckpoints, *args: Any, **more: Any) -> Any:
        return await self.file.run(partial(method, self, *args, **more))

    return run


class SqliteCheckpoints(SqliteSaver):
    """Checkpoints in SQLite: the newest `keep` of each thread, and what unfinished work needs.

    Each method is one function on the connection's thread. Raises MemoryStoreError.
    """

    def __init__(self, file: OpenedFile, *, keep: int = 50) -> None:
        self.messages = MessageSerializer(self._chunks)
        super().__init__(file.conn, serde=self.messages)
        self.file = file
        self.keep = keep

    def setup(self) -> None:
        """Make LangGraph's tables, and add an index, the run that made each write, and chunks."""
        if self.is_setup:
            return
        with self.file.lock:
            super().setup()
            self.is_setup = False
            with atomic(self.conn):
                # Metadata is stored behind the blob: without the index, `_roots` reads every blob.
                self.conn.execute(
                    "CREATE INDEX IF NOT EXISTS circadian_roots ON checkpoints"
                    f" ({_KEY}, {_SOURCE}, {_RUN_ID})"
                )
                self._add_column("writes", "run_id")
                self._add_column("checkpoints", "chunks")
                self.conn.execute(
                    "CREATE TABLE IF NOT EXISTS circadian_chunks"
                    " (thread_id TEXT, id TEXT, messages BLOB, PRIMARY KEY (thread_id, id))"
                )
                self.conn.execute(
                    "CREATE INDEX IF NOT EXISTS circadian_chunk_ids ON circadian_chunks (id)"
                )
            self.is_setup = True

    async def alist(self, *args: Any, **more: Any) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints, newest first. All are read before the first is given."""
        for item in await self.file.run(lambda: list(self.list(*args, **more))):
            yield item

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint of `config`, or the newest of its thread."""
        place = config["configurable"]
        if place.get("checkpoint_ns") or place.get("checkpoint_id"):
            return super().get_tuple(config)
        with self.file.lock, self.messages.reading(str(place["thread_id"])):
            return super().get_tuple(config)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint and delete what it makes superfluous, as one transaction."""
        place = config["configurable"]
        key = (str(place["thread_id"]), str(place["checkpoint_ns"]), checkpoint["id"])
        described = json.dumps(get_checkpoint_metadata(config, metadata), ensure_ascii=False)
        rest, chunks = self.messages.cut(key[0], checkpoint)
        ids = json.dumps([chunk.id for chunk in chunks]) if chunks else None
        row = (*self.messages.dumps_chunked(rest, chunks), ids)
        # Only a root checkpoint makes others superfluous.
        root = not key[1]
        with self._pruning() if root else self._writing():
            self.conn.execute(
                f"INSERT OR REPLACE INTO checkpoints ({_KEY}, parent_checkpoint_id, type,"
                " checkpoint, chunks, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*key, place.get("checkpoint_id"), *row, described.encode("utf-8", "ignore")),
            )
            added = self._put_chunks(key[0], chunks)
            if root:
                self._prune(key[0])
            if added:
                self._drop_chunks(key[0])
        return {
            "configurable": {"thread_id": key[0], "checkpoint_ns": key[1], "checkpoint_id": key[2]}
        }

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store a task's writes, all or none: a task with writes counts as finished."""
        run_id = get_checkpoint_metadata(config, {}).get("run_id")
        place = config["configurable"]
        key = (str(place["thread_id"]), str(place["checkpoint_ns"]), str(place["checkpoint_id"]))
        special = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        rows = [
            (
                *(*key, task_id, task_path, WRITES_IDX_MAP.get(channel, index), channel),
                *self.serde.dumps_typed(value),
                run_id,
            )
            for index, (channel, value) in enumerate(writes)
        ]
        with self._writing():
            self.conn.executemany(
                f"INSERT OR {'REPLACE' if special else 'IGNORE'} INTO writes"
                f" ({_KEY}, task_id, task_path, idx, channel, type, value, run_id)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread."""
        with self._pruning():
            self._delete(str(thread_id), "TRUE")
            self._drop_chunks(str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what these runs stored, in all threads, also writes on checkpoints of others."""
        runs = [(str(run_id),) for run_id in run_ids]
        theirs = f"SELECT {_KEY} FROM checkpoints WHERE {_RUN_ID} = ?1"
        with self._pruning():
            self.conn.executemany(
                f"DELETE FROM writes WHERE run_id = ?1 OR ({_KEY}) IN ({theirs})", runs
            )
            self.conn.executemany(f"DELETE FROM checkpoints WHERE {_RUN_ID} = ?", runs)
            threads = self.conn.execute("SELECT DISTINCT thread_id FROM circadian_chunks")
            for (thread,) in threads.fetchall():
                self._drop_chunks(thread)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread to one without checkpoints (else ValueError), as of no run."""
        source, target = str(source_thread_id), str(target_thread_id)
        with self._writing():
            if self._roots(target):
                raise ValueError(f"thread {target} has checkpoints; copy to a new thread")
            self.conn.execute(
                f"INSERT INTO checkpoints ({_KEY}, {_CHECKPOINT}, metadata)"
                f" SELECT ?, checkpoint_ns, checkpoint_id, {_CHECKPOINT}, CAST(json_remove("
                "json_replace(CAST(metadata AS TEXT), '$.thread_id', ?), '$.run_id') AS BLOB)"
                " FROM checkpoints WHERE thread_id = ?",
                (target, target, source),
            )
            self.conn.execute(
                "INSERT INTO circadian_chunks SELECT ?, id, messages FROM circadian_chunks"
                " WHERE thread_id = ?",
                (target, source),
            )
            self.conn.execute(
                f"INSERT INTO writes ({_KEY}, {_WRITE})"
                f" SELECT ?, checkpoint_ns, checkpoint_id, {_WRITE} FROM writes"
                " WHERE thread_id = ?",
                (target, source),
            )

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all but each namespace's newest checkpoint, or whole threads, by `strategy`."""
        if strategy not in ("keep_latest", "delete", "delete_all"):
            raise ValueError(f"Unknown prune strategy: {strategy!r}")
        for thread_id in map(str, thread_ids):
            if strategy == "keep_latest":
                self._keep_latest(thread_id)
            else:
                self.delete_thread(thread_id)

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """The cursor with which the base class reads."""
        with self.file.lock:
            self.setup()
            with closing(self.conn.cursor()) as cursor:
                yield cursor

    @contextmanager
    def _pruning(self) -> Iterator[None]:
        """A transaction that may delete much; freed pages are returned to the file system."""
        with self._writing():
            yield
        free = self._pragma("freelist_count")
        if pages := pages_to_free(free, self._pragma("page_count")):
            # As a script: a single statement would stop after its first page.
            self.conn.executescript(f"PRAGMA incremental_vacuum({pages})")

    aget_tuple = _in_thread(get_tuple)
    aput, aput_writes = _in_thread(put), _in_thread(put_writes)
    adelete_thread, adelete_for_runs = _in_thread(delete_thread), _in_thread(delete_for_runs)
    acopy_thread, aprune = _in_thread(copy_thread), _in_thread(prune)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self.file.lock:
            self.setup()
            with atomic(self.conn):
                yield

    def _prune(self, thread: str) -> None:
        plan = retention(self._roots(thread), self.keep)
        self._delete(
            thread,
            "checkpoint_ns = '' AND checkpoint_id < ? AND checkpoint_id NOT IN (?, ?)",
            plan.roots_before,
            plan.last_step,
            plan.restore or plan.last_step,
        )
        if plan.subgraphs_before is not None:
            self._delete(
                thread,
                f"{_OF_A_TASK} AND checkpoint_id < ?"
                " AND NOT (checkpoint_id > ? AND checkpoint_id < ?)",
                plan.subgraphs_before,
                plan.restore or plan.run_start,
                plan.run_start,
            )

    def _keep_latest(self, thread: str) -> None:
        with self._pruning():
            if not (roots := self._roots(thread)):
                return
            newest_of_all = (
                "(SELECT max(checkpoint_id) FROM checkpoints AS other"
                " WHERE other.thread_id = ? AND other.checkpoint_ns = {table}.checkpoint_ns)"
            )
            self._delete(
                thread,
                f"(checkpoint_id < {newest_of_all} OR ({_OF_A_TASK} AND checkpoint_id < ?))",
                thread,
                roots[0].id,
            )
            self._drop_chunks(thread)

    def _chunks(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Chunks by their ids. What has the same id has the same content, in every thread."""
        return dict(
            self.conn.execute(
                "SELECT id, messages FROM circadian_chunks"
                " WHERE id IN (SELECT value FROM json_each(?))",
                (json.dumps(ids),),
            )
        )

    def _put_chunks(self, thread: str, chunks: Sequence[Chunk]) -> bool:
        """Store the chunks that the thread lacks; returns whether there were any."""
        ids = json.dumps([chunk.id for chunk in chunks])
        stored = self.conn.execute(
            "SELECT id FROM circadian_chunks"
            " WHERE thread_id = ? AND id IN (SELECT value FROM json_each(?))",
            (thread, ids),
        )
        there = {id_ for (id_,) in stored}
        rows = [
            (thread, chunk.id, self.messages.packed(chunk.messages))
            for chunk in chunks
            if chunk.id not in there
        ]
        self.conn.executemany("INSERT OR IGNORE INTO circadian_chunks VALUES (?, ?, ?)", rows)
        return bool(rows)

    def _drop_chunks(self, thread: str) -> None:
        self.conn.execute(
            "DELETE FROM circadian_chunks WHERE thread_id = ?1 AND id NOT IN (SELECT value"
            " FROM checkpoints, json_each(checkpoints.chunks) WHERE checkpoints.thread_id = ?1)",
            (thread,),
        )

    def _add_column(self, table: str, column: str) -> None:
        columns = self.conn.execute(f"PRAGMA table_info({table})").fetchall()
        if column not in {there[1] for there in columns}:
            self.conn.execute(f"ALTER TABLE {table} ADD COLUMN {column} TEXT")

    def _roots(self, thread: str) -> list[Root]:
        rows = self.conn.execute(
            f"SELECT checkpoint_id, {_SOURCE}, {_RUN_ID} FROM checkpoints"
            " WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id DESC",
            (thread,),
        )
        return [Root(*row) for row in rows]

    def _delete(self, thread: str, where: str, *params: str | None) -> None:
        for table in ("writes", "checkpoints"):
            self.conn.execute(
                f"DELETE FROM {table} WHERE thread_id = ? AND {where.format(table=table)}",
                (thread, *params),
            )

    def _pragma(self, name: str) -> int:
        return int(self.conn.execute(f"PRAGMA {name}").fetchone()[0])


class CircadianSqliteSaver(HoldingSaver, SqliteCheckpoints):
    """Checkpoints in SQLite, held back where a run says so."""
