"""LangGraph's PostgreSQL checkpointer with retention, strict serialisation, whole transactions.

As `memory.sqlite.saver`; here the values of channels stand in a table of their own, one row for
each version, and go with the last checkpoint that refers to them.
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
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg.types.json import Jsonb

from memory.postgres import saver_sql as sql
from memory.postgres.pool import Cursor, Pool, clear_errors, transaction
from memory.postgres.schema import hold, migrate
from memory.retention import Prunable, Root, retention


class CircadianPostgresSaver(Prunable, AsyncPostgresSaver):
    """Checkpoints in PostgreSQL: the newest `keep` of each thread, and what unfinished work needs.

    Raises DatabaseDown where it cannot be reached, MemoryStoreError where it refuses.
    """

    def __init__(self, pool: Pool, *, keep: int = 50) -> None:
        # None: only types that LangGraph holds to be safe are loaded, whatever the environment.
        super().__init__(pool, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        self.pool = pool
        self.keep = keep

    async def setup(self) -> None:
        """Make the tables, and a column and two indexes of ours."""
        async with transaction(self.pool) as cursor:
            await migrate(cursor, "checkpoint_migrations", self.MIGRATIONS)
            await migrate(cursor, "circadian_checkpoint_migrations", sql.SCHEMA)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint and delete what it makes superfluous, as one transaction."""
        place = config["configurable"]
        key = (str(place["thread_id"]), str(place["checkpoint_ns"]))
        values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
        # The others stand beside the row, each version once.
        inline = {name: value for name, value in values.items() if _is_inline(value)}
        beside = {name: versions[name] for name in values.keys() & versions.keys() - inline.keys()}
        new = {name: one for name, one in new_versions.items() if name in beside}
        # Here and not in a thread: that would keep the interpreter to itself all the same.
        blobs = self._dump_blobs(*key, values, new)
        row = (
            checkpoint["id"],
            place.get("checkpoint_id"),
            Jsonb({**checkpoint, "channel_values": inline}),
            Jsonb(get_serializable_checkpoint_metadata(config, metadata)),
        )
        async with transaction(self.pool) as cursor:
            # Only a root checkpoint makes others superfluous.
            if not key[1]:
                await hold(cursor, "checkpoints", key[0])
            await cursor.executemany(self.UPSERT_CHECKPOINT_BLOBS_SQL, blobs)
            await cursor.execute(self.UPSERT_CHECKPOINTS_SQL, (*key, *row))
            if not key[1]:
                lost = await self._prune(cursor, key[0], beside)
                again = self._dump_blobs(*key, values, {name: beside[name] for name in lost})
                await cursor.executemany(self.UPSERT_CHECKPOINT_BLOBS_SQL, again)
        return {
            "configurable": {
                "thread_id": key[0],
                "checkpoint_ns": key[1],
                "checkpoint_id": checkpoint["id"],
            }
        }

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
                sql.PUT_WRITES + (sql.REPLACE if special else "NOTHING"),
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

        All are read before the first is given: the base class keeps its connection while its
        consumer works.
        """
        found = super().alist(config, filter=filter, before=before, limit=limit)
        for item in [item async for item in found]:
            yield item

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what these runs stored, in all threads: the state before them is the newest again.

        That is what they wrote on another run's checkpoint, too, as a run does that resumes one.
        """
        runs = {"runs": [str(run_id) for run_id in run_ids]}
        async with transaction(self.pool) as cursor:
            await cursor.execute(
                sql.DELETE.format(checkpoints=sql.OF_RUNS, writes=sql.WRITES_OF_RUNS),
                runs,
            )

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread to one that has no checkpoints. The copy belongs to none of its runs.

        Raises:
            ValueError: the target has checkpoints.
        """
        source, target = str(source_thread_id), str(target_thread_id)
        async with transaction(self.pool) as cursor:
            for thread in sorted((source, target)):
                await hold(cursor, "checkpoints", thread)
            if await self._roots(cursor, target):
                raise ValueError(f"thread {target} has checkpoints; copy to a new thread")
            for statement in sql.COPY:
                await cursor.execute(statement, {"source": source, "target": target})

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[Cursor]:
        """What the base class works with: a transaction where it writes (`pipeline`)."""
        if pipeline:
            async with transaction(self.pool) as cursor:
                yield cursor
        else:
            with clear_errors(self.pool.name):
                async with self.pool.connection() as conn, conn.cursor(binary=True) as cursor:
                    yield cursor

    async def _prune(
        self, cursor: Cursor, thread: str, beside: Mapping[str, str | int | float]
    ) -> list[str]:
        """Delete what is superfluous once the newest root checkpoint stands.

        Returns which of the values that it has `beside` it are gone: another writer of the thread
        may have found them superfluous, as long as this checkpoint did not stand.
        """
        wanted = {"channels": list(beside), "versions": [str(one) for one in beside.values()]}
        missing = await cursor.connection.execute(sql.MISSING, {**wanted, "thread": thread})
        plan = retention(await self._roots(cursor, thread), self.keep)
        await self._delete(
            cursor,
            sql.SUPERFLUOUS,
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
        return [row["channel"] for row in await missing.fetchall()]

    async def _keep_latest(self, thread: str) -> None:
        async with transaction(self.pool) as cursor:
            await hold(cursor, "checkpoints", thread)
            if await self._roots(cursor, thread):
                await self._delete(cursor, sql.NOT_NEWEST, {"thread": thread})

    async def _roots(self, cursor: Cursor, thread: str) -> list[Root]:
        await cursor.execute(sql.ROOTS, (thread,))
        rows = await cursor.fetchall()
        return [Root(row["checkpoint_id"], row["source"], row["run_id"]) for row in rows]

    async def _delete(self, cursor: Cursor, where: str, params: dict[str, str | None]) -> None:
        """Delete the checkpoints and writes that `where` says, and what only they refer to."""
        checkpoints = where.format(table="checkpoints")
        writes = where.format(table="checkpoint_writes")
        await cursor.execute(sql.DELETE.format(checkpoints=checkpoints, writes=writes), params)


def _is_inline(value: Any) -> bool:
    """Whether LangGraph keeps a channel's value in the checkpoint's own row."""
    return value is None or isinstance(value, str | int | float | bool)
