"""LangGraph's PostgreSQL checkpointer with retention, strict serialisation, whole transactions.

Unlike SQLite's, it keeps channel values in a table of their own, one row for each version. A value
is deleted together with the last checkpoint that refers to it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from memory.storage.checkpoints import Chunk, HoldingSaver, MessageSerializer, Root, retention
from memory.storage.postgres.connections import (
    Cursor,
    Pool,
    hold,
    migrate,
    reading,
    transaction,
    write,
)

_KEY = "thread_id, checkpoint_ns, checkpoint_id"

_WRITE = "task_id, task_path, idx, channel, type, blob"

_SCHEMA = (
    "ALTER TABLE checkpoint_writes ADD COLUMN run_id TEXT",
    "CREATE INDEX circadian_checkpoint_runs ON checkpoints ((metadata ->> 'run_id'))",
    "CREATE INDEX circadian_write_runs ON checkpoint_writes (run_id) WHERE run_id IS NOT NULL",
    "ALTER TABLE checkpoint_blobs ADD COLUMN chunks TEXT[]",
    "CREATE TABLE circadian_chunks"
    " (thread_id TEXT, id TEXT, messages BYTEA, PRIMARY KEY (thread_id, id))",
)
"""Additions to LangGraph's tables: the run that made a write, indexes by run, and chunks."""

_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "circadian_chunks")

_PUT_WRITES = (
    f"INSERT INTO checkpoint_writes ({_KEY}, task_id, task_path, run_id, idx, channel, type, blob)"
    " SELECT %s, %s, %s, %s, %s, %s, new.*"
    " FROM unnest(%b::integer[], %b::text[], %b::text[], %b::bytea[]) AS new"
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
), blobs AS (
    DELETE FROM checkpoint_blobs AS blob USING freed
    WHERE blob.thread_id = freed.thread_id AND blob.checkpoint_ns = freed.checkpoint_ns
        AND blob.channel = freed.channel AND blob.version = freed.version
    RETURNING blob.*
)
DELETE FROM circadian_chunks AS chunk
USING (SELECT DISTINCT thread_id, unnest(chunks) AS id FROM blobs) AS old
WHERE chunk.thread_id = old.thread_id AND chunk.id = old.id AND NOT EXISTS (
    SELECT FROM checkpoint_blobs AS kept
    WHERE kept.thread_id = chunk.thread_id AND chunk.id = ANY(kept.chunks) AND NOT EXISTS (
        SELECT FROM blobs
        WHERE blobs.checkpoint_ns = kept.checkpoint_ns AND blobs.channel = kept.channel
            AND blobs.version = kept.version AND blobs.thread_id = kept.thread_id
    )
)
"""
"""Checkpoints, their writes, and values and chunks that only they refer to, in one snapshot."""

_DROP_CHUNKS = """
DELETE FROM circadian_chunks AS chunk
WHERE chunk.thread_id = ANY(%s) AND NOT EXISTS (
    SELECT FROM checkpoint_blobs AS blob
    WHERE blob.thread_id = chunk.thread_id AND chunk.id = ANY(blob.chunks)
)
"""

_COPY = (
    f"INSERT INTO checkpoints ({_KEY}, parent_checkpoint_id, type, checkpoint, metadata)"
    " SELECT %(target)s, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,"
    " CASE WHEN metadata ? 'thread_id'"
    " THEN jsonb_set(metadata, '{thread_id}', to_jsonb(%(target)s::text)) ELSE metadata END"
    " - 'run_id' FROM checkpoints WHERE thread_id = %(source)s",
    "INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob, chunks)"
    " SELECT %(target)s, checkpoint_ns, channel, version, type, blob, chunks"
    " FROM checkpoint_blobs WHERE thread_id = %(source)s",
    "INSERT INTO circadian_chunks SELECT %(target)s, id, messages FROM circadian_chunks"
    " WHERE thread_id = %(source)s",
    f"INSERT INTO checkpoint_writes ({_KEY}, {_WRITE})"
    f" SELECT %(target)s, checkpoint_ns, checkpoint_id, {_WRITE} FROM checkpoint_writes"
    " WHERE thread_id = %(source)s",
)

_PUT = f"""
WITH blobs AS (
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob, chunks)
    SELECT %s, %s, new.*, CASE WHEN channel = 'messages' THEN %b::text[] END
    FROM unnest(%b::text[], %b::text[], %b::text[], %b::bytea[])
        AS new (channel, version, type, blob)
    ON CONFLICT DO NOTHING
)
{AsyncPostgresSaver.UPSERT_CHECKPOINTS_SQL}
"""

_THERE = "SELECT id FROM circadian_chunks WHERE thread_id = %s AND id = ANY(%b::text[])"

_CHUNKS = """(
    SELECT array_agg(array[chunk.id::bytea, chunk.messages])
    FROM checkpoint_blobs AS blob
    JOIN circadian_chunks AS chunk
        ON chunk.thread_id = blob.thread_id AND chunk.id = ANY(blob.chunks)
    WHERE blob.thread_id = checkpoints.thread_id AND blob.channel = 'messages'
        AND blob.checkpoint_ns = checkpoints.checkpoint_ns
        AND blob.version = checkpoint -> 'channel_versions' ->> 'messages'
) AS chunks"""

_ROOTS = """
SELECT checkpoint_id, metadata ->> 'source' AS source, metadata ->> 'run_id' AS run_id
FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = '' ORDER BY checkpoint_id DESC
"""


class PostgresCheckpoints(AsyncPostgresSaver):
    """Checkpoints in PostgreSQL: the newest `keep` of each thread, and what unfinished work needs.

    Raises DatabaseDown where it cannot be reached, MemoryStoreError where it refuses.
    """

    SELECT_SQL = AsyncPostgresSaver.SELECT_SQL.replace(
        "as pending_writes", f"as pending_writes, {_CHUNKS}"
    )

    def __init__(self, pool: Pool, *, keep: int = 50) -> None:
        self._read: Mapping[str, bytes] = {}
        """The chunks of the checkpoint that is being read."""
        self.messages = MessageSerializer(lambda _: self._read)
        super().__init__(pool, serde=self.messages)
        self.pool = pool
        self.keep = keep

    async def setup(self) -> None:
        """Make LangGraph's tables, and add two columns, two indexes and chunks."""
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
        """Store a checkpoint and delete what it makes superfluous, as one transaction.

        Of its values those are stored that are missing, new or not: another writer of the thread
        may have found them superfluous before this checkpoint referred to them.
        """
        place = config["configurable"]
        key = (str(place["thread_id"]), str(place["checkpoint_ns"]), checkpoint["id"])
        rest, chunks = self.messages.cut(key[0], checkpoint)
        ids, values = [chunk.id for chunk in chunks], rest["channel_values"]
        # In the checkpoint's own row, as LangGraph's saver does it; all else beside it.
        plain = str | int | float | bool | None
        inline = {name: value for name, value in values.items() if isinstance(value, plain)}
        beside = {name: one for name, one in values.items() if name not in inline}
        row = Jsonb({**checkpoint, "channel_values": inline})
        described = Jsonb(get_serializable_checkpoint_metadata(config, metadata))
        blobs = self._blobs(beside, checkpoint["channel_versions"], chunks)
        put = (*key, place.get("checkpoint_id"), row, described)
        async with self._changing(key[0]) as cursor:
            await cursor.execute(_PUT, (*key[:2], ids, *blobs, *put))
            there = await cursor.connection.execute(_THERE, (key[0], ids))
            # Only a root checkpoint makes others superfluous.
            if not key[1]:
                await self._prune(cursor, key[0])
            stored = {found["id"] for found in await there.fetchall()}
            if new := [chunk for chunk in chunks if chunk.id not in stored]:
                await cursor.executemany(
                    "INSERT INTO circadian_chunks VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                    [(key[0], one.id, self.messages.packed(one.messages)) for one in new],
                )
        names = ("thread_id", "checkpoint_ns", "checkpoint_id")
        return {"configurable": dict(zip(names, key, strict=True))}

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store a task's writes, all or none: a task with writes counts as finished."""
        if not writes:
            return
        run_id = get_checkpoint_metadata(config, {}).get("run_id")
        place = config["configurable"]
        key = (str(place["thread_id"]), str(place["checkpoint_ns"]), str(place["checkpoint_id"]))
        dumped = self._dump_writes(*key, task_id, task_path, writes)
        rows = {row[5]: row[5:] for row in dumped}.values()  # the last one of an index
        special = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        values = (*key, task_id, task_path, run_id, *map(list, zip(*rows, strict=True)))
        await write(self.pool, _PUT_WRITES + (_REPLACE if special else "NOTHING"), values)

    async def alist(self, *args: Any, **more: Any) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints, newest first. All are read first, to keep no connection meanwhile."""
        for item in [item async for item in super().alist(*args, **more)]:
            yield item

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread."""
        await self.aprune([thread_id], strategy="delete")

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what these runs stored, in all threads, also writes on checkpoints of others."""
        runs = {"runs": [str(run_id) for run_id in run_ids]}
        async with transaction(self.pool) as cursor:
            await cursor.execute(
                f"SELECT DISTINCT thread_id FROM checkpoints WHERE {_OF_RUNS}", runs
            )
            threads = sorted([row["thread_id"] for row in await cursor.fetchall()])
            for thread in threads:
                await hold(cursor, "checkpoints", thread)
            await cursor.execute(_DELETE.format(checkpoints=_OF_RUNS, writes=_WRITES_OF_RUNS), runs)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread to one without checkpoints (else ValueError), as of no run."""
        source, target = str(source_thread_id), str(target_thread_id)
        async with self._changing(*sorted((source, target))) as cursor:
            if await self._roots(cursor, target):
                raise ValueError(f"thread {target} has checkpoints; copy to a new thread")
            for statement in _COPY:
                await cursor.execute(statement, {"source": source, "target": target})

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Prune threads. LangGraph Server says "delete_all" for what the base calls "delete"."""
        strategy, threads = strategy.removesuffix("_all"), sorted(map(str, thread_ids))
        if strategy != "delete":
            await super().aprune(threads, strategy=strategy)
        async with self._changing(*threads) as cursor:
            if strategy == "delete":
                for table in _TABLES:
                    await cursor.execute(
                        f"DELETE FROM {table} WHERE thread_id = ANY(%s)", (threads,)
                    )
            else:
                await cursor.execute(_DROP_CHUNKS, (threads,))

    @asynccontextmanager
    async def _changing(self, *threads: str) -> AsyncIterator[Cursor]:
        async with transaction(self.pool) as cursor:
            for thread in threads:
                await hold(cursor, "checkpoints", thread)
            yield cursor

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[Cursor]:
        async with reading(self.pool) as cursor:
            yield cursor

    async def _load_checkpoint_tuple(self, value: DictRow) -> CheckpointTuple:
        """A row as a checkpoint: of a thread's messages only new ones are made anew."""
        place = {name: value[name] for name in ("thread_id", "checkpoint_ns")}
        checkpoint, parent = value["checkpoint"], value["parent_checkpoint_id"]
        self._read = {id_.decode(): packed for id_, packed in value["chunks"] or ()}
        with self.messages.reading(value["thread_id"]):
            beside = self._load_blobs(value["channel_values"])
            writes = self._load_writes(value["pending_writes"])
        if isinstance(cut := beside.get("messages"), dict):
            beside["messages"] = cut["channel_values"]["messages"]
        checkpoint["channel_values"] = {**(checkpoint.get("channel_values") or {}), **beside}
        return CheckpointTuple(
            {"configurable": {**place, "checkpoint_id": value["checkpoint_id"]}},
            checkpoint,
            value["metadata"],
            {"configurable": {**place, "checkpoint_id": parent}} if parent else None,
            writes,
        )

    def _blobs(
        self, values: Mapping[str, Any], versions: ChannelVersions, chunks: Sequence[Chunk]
    ) -> tuple[list[str], list[str], list[str], list[bytes]]:
        """Values as they stand beside a checkpoint: channels, versions, types, bytes."""
        names = [name for name in values if name in versions]
        packed = [
            self.messages.dumps_chunked({"channel_values": {name: values[name]}}, chunks)
            if name == "messages" and chunks
            else self.serde.dumps_typed(values[name])
            for name in names
        ]
        types, blobs = [kind for kind, _ in packed], [blob for _, blob in packed]
        return names, [str(versions[name]) for name in names], types, blobs

    async def _prune(self, cursor: Cursor, thread: str) -> None:
        """Delete what is superfluous once the newest root checkpoint is stored."""
        plan = retention(await self._roots(cursor, thread), self.keep)
        bounds = {
            **plan._asdict(),
            "thread": thread,
            "restore": plan.restore or plan.last_step,
            "run_before": plan.restore or plan.run_start,
        }
        await cursor.execute(_DELETE.format(checkpoints=_SUPERFLUOUS, writes=_SUPERFLUOUS), bounds)

    async def _roots(self, cursor: Cursor, thread: str) -> list[Root]:
        await cursor.execute(_ROOTS, (thread,))
        return [Root(*row.values()) for row in await cursor.fetchall()]


class CircadianPostgresSaver(HoldingSaver, PostgresCheckpoints):
    """Checkpoints in PostgreSQL, held back where a run says so."""
