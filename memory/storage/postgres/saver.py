"""LangGraph's PostgreSQL checkpointer with retention, strict serialisation, whole transactions.

Unlike SQLite's, it keeps channel values in a table of their own, one row for each version. A value
is deleted together with the last checkpoint that refers to it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
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
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from memory.storage.postgres.connections import (
    Cursor,
    Pool,
    clear_errors,
    hold,
    migrate,
    transaction,
)
from memory.storage.retention import HoldingSaver, Root, retention
from memory.storage.serializer import MessageSerializer

_KEY = "thread_id, checkpoint_ns, checkpoint_id"

_WRITE = "task_id, task_path, idx, channel, type, blob"

_SCHEMA = (
    "ALTER TABLE checkpoint_writes ADD COLUMN run_id TEXT",
    "CREATE INDEX circadian_checkpoint_runs ON checkpoints ((metadata ->> 'run_id'))",
    "CREATE INDEX circadian_write_runs ON checkpoint_writes (run_id) WHERE run_id IS NOT NULL",
)
"""Additions to LangGraph's tables: the run that made a write, and indexes by run."""

_PUT_WRITES = (
    f"INSERT INTO checkpoint_writes ({_KEY}, {_WRITE}, run_id)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO "
)

_REPLACE = (
    "UPDATE SET task_path = EXCLUDED.task_path, channel = EXCLUDED.channel, type = EXCLUDED.type,"
    " blob = EXCLUDED.blob, run_id = EXCLUDED.run_id"
)

_OF_A_TASK = "position(':' IN checkpoint_ns) > 0"
"""The namespace of one task's subgraph (`awake:<task id>`); a stateful subgraph's has no colon."""

_SUPERFLUOUS = f"""
thread_id = %(thread)s AND (
    (
        checkpoint_ns = '' AND checkpoint_id < %(roots_before)s
        AND checkpoint_id NOT IN (%(last_step)s, %(restore)s)
    ) OR (
        {_OF_A_TASK} AND checkpoint_id < %(subgraphs_before)s
        AND NOT (checkpoint_id > %(run_before)s AND checkpoint_id < %(run_start)s)
    )
)
"""
"""What `retention` says to delete. Without `subgraphs_before` (NULL) all subgraphs stay."""

_OF_RUNS = "metadata ->> 'run_id' = ANY(%(runs)s)"

_WRITES_OF_RUNS = (
    f"run_id = ANY(%(runs)s) OR ({_KEY}) IN (SELECT {_KEY} FROM checkpoints WHERE {_OF_RUNS})"
)

_DELETE = """
WITH gone AS (
    DELETE FROM checkpoints WHERE {checkpoints}
    RETURNING thread_id, checkpoint_ns, checkpoint_id, checkpoint -> 'channel_versions' AS versions
), of_them AS (
    DELETE FROM checkpoint_writes WHERE {writes}
), freed AS (
    SELECT thread_id, checkpoint_ns, version.key AS channel, version.value AS version
    FROM gone CROSS JOIN LATERAL jsonb_each_text(gone.versions) AS version
    EXCEPT
    SELECT kept.thread_id, kept.checkpoint_ns, version.key, version.value
    FROM (SELECT DISTINCT thread_id, checkpoint_ns FROM gone) AS place
    JOIN checkpoints AS kept USING (thread_id, checkpoint_ns)
    CROSS JOIN LATERAL jsonb_each_text(kept.checkpoint -> 'channel_versions') AS version
    WHERE NOT EXISTS (
        SELECT FROM gone
        WHERE gone.thread_id = kept.thread_id AND gone.checkpoint_ns = kept.checkpoint_ns
            AND gone.checkpoint_id = kept.checkpoint_id
    )
)
DELETE FROM checkpoint_blobs AS blob USING freed
WHERE blob.thread_id = freed.thread_id AND blob.checkpoint_ns = freed.checkpoint_ns
    AND blob.channel = freed.channel AND blob.version = freed.version
"""
"""Checkpoints, their writes, and values that only they refer to, in one snapshot."""

_COPY = (
    f"INSERT INTO checkpoints ({_KEY}, parent_checkpoint_id, type, checkpoint, metadata)"
    " SELECT %(target)s, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,"
    " CASE WHEN metadata ? 'thread_id'"
    " THEN jsonb_set(metadata, '{thread_id}', to_jsonb(%(target)s::text)) ELSE metadata END"
    " - 'run_id' FROM checkpoints WHERE thread_id = %(source)s",
    "INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)"
    " SELECT %(target)s, checkpoint_ns, channel, version, type, blob FROM checkpoint_blobs"
    " WHERE thread_id = %(source)s",
    f"INSERT INTO checkpoint_writes ({_KEY}, {_WRITE})"
    f" SELECT %(target)s, checkpoint_ns, checkpoint_id, {_WRITE} FROM checkpoint_writes"
    " WHERE thread_id = %(source)s",
)

_MISSING = """
SELECT wanted.channel FROM unnest(%(channels)s::text[], %(versions)s::text[])
    AS wanted (channel, version)
WHERE NOT EXISTS (
    SELECT FROM checkpoint_blobs AS blob
    WHERE blob.thread_id = %(thread)s AND blob.checkpoint_ns = ''
        AND blob.channel = wanted.channel AND blob.version = wanted.version
)
"""
"""Channels of a root checkpoint whose values are missing."""

_ROOTS = """
SELECT checkpoint_id, metadata ->> 'source' AS source, metadata ->> 'run_id' AS run_id
FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = '' ORDER BY checkpoint_id DESC
"""

_cursor_in_use: ContextVar[Cursor | None] = ContextVar("_cursor_in_use", default=None)


class PostgresCheckpoints(AsyncPostgresSaver):
    """Checkpoints in PostgreSQL: the newest `keep` of each thread, and what unfinished work needs.

    Raises:
        DatabaseDown: the database cannot be reached.
        MemoryStoreError: the database refused a statement.
    """

    def __init__(self, pool: Pool, *, keep: int = 50) -> None:
        super().__init__(pool, serde=MessageSerializer())
        self.pool = pool
        self.keep = keep

    async def setup(self) -> None:
        """Make LangGraph's tables, and add a column and two indexes."""
        async with transaction(self.pool) as cursor:
            await migrate(cursor, "checkpoint_migrations", self.MIGRATIONS)
            await migrate(cursor, "circadian_checkpoint_migrations", _SCHEMA)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint and delete what it makes superfluous, as one transaction."""
        place = config["configurable"]
        thread, is_root = str(place["thread_id"]), not place["checkpoint_ns"]
        async with self._transaction() as cursor:
            # Only a root checkpoint makes others superfluous.
            if is_root:
                await hold(cursor, "checkpoints", thread)
            stored = await super().aput(config, checkpoint, metadata, new_versions)
            if is_root:
                await self._prune(cursor, thread, checkpoint)
        return stored

    async def aput_writes(
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
        rows = self._dump_writes(*key, task_id, task_path, writes)
        special = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        async with transaction(self.pool) as cursor:
            await cursor.executemany(
                _PUT_WRITES + (_REPLACE if special else "NOTHING"),
                [(*row, run_id) for row in rows],
            )

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints, newest first.

        All are read first: the base class would keep its connection while the consumer works.
        """
        found = super().alist(config, filter=filter, before=before, limit=limit)
        for item in [item async for item in found]:
            yield item

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what these runs stored, in all threads, so that the state before them is current.

        A run that resumes another one writes on its checkpoint; those writes are deleted, too.
        """
        runs = {"runs": [str(run_id) for run_id in run_ids]}
        async with transaction(self.pool) as cursor:
            await cursor.execute(
                _DELETE.format(checkpoints=_OF_RUNS, writes=_WRITES_OF_RUNS),
                runs,
            )

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread to an empty one. The copy belongs to none of the thread's runs.

        Raises:
            ValueError: the target has checkpoints.
        """
        source, target = str(source_thread_id), str(target_thread_id)
        async with transaction(self.pool) as cursor:
            for thread in sorted((source, target)):
                await hold(cursor, "checkpoints", thread)
            if await self._roots(cursor, target):
                raise ValueError(f"thread {target} has checkpoints; copy to a new thread")
            for statement in _COPY:
                await cursor.execute(statement, {"source": source, "target": target})

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Prune threads. LangGraph Server says "delete_all" for what the base calls "delete"."""
        strategy = "delete" if strategy == "delete_all" else strategy
        await super().aprune(thread_ids, strategy=strategy)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Cursor]:
        """A transaction in which the base class's own statements take part."""
        async with transaction(self.pool) as cursor:
            token = _cursor_in_use.set(cursor)
            try:
                yield cursor
            finally:
                _cursor_in_use.reset(token)

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[Cursor]:
        """The cursor of the base class: in a transaction where it writes (`pipeline`)."""
        in_use = _cursor_in_use.get()
        if in_use is not None:
            yield in_use
        elif pipeline:
            async with transaction(self.pool) as cursor:
                yield cursor
        else:
            with clear_errors(self.pool.name):
                async with self.pool.connection() as conn, conn.cursor(binary=True) as cursor:
                    yield cursor

    async def _prune(self, cursor: Cursor, thread: str, newest: Checkpoint) -> None:
        """Delete what is superfluous once the `newest` root checkpoint is stored.

        Values of it that are missing are stored again: another writer of the thread may have found
        them superfluous before this checkpoint referred to them.
        """
        values, versions = newest["channel_values"], newest["channel_versions"]
        beside = {
            name: versions[name]
            for name in values.keys() & versions.keys()
            if not _is_inline(values[name])
        }
        wanted = {"channels": list(beside), "versions": [str(one) for one in beside.values()]}
        asked = await cursor.connection.execute(_MISSING, {**wanted, "thread": thread})
        plan = retention(await self._roots(cursor, thread), self.keep)
        await cursor.execute(
            _DELETE.format(checkpoints=_SUPERFLUOUS, writes=_SUPERFLUOUS),
            {
                "thread": thread,
                "roots_before": plan.roots_before,
                "last_step": plan.last_step,
                "restore": plan.restore or plan.last_step,
                "subgraphs_before": plan.subgraphs_before,
                "run_before": plan.restore or plan.run_start,
                "run_start": plan.run_start,
            },
        )
        missing = {row["channel"]: beside[row["channel"]] for row in await asked.fetchall()}
        if missing:
            blobs = self._dump_blobs(thread, "", values, missing)
            await cursor.executemany(self.UPSERT_CHECKPOINT_BLOBS_SQL, blobs)

    async def _roots(self, cursor: Cursor, thread: str) -> list[Root]:
        await cursor.execute(_ROOTS, (thread,))
        rows = await cursor.fetchall()
        return [Root(row["checkpoint_id"], row["source"], row["run_id"]) for row in rows]


class CircadianPostgresSaver(HoldingSaver, PostgresCheckpoints):
    """Checkpoints in PostgreSQL, held back where a run says so."""


def _is_inline(value: Any) -> bool:
    """Whether LangGraph keeps a channel's value in the checkpoint's own row. See its `aput`."""
    return value is None or isinstance(value, str | int | float | bool)
