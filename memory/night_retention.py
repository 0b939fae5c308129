"""How long a night can be taken back: old ones keep what they did, not what it was done to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from langgraph.store.base import BaseStore

from memory.night import plan_put, plans_of, record_put, records
from memory.records import NightRecord, Operation, PlanRecord
from memory.scope import Scope
from memory.store_access import write_batch


async def reduce_old(store: BaseStore, scope: Scope, *, keep: int) -> None:
    """Of nights before the newest `keep` that were applied, let go of what an undo would need.

    Ids, kinds and reasons stay; what was pruned is gone then. So it is with the previews and the
    nights held back that nobody decided on by then.
    """
    for record in to_reduce(await records(store, scope), keep=keep):
        plans = [_reduced(plan) for plan in await plans_of(store, scope, record["id"])]
        puts = [plan_put(scope, record["id"], plan) for plan in plans]
        await write_batch(store, [*puts, record_put(scope, {**record, "reduced": True})])


def to_reduce(records: Sequence[NightRecord], *, keep: int) -> list[NightRecord]:
    """The ended nights among `records`, oldest first, that are too old to be taken back. Pure."""
    applied = [one["id"] for one in records if one["applied"] and not one["dry_run"]]
    if len(applied) <= keep:
        return []
    last = applied[len(applied) - keep - 1]
    ids = [one["id"] for one in records]
    old = records[: ids.index(last) + 1]
    return [one for one in old if one["ended"] and not one.get("reduced")]


def _reduced(plan: PlanRecord) -> PlanRecord:
    bare = [cast(Operation, {**one, "before": None, "after": None}) for one in plan["operations"]]
    return {**plan, "operations": bare, "exchange": []}
