"""How checkpoints are written: as LangGraph does, but each message once, and read once.

A run reads the whole history and stores it several times, and nearly all of it is as it was. What
stands on disk is the same as with LangGraph's serializer.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

THREADS = 16
"""Threads whose messages stay in memory after they were read."""

Known = dict[tuple[int, bytes], BaseMessage]


class MessageSerializer(JsonPlusSerializer):
    """LangGraph's serializer, strict, with a memory for messages.

    A message is never changed in place: nodes return changed copies.
    """

    def __init__(self) -> None:
        # None: load only types that LangGraph considers safe, whatever the environment says.
        super().__init__(allowed_msgpack_modules=None)
        self._written: dict[int, tuple[weakref.ref[BaseMessage], str | None, ormsgpack.Ext]] = {}
        """What messages are on disk, by identity, while they are in use."""
        self._read: OrderedDict[str, Known] = OrderedDict()
        """The messages of threads, the one read last at the end."""
        self._reading: tuple[Known, Known] | None = None
        """In `reading`: the messages known before, and those found."""

    @contextmanager
    def reading(self, thread: str) -> Iterator[None]:
        """Read a thread's newest checkpoint: of its messages only new ones are made anew."""
        found: Known = {}
        self._reading = self._read.pop(thread, {}), found
        try:
            yield
        finally:
            self._reading = None
        self._read[thread] = found
        if len(self._read) > THREADS:
            self._read.popitem(last=False)

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
        """As LangGraph's."""
        kind, packed = data
        if kind != "msgpack" or self._reading is None:
            return super().loads_typed(data)
        return ormsgpack.unpackb(packed, ext_hook=self._unpacked, option=ormsgpack.OPT_NON_STR_KEYS)

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
        known, found = self._reading
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


def _is_history(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, BaseMessage) for one in value)
