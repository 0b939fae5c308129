"""Writing an exported memory into an empty agent: checked as a whole, then written in batches.

Store namespace (below `(user, thread)`): `importing` "file" -> Importing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

from langchain_core.utils.iter import batch_iterate
from langgraph.store.base import BaseStore, PutOp
from typing_extensions import TypedDict

from memory import journal
from memory.errors import InputError
from memory.facts import SemanticMemory, metadata_of, scope_filters
from memory.records import Fact, Scope
from memory.storage import namespaces, write_batch
from memory.transfer.exporting import AgentMemory
from memory.transfer.format import (
    ASKED_AGAIN,
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

IMPORTING, FILE = "importing", "file"

BATCH = 500
"""Records written in one transaction."""

BROKEN_OFF = (
    "an import into this agent was interrupted, and it holds only a part of the file: import the "
    "same file again (`circadian import FILE`), which finishes it"
)

NOT_EMPTY = "the agent is not empty: import into another one (--agent NAME), which is made by it"


class Importing(TypedDict):
    """The file that is being imported, or was."""

    digest: str
    """sha256 of its lines."""
    done: bool


class Checked(NamedTuple):
    """A file in which every line was read and none is wrong."""

    header: Header
    digest: str
    counts: dict[str, int]
    """Records by kind."""
    facts: list[str]
    """Ids."""
    state: dict[str, Any]
    """The state's values as they are in its line; {} without such a line."""


def check(lines: Iterable[str]) -> Checked:
    """Read every line, and write nothing."""
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
            raise InputError(f"line {number}: it follows the last line")
        record = record_of(line, number)
        if isinstance(record, EndLine):
            end = record
            continue
        _note_once(record, number, state, facts)
        state = record.values if isinstance(record, StateLine) else state
        kind = record.namespace[0] if isinstance(record, ItemLine) else record.type
        counts[kind] = counts.get(kind, 0) + 1
    if header is None:
        raise InputError("line 1: the file is empty")
    if end is None or end.lines != sum(counts.values()):
        raise InputError("the file is cut: its last line is missing, or lines before it are")
    return Checked(header, digest.hexdigest(), counts, list(facts), state)


async def begun(store: BaseStore, scope: Scope, digest: str) -> bool | None:
    """Whether this file was imported here: None if not, False if that was broken off.

    Raises InputError: the import of another file was broken off.
    """
    item = await store.aget(scope.namespace(IMPORTING), FILE)
    same = item is not None and item.value["digest"] == digest
    if item is not None and not item.value["done"] and not same:
        raise InputError(BROKEN_OFF)
    return bool(item.value["done"]) if item is not None and same else None


async def check_whole(store: BaseStore, scope: Scope) -> None:
    """Raise InputError for an agent with a part of an import."""
    if left := await unfinished(store, scope):
        raise InputError(left)


async def unfinished(store: BaseStore, scope: Scope) -> str | None:
    """How to finish an interrupted import; None if there is none."""
    item = await store.aget(scope.namespace(IMPORTING), FILE)
    return None if item is None or item.value["done"] else BROKEN_OFF


async def check_target(
    store: BaseStore, semantic: SemanticMemory, scope: Scope, facts: Sequence[str]
) -> None:
    """Raise InputError if the agent is not empty, or another agent here has one of the facts."""
    if await namespaces(store, scope) or await semantic.count(scope):
        raise InputError(NOT_EMPTY)
    for some in batch_iterate(BATCH, facts):
        if await semantic.run(lambda ids: semantic.open_table().select({"id": ids}), some):
            raise InputError(
                "another agent in this data folder or database has the same facts: import the "
                "file into another data folder (--data DIR)"
            )


async def mark(store: BaseStore, scope: Scope, digest: str, *, done: bool) -> None:
    """Record which file is being imported, or was."""
    value: Importing = {"digest": digest, "done": done}
    put = PutOp(scope.namespace(IMPORTING), FILE, cast(dict[str, Any], dict(value)))
    await write_batch(store, [put])


async def write(
    lines: Iterable[str],
    target: AgentMemory,
    *,
    on_batch: Callable[[int], object] = lambda written: None,
) -> None:
    """Write all records but the state, as far as they are not there; tell `on_batch` how many."""
    written = 0
    rest = (pair for at, pair in enumerate(numbered(lines)) if at)
    for batch in batch_iterate(BATCH, rest):
        records = [record_of(line, number) for number, line in batch]
        puts = [p for one in records if isinstance(one, ItemLine) for p in _puts(target.scope, one)]
        facts = [one.fact for one in records if isinstance(one, FactLine)]
        if puts:
            await write_batch(target.store, puts)
        if facts:
            standing = await target.semantic.by_id(target.scope, [one["id"] for one in facts])
            new = [one for one in facts if one["id"] not in standing]
            await target.semantic.run(_insert, target.semantic, target.scope, new)
        written += sum(not isinstance(one, EndLine) for one in records)
        on_batch(written)


def _note_once(
    record: Record, number: int, state: Mapping[str, Any], facts: dict[str, None]
) -> None:
    """Note a fact's id; raise InputError for a second state or a repeated fact."""
    if isinstance(record, StateLine) and state:
        raise InputError(f"line {number}: a second state")
    if isinstance(record, FactLine):
        id_ = record.fact["id"]
        if id_ in facts:
            raise InputError(f"line {number}: the fact {id_} is in an earlier line, too")
        facts[id_] = None


def _puts(scope: Scope, line: ItemLine) -> list[PutOp]:
    if line.namespace[0] == ASKED_AGAIN:
        return []
    puts = [PutOp(scope.namespace(*line.namespace), line.key, line.value, index=False)]
    if line.namespace[0] == "journal":
        puts.append(journal.unindexed(scope, cast(Any, line.value)))
    return puts


def _insert(semantic: SemanticMemory, scope: Scope, facts: Sequence[Fact]) -> None:
    table = semantic.open_table()
    with table.transaction():
        for fact in facts:
            table.insert(fact["id"], None, _payload(scope, fact))
            if (last := fact.get("last_access")) is not None:
                for _ in range(fact.get("access_count", 0)):
                    table.touch([fact["id"]], datetime.fromisoformat(last))


def _payload(scope: Scope, fact: Fact) -> dict[str, Any]:
    return {
        **scope_filters(scope),
        **metadata_of(fact),
        "kind": "fact",
        "data": fact["text"],
        "hash": hashlib.md5(fact["text"].encode(), usedforsecurity=False).hexdigest(),
        "role": "user",
        "updated_at": fact["created"],
    }
