"""Writing an exported memory into an empty agent: checked as a whole, then written in batches.

Store namespace (below `(user, thread)`): `importing` "file" -> Importing. Broken off, the same file
goes on from there: what stands already is written again, or passed over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar, cast
from uuid import uuid5

from langgraph.store.base import BaseStore, PutOp
from typing_extensions import TypedDict

from memory.errors import InputError
from memory.scope import AGENTS, Scope
from memory.semantic import SemanticMemory
from memory.store_access import write_batch
from memory.store_walk import namespaces
from memory.transfer import (
    EndLine,
    FactLine,
    Header,
    ItemLine,
    Record,
    StateLine,
    header_of,
    numbered,
    record_of,
)
from memory.vectorstore.payload import scope_filters

IMPORTING, FILE = "importing", "file"
BATCH = 500
"""Records written in one transaction."""

T = TypeVar("T")


class Importing(TypedDict):
    """Which file is being taken in, or was."""

    digest: str
    """sha256 of its lines."""
    done: bool


class Checked(NamedTuple):
    """A file of which every line was read, and none is wrong."""

    header: Header
    digest: str
    counts: dict[str, int]
    """Records by kind."""
    facts: list[str]
    """Ids."""
    state: dict[str, Any]
    """The state's values as they stand in their line; {} where there is none."""


def check(lines: Iterable[str]) -> Checked:
    """Read every line, and write nothing.

    Raises:
        InputError: the first line that is wrong, with its number; or the file is cut.
    """
    digest, counts = hashlib.sha256(), dict[str, int]()
    facts: dict[str, None] = {}
    header: Header | None = None
    state: dict[str, Any] = {}
    end: EndLine | None = None
    for number, line in numbered(lines):
        digest.update(line.strip().encode(errors="replace") + b"\n")
        if header is None:
            header = header_of(line)
            continue
        if end is not None:
            raise InputError(f"line {number}: it stands behind the last line")
        record = record_of(line, number)
        if isinstance(record, EndLine):
            end = record
            continue
        _once(record, number, state, facts)
        state = record.values if isinstance(record, StateLine) else state
        kind = _kind(record)
        counts[kind] = counts.get(kind, 0) + 1
    if header is None:
        raise InputError("line 1: the file is empty")
    if end is None or end.lines != sum(counts.values()):
        raise InputError("the file is cut: its last line is missing, or lines before it are")
    return Checked(header, digest.hexdigest(), counts, list(facts), state)


async def standing(store: BaseStore, scope: Scope) -> Importing | None:
    """The import that was begun here, if any."""
    item = await store.aget(scope.namespace(IMPORTING), FILE)
    return cast(Importing, item.value) if item else None


async def is_empty(store: BaseStore, semantic: SemanticMemory, scope: Scope) -> bool:
    """Whether the agent has no record and no fact."""
    if await namespaces(store, scope):
        return False
    return await semantic.count(scope) == 0


async def mark(store: BaseStore, scope: Scope, digest: str, *, done: bool) -> None:
    """Remember the file."""
    value: Importing = {"digest": digest, "done": done}
    await write_batch(
        store, [PutOp(scope.namespace(IMPORTING), FILE, cast(dict[str, Any], dict(value)))]
    )


async def other_ids(semantic: SemanticMemory, scope: Scope, facts: Sequence[str]) -> dict[str, str]:
    """New ids for the facts whose ids another agent of this home has, as after a copy of it."""
    found: dict[str, str] = {}
    for some in batches(facts, BATCH):
        taken = await semantic.run(_taken, semantic, scope, some)
        found |= {one: str(uuid5(AGENTS, "\n".join((*scope, one)))) for one in taken}
    return found


def batches(some: Iterable[T], size: int) -> Iterator[list[T]]:
    """`some` in lists of `size`, the last one shorter."""
    rest = iter(some)
    while batch := list(islice(rest, size)):
        yield batch


def _taken(semantic: SemanticMemory, scope: Scope, ids: Sequence[str]) -> list[str]:
    mine = scope_filters(scope)
    rows = semantic.open_table().select({"id": list(ids)})
    return [row.id for row in rows if not mine.items() <= row.payload.items()]


def _kind(record: Record) -> str:
    return record.namespace[0] if isinstance(record, ItemLine) else record.type


def _once(record: Record, number: int, state: Mapping[str, Any], facts: dict[str, None]) -> None:
    """Raise InputError for a second state, or a fact that was there before."""
    if isinstance(record, StateLine) and state:
        raise InputError(f"line {number}: a second state")
    if isinstance(record, FactLine):
        id_ = record.fact["id"]
        if id_ in facts:
            raise InputError(f"line {number}: the fact {id_} stands in an earlier line")
        facts[id_] = None
