"""How checkpoints are written: as LangGraph does, but each message once, and read once.

A run reads the whole history and stores it after every tick, and nearly all of it is as it was. So
a checkpoint refers to the history in chunks: a chunk is stored once, under the hash of its content,
for all checkpoints that contain it.
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
from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

T = TypeVar("T")

THREADS = 128
"""Threads whose messages stay in memory after they were read: a tick of another takes 1.3 times as
long at tick 20, as its history is read, counted and converted anew."""

CHUNK = 32
"""Messages in a chunk. Those behind the last whole chunk stand in the checkpoint itself."""

CHUNKED = "msgpack+chunks"
"""The type of a checkpoint that refers to chunks: a reader without them fails at once."""

_IDS = "circadian_chunks"
"""Key in such a checkpoint, as written: the ids of the chunks before its messages."""


ReadChunks = Callable[[Sequence[str]], Mapping[str, bytes]]


def _no_chunks(_: Sequence[str]) -> Mapping[str, bytes]:
    return {}


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
    """Those behind the chunks, by what is on disk."""


class MessageSerializer(JsonPlusSerializer):
    """LangGraph's serializer, strict, with a memory for messages.

    A message is never changed in place: nodes return changed copies.
    """

    def __init__(self, chunks: ReadChunks = _no_chunks) -> None:
        """`chunks`: reads chunks by their ids, where checkpoints are cut."""
        # None: load only types that LangGraph considers safe, whatever the environment says.
        super().__init__(allowed_msgpack_modules=None)
        self._chunks = chunks
        self._written: dict[int, tuple[weakref.ref[BaseMessage], str | None, ormsgpack.Ext]] = {}
        """What messages are on disk, by identity, while they are in use."""
        self._cut: OrderedDict[str, dict[int, Chunk]] = OrderedDict()
        """The chunks of threads by the identity of their first message, the newest at the end."""
        self._read: OrderedDict[str, _Known] = OrderedDict()
        """What was read of threads, the one read last at the end."""
        self._reading: tuple[_Known, _Known] | None = None
        """In `reading`: what was known before, and what is found."""

    @contextmanager
    def reading(self, thread: str) -> Iterator[None]:
        """Read a thread's newest checkpoint: of its messages only new ones are made anew."""
        found = _Known({}, {})
        self._reading = self._read.pop(thread, _Known({}, {})), found
        try:
            yield
        finally:
            self._reading = None
        _keep(self._read, thread, found)

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
        _keep(self._cut, thread, {id(one.messages[0]): one for one in chunks})
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


def _keep(memory: OrderedDict[str, T], thread: str, value: T) -> None:
    """Put `value` at the end, and let go what was used longest ago."""
    memory[thread] = value
    if len(memory) > THREADS:
        memory.popitem(last=False)


def _is_history(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, BaseMessage) for one in value)
