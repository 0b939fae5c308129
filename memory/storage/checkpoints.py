"""Checkpoints, for all savers: which of a thread are kept, and how they are written.

LangGraph stores every step. Of a tick only the end is worth storing: until then its event is in
the inbox, and a tick that a crash interrupted starts again.

A run reads the whole history and stores it after every tick, and nearly all of it is as it was. So
a checkpoint refers to chunks, each stored once, under the hash of its content.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from operator import is_
from typing import Any, NamedTuple, TypeVar

import ormsgpack
from langchain_core.messages import BaseMessage
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
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

T = TypeVar("T")

# Which checkpoints are kept.


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
    """Root checkpoints before this id are deleted, except `last_step` and `restore`."""
    last_step: str
    """The newest checkpoint that is no edit by hand: its pending question can be answered."""
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
        self.subgraphs_stored = True
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
            held.subgraphs_stored = True
            return await super().aput(*put)
        put = held.following(put)
        if held.waits(checkpoint["channel_values"]):
            held.newest = put
            names = {"thread_id": place["thread_id"], "checkpoint_ns": ""}
            return {"configurable": {**names, "checkpoint_id": checkpoint["id"]}}
        held.subgraphs_stored = False
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
        """Store a task's writes, all or none, or hold them back, but for errors and interrupts."""
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
            # The subgraph of a new task, or of a parent that is held back, has stored nothing yet.
            new = not held.subgraphs_stored and ":" in place["checkpoint_ns"]
            return None if new or held.newest else await super().aget_tuple(config)
        await self._release(held)
        found, held.read = held.read or await super().aget_tuple(config), None
        if found is not None:
            held.read = found._replace(
                checkpoint=copy_checkpoint(found.checkpoint), metadata={**found.metadata}
            )
        return found

    async def _release(self, held: HeldCheckpoints) -> None:
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


# How they are written.

THREADS = 128
"""Threads whose messages stay in memory. Beyond that number, the thread used longest ago is dropped
and read again: its tick 20 takes 1.3 times as long."""

CHUNK = 32
"""Messages in a chunk. Those behind the last whole chunk stand in the checkpoint itself."""

CHUNKED = "msgpack+chunks"
"""The type of a checkpoint that refers to chunks: a reader without them fails at once."""

_IDS = "circadian_chunks"
"""Key in such a checkpoint, as written: the ids of the chunks before its messages."""


ReadChunks = Callable[[Sequence[str]], Mapping[str, bytes]]


class Chunk(NamedTuple):
    """Messages that are stored together."""

    id: str
    """The hash of what is on disk."""
    messages: Sequence[BaseMessage]


class _Known(NamedTuple):
    """What was read of a thread."""

    chunks: dict[str, Sequence[BaseMessage]]
    """By id."""
    messages: dict[tuple[int, bytes], BaseMessage]
    """The messages behind the chunks, by what is on disk."""


class MessageSerializer(JsonPlusSerializer):
    """LangGraph's serializer, strict. It remembers messages by identity: they never change."""

    def __init__(self, chunks: ReadChunks = lambda _: {}) -> None:
        """`chunks`: reads chunks by their ids, where checkpoints are cut."""
        # None: load only types that LangGraph considers safe, whatever the environment says.
        super().__init__(allowed_msgpack_modules=None)
        self._chunks = chunks
        self._written: dict[int, tuple[weakref.ref[BaseMessage], str | None, ormsgpack.Ext]] = {}
        """What messages are on disk, by identity, while they are in use."""
        self._cut: OrderedDict[str, dict[int, Chunk]] = OrderedDict()
        """The chunks of threads by the identity of their first message, the newest at the end."""
        self._read: OrderedDict[str, _Known] = OrderedDict()
        """What was read of threads; the thread read last is at the end."""
        self._reading: tuple[_Known, _Known] | None = None
        """Within `reading`: what was known before it, and what it finds. One at a time: its
        callers hold a lock, or await nothing within."""

    @contextmanager
    def reading(self, thread: str) -> Iterator[None]:
        """Read a thread's newest checkpoint: of its messages only new ones are made anew."""
        found = _Known({}, {})
        self._reading = self._read.pop(thread, _Known({}, {})), found
        try:
            yield
        finally:
            self._reading = None
        _remember_thread(self._read, thread, found)

    def cut(self, thread: str, checkpoint: Checkpoint) -> tuple[Checkpoint, list[Chunk]]:
        """The checkpoint as `dumps_chunked` takes it, and the chunks that it refers to."""
        messages: Any = checkpoint["channel_values"].get("messages")
        if not _is_history(messages):
            return checkpoint, []
        known = self._cut.pop(thread, {})
        chunks = [
            self._chunk(messages[at : at + CHUNK], known)
            for at in range(0, len(messages) - CHUNK + 1, CHUNK)
        ]
        _remember_thread(self._cut, thread, {id(one.messages[0]): one for one in chunks})
        values = {**checkpoint["channel_values"], "messages": messages[len(chunks) * CHUNK :]}
        return {**checkpoint, "channel_values": values}, chunks

    def dumps_chunked(
        self, checkpoint: Mapping[str, Any], chunks: Sequence[Chunk]
    ) -> tuple[str, bytes]:
        """A checkpoint without the messages in `chunks`, and with their ids."""
        if not chunks:
            return self.dumps_typed(checkpoint)
        _, packed = self.dumps_typed({**checkpoint, _IDS: [one.id for one in chunks]})
        return CHUNKED, packed

    def packed(self, messages: Sequence[BaseMessage]) -> bytes:
        """A chunk as it is on disk."""
        return ormsgpack.packb([self._packed(one) for one in messages])

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """As LangGraph's; `obj`: a checkpoint, or what a task wrote to one channel."""
        if isinstance(obj, dict) and _is_history(obj.get("channel_values", {}).get("messages")):
            values = obj["channel_values"]
            messages = [self._packed(one) for one in values["messages"]]
            obj = {**obj, "channel_values": {**values, "messages": messages}}
        elif _is_history(obj):
            obj = [self._packed(one) for one in obj]
        return super().dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """As LangGraph's, with the messages of chunks in their places."""
        kind, packed = data
        if kind not in ("msgpack", CHUNKED):
            return super().loads_typed(data)
        value = self._loaded(packed)
        if kind == CHUNKED:
            values = value["channel_values"]
            values["messages"] = [*self._messages_in(value.pop(_IDS)), *values["messages"]]
        return value

    def _loaded(self, packed: bytes) -> Any:
        if self._reading is None:
            return super().loads_typed(("msgpack", packed))
        return ormsgpack.unpackb(packed, ext_hook=self._unpacked, option=ormsgpack.OPT_NON_STR_KEYS)

    def _chunk(self, messages: Sequence[BaseMessage], known: Mapping[int, Chunk]) -> Chunk:
        there = known.get(id(messages[0]))
        if there is not None and all(map(is_, there.messages, messages)):
            return there
        return Chunk(blake2b(self.packed(messages), digest_size=16).hexdigest(), messages)

    def _messages_in(self, ids: Sequence[str]) -> Iterator[BaseMessage]:
        known, found = self._reading or (_Known({}, {}), _Known({}, {}))
        packed = self._chunks([id_ for id_ in ids if id_ not in known.chunks])
        for id_ in ids:
            found.chunks[id_] = known.chunks.get(id_) or self._loaded(packed[id_])
            yield from found.chunks[id_]

    def _packed(self, message: BaseMessage) -> ormsgpack.Ext:
        known = self._written.get(id(message))
        # A message without an id is given one in place.
        if known is not None and known[0]() is message and known[1] == message.id:
            return known[2]
        _, packed = super().dumps_typed(message)
        made: ormsgpack.Ext = ormsgpack.unpackb(packed, ext_hook=ormsgpack.Ext)
        self._remember(message, made)
        return made

    def _unpacked(self, code: int, data: bytes) -> Any:
        assert self._reading is not None
        known, found = (one.messages for one in self._reading)
        value = known.get((code, data))
        if value is None:
            packed = ormsgpack.Ext(code, data)
            value = super().loads_typed(("msgpack", ormsgpack.packb(packed)))
            if not isinstance(value, BaseMessage):
                return value
            self._remember(value, packed)
        found[code, data] = value
        return value

    def _remember(self, message: BaseMessage, packed: ormsgpack.Ext) -> None:
        key, written = id(message), self._written
        gone = weakref.ref(message, lambda _: written.pop(key, None))
        written[key] = gone, message.id, packed


def _remember_thread(memory: OrderedDict[str, T], thread: str, value: T) -> None:
    """Put `value` at the end, and let go what was used longest ago."""
    memory[thread] = value
    if len(memory) > THREADS:
        memory.popitem(last=False)


def _is_history(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, BaseMessage) for one in value)
