"""What a forget changes in the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from langgraph.store.base import BaseStore, Item, PutOp

from memory import night
from memory.forgetting.nights import plans_after
from memory.forgetting.open_forget import FORGETTING
from memory.forgetting.rows import Context, Value, row_after
from memory.records import NightRecord
from memory.scope import Scope
from memory.store_walk import Shelf, shelves


class StoreChanges(NamedTuple):
    """The writes, for one transaction, and what they come to."""

    puts: list[PutOp]
    removed: Counter[str]
    """Records that go, by kind: the first label of their namespace."""
    rewritten: Counter[str]


async def store_changes(
    store: BaseStore, scope: Scope, context: Context, kinds: frozenset[str] | None = None
) -> StoreChanges:
    """All changes of the agent's records, or of those of some `kinds`.

    A record that stays as it is is not written.
    """
    changes = StoreChanges([], Counter(), Counter())
    # In order of their labels: the plans of nights come before the nights themselves.
    async for shelf in shelves(store, scope):
        kind = shelf.labels[0] if shelf.labels else ""
        if kind == FORGETTING or (kinds is not None and kind not in kinds):
            continue
        for item, value in zip(
            shelf.items, await _after(store, scope, shelf, context), strict=True
        ):
            if value == item.value:
                continue
            changes.puts.append(PutOp(shelf.namespace, item.key, value))
            (changes.removed if value is None else changes.rewritten)[kind] += 1
    return changes


async def _after(
    store: BaseStore, scope: Scope, shelf: Shelf, context: Context
) -> Sequence[Value | None]:
    """The shelf's values as they stay, in order."""
    kind = shelf.labels[0] if shelf.labels else ""
    if any(map(context.erasure.names.within, shelf.labels)):
        return [None] * len(shelf.items)
    if kind == "night" and len(shelf.labels) == 2:
        record = await night.load(store, scope, shelf.labels[1])
        return _plans(shelf.items, record, shelf.labels[1], context)
    return [row_after(kind, item.key, item.value, context) for item in shelf.items]


def _plans(
    items: Sequence[Item], record: NightRecord | None, night_id: str, context: Context
) -> list[Value | None]:
    """The plans of one night; where one changes, the night is no longer what it was."""
    before = [cast(Any, item.value) for item in items]
    after = plans_after(before, record, context.erasure, context.gone)
    if after != before:
        context.nights.add(night_id)
    return [cast(Value | None, one) for one in after]
