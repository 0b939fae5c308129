"""The writes of an import: the store's records and the facts, as the lines of the file say."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from langgraph.store.base import PutOp

from memory import journal
from memory.exporting import Source
from memory.importing import BATCH, batches
from memory.records import Fact
from memory.scope import Scope
from memory.semantic import SemanticMemory
from memory.store_access import write_batch
from memory.transfer import EndLine, FactLine, ItemLine, numbered, record_of, renamed
from memory.vectorstore.payload import metadata_of, scope_filters


async def write(
    lines: Iterable[str],
    target: Source,
    ids: Mapping[str, str],
    *,
    on_batch: Callable[[int], object] = lambda written: None,
) -> None:
    """Write all but the state. `ids`: facts that get another id; `on_batch` is told how many lines
    are written. The same lines twice are the same as once.
    """
    written = 0
    rest = (pair for at, pair in enumerate(numbered(lines)) if at)
    for batch in batches(rest, BATCH):
        records = [record_of(line, number) for number, line in batch]
        items = [one for one in records if isinstance(one, ItemLine)]
        facts = [one.fact for one in records if isinstance(one, FactLine)]
        if items:
            puts = [put for one in items for put in _puts(target.scope, one, ids)]
            await write_batch(target.store, puts)
        if facts:
            moved = [cast(Fact, renamed(fact, ids)) for fact in facts]
            await target.semantic.run(_insert, target.semantic, target.scope, moved)
        written += sum(not isinstance(one, EndLine) for one in records)
        on_batch(written)


def _puts(scope: Scope, line: ItemLine, ids: Mapping[str, str]) -> list[PutOp]:
    value, key = (
        (renamed(line.value, ids), ids.get(line.key, line.key)) if ids else (line.value, line.key)
    )
    puts = [PutOp(scope.namespace(*line.namespace), key, value, index=False)]
    if line.namespace[0] == "journal":
        puts.append(journal.unindexed(scope, cast(Any, value)))
    return puts


def _insert(semantic: SemanticMemory, scope: Scope, facts: Sequence[Fact]) -> None:
    """Write facts under their ids, without vectors; those that stand are passed over."""
    table = semantic.open_table()
    with table.transaction():
        standing = {row.id for row in table.select({"id": [fact["id"] for fact in facts]})}
        for fact in facts:
            if fact["id"] not in standing:
                table.insert(fact["id"], None, _payload(scope, fact))
                _touch(semantic, fact["id"], fact.get("access_count", 0), fact.get("last_access"))


def _payload(scope: Scope, fact: Fact) -> dict[str, Any]:
    """As Mem0 would have written it."""
    return {
        **scope_filters(scope),
        **metadata_of(fact),
        "kind": "fact",
        "data": fact["text"],
        "hash": hashlib.md5(fact["text"].encode(), usedforsecurity=False).hexdigest(),
        "role": "user",
        "updated_at": fact["created"],
    }


def _touch(semantic: SemanticMemory, row: str, times: int, last: str | None) -> None:
    for _ in range(times if last is not None else 0):
        semantic.open_table().touch([row], datetime.fromisoformat(str(last)))
