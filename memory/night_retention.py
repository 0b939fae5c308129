"""Retention of nights: old ones keep ids and reasons, but no values to undo them with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from langgraph.store.base import BaseStore

from memory.night import plan_put, plans_of, record_put, records
from memory.records import NightRecord, Operation, PlanRecord
from memory.scope import Scope
from memory.store_access import write_batch


async def reduce_old(store: BaseStore, scope: Scope, *, keep: int) -> None:
    """Drop the values that an undo needs from nights before the newest `keep` applied ones.

    Ids, kinds and reasons stay; pruned memories are gone for good. Previews and held nights that
    nobody decided on are reduced too.
    """
    for record in to_reduce(await records(store, scope), keep=keep):
        plans = [_reduced(plan) for plan in await plans_of(store, scope, record["id"])]
        puts = [plan_put(scope, record["id"], plan) for plan in plans]
        await write_batch(store, [*puts, record_put(scope, {**record, "reduced": True})])


def to_reduce(records: Sequence[NightRecord], *, keep: int) -> list[NightRecord]:
    """Ended nights, oldest first, that are too old to be undone. Pure."""
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
