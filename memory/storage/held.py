"""Checkpoints that a run holds back, because the next one takes their place before long.

LangGraph stores every step. Of a tick only the end is worth it: until then the event is in the
inbox, so that a tick that a crash interrupts begins anew. What is on disk is at any time what a
crash could have left there if every step were stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    copy_checkpoint,
)

HELD = "circadian_held"
"""Key of `config["configurable"]` for a run's HeldCheckpoints. Not a primitive, so not stored."""


class Put(NamedTuple):
    """The arguments of a saver's `aput`."""

    config: RunnableConfig
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    new_versions: ChannelVersions


class HeldCheckpoints:
    """What one run holds back of its thread's root graph, and what it has stored."""

    def __init__(self, waits: Callable[[Mapping[str, Any]], bool]) -> None:
        """`waits`: whether the checkpoint with these values is held back."""
        self.waits = waits
        self.stored: Mapping[str, Any] = {}
        """The values in the newest checkpoint that this run stored."""
        self.newest: Put | None = None
        """The newest checkpoint, while it is held back."""
        self.writes: list[tuple[Any, ...]] = []
        """What tasks wrote after it."""
        self.read: CheckpointTuple | None = None
        """A copy of the checkpoint that was read last, for the next reader."""

    def following(self, put: Put) -> Put:
        """`put` as the checkpoint after the newest one on disk."""
        before, self.newest, self.writes, self.read = self.newest, None, [], None
        if before is None:
            return put
        return put._replace(
            config=before.config, new_versions={**before.new_versions, **put.new_versions}
        )


class HoldingSaver(BaseCheckpointSaver[Any]):
    """A saver that holds checkpoints back where a run's config has HeldCheckpoints."""

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, and delete what it makes superfluous, or hold it back."""
        put, held = Put(config, checkpoint, metadata, new_versions), _held(config)
        if held is None:
            return await self._store(put)
        place = config["configurable"]
        if place["checkpoint_ns"]:
            # A subgraph stores a step: it is a night, or its tick does not end.
            await self._release(held)
            return await self._store(put)
        put = held.following(put)
        if held.waits(checkpoint["channel_values"]):
            held.newest = put
            names = {"thread_id": place["thread_id"], "checkpoint_ns": ""}
            return {"configurable": {**names, "checkpoint_id": checkpoint["id"]}}
        stored = await self._store(put)
        held.stored = checkpoint["channel_values"]
        return stored

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store a task's writes, all or none, or hold them back with their checkpoint.

        An error and an interrupt are stored at once: the run ends with them.
        """
        held = _held(config)
        if held is None or held.newest is None or config["configurable"]["checkpoint_ns"]:
            await self._store_writes(config, writes, task_id, task_path)
            return
        held.writes.append((config, writes, task_id, task_path))
        if any(channel in WRITES_IDX_MAP for channel, _ in writes):
            await self._release(held)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint of `config`, or the newest of its thread."""
        held, place = _held(config), config["configurable"]
        if held is None or place.get("checkpoint_id"):
            return await self._load(config)
        if place.get("checkpoint_ns"):
            # A subgraph has stored nothing yet where its task's checkpoint is held back.
            return None if held.newest else await self._load(config)
        await self._release(held)
        found, held.read = held.read or await self._load(config), None
        if found is not None:
            held.read = found._replace(
                checkpoint=copy_checkpoint(found.checkpoint), metadata={**found.metadata}
            )
        return found

    async def _release(self, held: HeldCheckpoints) -> None:
        """Store what is held back."""
        put, writes = held.newest, held.writes
        held.newest, held.writes = None, []
        if put is not None:
            await self._store(put)
            held.stored = put.checkpoint["channel_values"]
        for each in writes:
            await self._store_writes(*each)

    async def _store(self, put: Put) -> RunnableConfig:
        raise NotImplementedError

    async def _store_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> None:
        raise NotImplementedError

    async def _load(self, config: RunnableConfig) -> CheckpointTuple | None:
        raise NotImplementedError


def stored_values(config: RunnableConfig) -> Mapping[str, Any] | None:
    """The values in the newest checkpoint that the run stored; None where it does not know."""
    held = _held(config)
    return None if held is None else held.stored


def _held(config: RunnableConfig) -> HeldCheckpoints | None:
    found = config["configurable"].get(HELD)
    return found if isinstance(found, HeldCheckpoints) else None
