"""A whole memory as JSON Lines, read also while its agent runs; one namespace at a time.

The first line is the header; then one line per record: the state, the store's records, the facts;
the last line proves that the file is complete. Vectors and index rows are not exported, because an
import makes them again. Mem0's history of changes is not exported.

A tick that runs meanwhile is in the export as a whole or not at all: the inbox is read before the
state, and an event that the state does not contain yet stays in the inbox. The journal is read
before the facts made from it. An event handled twice because of this is still one entry.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import messages_to_dict
from langgraph.store.base import BaseStore, Item

from memory.errors import InputError
from memory.events import approvals, inbox
from memory.facts import SemanticMemory
from memory.forgetting import unfinished
from memory.records import Scope
from memory.state import at_rest
from memory.storage import count_items, list_items, namespaces, shelves

FORMAT, VERSION = "circadian-memory", 1

NOT_MOVED = frozenset(
    (
        *("unindexed", "indexing", "speakers", "forgetting", "importing"),
        *("tick_reports", "tick_prompts", "agent"),
    )
)
"""Kinds of records that an import makes again, or that concern one installation."""

ASKED_AGAIN = approvals.ANSWERS
"""Not exported, and an import leaves it out: nobody approves a dangerous call by a file."""


class AgentMemory(NamedTuple):
    """Where a memory is read from."""

    store: BaseStore
    semantic: SemanticMemory
    scope: Scope


class Taken(NamedTuple):
    """The waiting events, and the state, which is read after them."""

    waiting: list[Item]
    aside: list[Item]
    values: dict[str, Any]


async def waiting_in(source: AgentMemory) -> tuple[list[Item], list[Item]]:
    """Events that wait or are set aside, to be read before the state. Raises InputError."""
    store, scope = source.store, source.scope
    if left := await unfinished(store, scope):
        raise InputError(left)
    waiting = await list_items(store, scope.namespace(inbox.INBOX))
    return waiting, await list_items(store, scope.namespace(inbox.SET_ASIDE))


async def header(
    source: AgentMemory, *, agent: str, embedder: str | None, at: str
) -> dict[str, Any]:
    """The first line."""
    counts: dict[str, int] = {"facts": await source.semantic.count(source.scope)}
    for namespace in await namespaces(source.store, source.scope):
        kind = namespace[2] if len(namespace) > 2 else ""
        if kind and kind not in (*NOT_MOVED, ASKED_AGAIN):
            prefix = source.scope.namespace(kind)
            counts[kind] = await count_items(source.store, prefix)
    return {
        "format": FORMAT,
        "version": VERSION,
        "agent": agent,
        "exported_at": at,
        "embedder": embedder,
        "counts": counts,
    }


async def records(source: AgentMemory, taken: Taken) -> AsyncIterator[dict[str, Any]]:
    """All lines after the header."""
    number = 0
    async for record in _records(source, taken):
        number += 1
        yield record
    yield {"type": "end", "lines": number}


def line_of(record: Mapping[str, Any]) -> str:
    """Serialise a record to its line, without the line break; deterministic."""
    return json.dumps(record, ensure_ascii=False, sort_keys=True, allow_nan=False)


async def _records(source: AgentMemory, taken: Taken) -> AsyncIterator[dict[str, Any]]:
    values = at_rest(taken.values)
    if values:
        messages, marks = messages_to_dict(values.get("messages", [])), values.get("handled", [])
        done = await inbox.already_handled(source.store, source.scope, [m["id"] for m in marks])
        left = [mark for mark in marks if mark["id"] not in done]
        yield {"type": "state", "values": {**values, "messages": messages, "handled": left}}
    aside = {item.key for item in taken.aside}
    done = await _contained(source, values, [item.key for item in taken.waiting])
    for item in taken.waiting:
        if item.key not in aside | done:
            yield _item(("inbox",), item)
    for item in taken.aside:
        yield _item(("set_aside",), item)
    tick = int(values.get("tick", 0))
    async for shelf in shelves(source.store, source.scope):
        kind = shelf.labels[0] if shelf.labels else ""
        if kind in (*NOT_MOVED, ASKED_AGAIN, inbox.INBOX, inbox.SET_ASIDE):
            continue
        for item in shelf.items:
            # A tick that the state does not contain has handled nothing.
            if kind != inbox.HANDLED or item.value["tick"] <= tick:
                yield _item(shelf.labels, item)
    for fact in await source.semantic.all(source.scope):
        yield {"type": "fact", "fact": fact}


async def _contained(
    source: AgentMemory, values: Mapping[str, Any], ids: Sequence[str]
) -> set[str]:
    marks = {mark["id"] for mark in values.get("handled", [])}
    namespace, tick = source.scope.namespace(inbox.HANDLED), int(values.get("tick", 0))
    for id_ in ids:
        item = await source.store.aget(namespace, id_)
        if item is not None and item.value["tick"] <= tick:
            marks.add(id_)
    return marks


def _item(labels: Sequence[str], item: Item) -> dict[str, Any]:
    return {"type": "item", "namespace": list(labels), "key": item.key, "value": item.value}
