"""Which checkpoints of a thread are not needed; one rule for all savers.

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


class Root(NamedTuple):
    """A checkpoint of the root graph, as far as retention needs it."""

    id: str
    """Ordered by time (uuid6)."""
    source: str | None
    """input | loop | update | fork."""
    run_id: str | None
    """Set on a server only."""


class Retention(NamedTuple):
    """Checkpoints to delete once the newest root checkpoint is stored. Bounds are exclusive."""

    roots_before: str
    """Root checkpoints before this id go, except the next two fields."""
    last_step: str
    """The newest that is no edit by hand: a pending question in it can still be answered."""
    restore: str | None
    """The state before the newest run, the target of a rollback; None if there is none."""
    subgraphs_before: str | None
    """Subgraph checkpoints before this id go, except those of `restore`; None: all stay."""
    run_start: str
    """Subgraph checkpoints between `restore` and this id stay: unfinished work of `restore`."""


def retention(roots: Sequence[Root], keep: int) -> Retention:
    """Decide what to delete. `roots`: all checkpoints of a thread's root graph, newest first.

    A checkpoint of source "loop" exists only after the previous tasks finished, and one of source
    "input" abandons them: in both cases their subgraphs are never resumed. An edit by hand
    ("update", "fork") says nothing about them.
    """
    newest = roots[0]
    step = next((root for root in roots if root.source in ("loop", "input")), newest)
    start = next(i for i in range(len(roots)) if _starts_run(roots, i))
    return Retention(
        roots_before=roots[min(keep, len(roots)) - 1].id,
        last_step=step.id,
        restore=roots[start + 1].id if start + 1 < len(roots) else None,
        subgraphs_before=newest.id if newest is step else None,
        run_start=roots[start].id,
    )


def _starts_run(roots: Sequence[Root], index: int) -> bool:
    if index + 1 == len(roots) or roots[index].source == "input":
        return True
    return roots[index].run_id != roots[index + 1].run_id


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
        self.begun = True
        """Whether subgraphs may have stored something since the newest checkpoint."""

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
            return await super().aput(*put)
        place = config["configurable"]
        if place["checkpoint_ns"]:
            # A subgraph stores a step: it is a night, or its tick does not end.
            await self._release(held)
            held.begun = True
            return await super().aput(*put)
        put = held.following(put)
        if held.waits(checkpoint["channel_values"]):
            held.newest = put
            names = {"thread_id": place["thread_id"], "checkpoint_ns": ""}
            return {"configurable": {**names, "checkpoint_id": checkpoint["id"]}}
        held.begun = False
        stored = await super().aput(*put)
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
            await super().aput_writes(config, writes, task_id, task_path)
            return
        held.writes.append((config, writes, task_id, task_path))
        if any(channel in WRITES_IDX_MAP for channel, _ in writes):
            await self._release(held)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint of `config`, or the newest of its thread."""
        held, place = _held(config), config["configurable"]
        if held is None or place.get("checkpoint_id"):
            return await super().aget_tuple(config)
        if place.get("checkpoint_ns"):
            # A task's subgraph has stored nothing where the task is new, or not stored itself.
            new = not held.begun and ":" in place["checkpoint_ns"]
            return None if new or held.newest else await super().aget_tuple(config)
        await self._release(held)
        found, held.read = held.read or await super().aget_tuple(config), None
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
            await super().aput(*put)
            held.stored = put.checkpoint["channel_values"]
        for each in writes:
            await super().aput_writes(*each)


def stored_values(config: RunnableConfig) -> Mapping[str, Any] | None:
    """The values in the newest checkpoint that the run stored; None where it does not know."""
    held = _held(config)
    return None if held is None else held.stored


def _held(config: RunnableConfig) -> HeldCheckpoints | None:
    found = config["configurable"].get(HELD)
    return found if isinstance(found, HeldCheckpoints) else None
