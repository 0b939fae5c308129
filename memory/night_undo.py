"""Taking a night back: all of it, also where it is broken off.

Store namespace (below `(user, thread)`): `open_undo` "open" -> Begun, from before anything is
changed until everything is. Facts and the store are two files: in between memory is neither as it
was before the night nor as after it, and whatever run comes next finishes the undo first.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from langgraph.store.base import BaseStore, PutOp
from typing_extensions import TypedDict

from memory import apply, audit, night
from memory.audit_nights import of_undo
from memory.compaction import SUMMARIES, kept_keys
from memory.dreaming.undo import inverse
from memory.night_plans import Plans
from memory.records import NightRecord, Operation, PlanRecord
from memory.scope import Scope
from memory.semantic import SemanticMemory
from memory.store_access import write_batch

OPEN_UNDO = "open_undo"


class Begun(TypedDict):
    """An undo on its way."""

    id: str
    """The night's."""
    at: str
    """When it was asked for, ISO 8601."""
    who: str


async def take_back(
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
    night_id: str,
    *,
    at: datetime,
    who: str,
) -> None:
    """Restore memory as it was before a night. Nothing is looked at that stands in its way."""
    begun: Begun = {"id": night_id, "at": at.isoformat(), "who": who}
    await write_batch(store, [_pointer(scope, begun)])
    await finish(store, semantic, scope)


async def unfinished(store: BaseStore, scope: Scope) -> Begun | None:
    """The undo that was begun and not ended, if any."""
    item = await store.aget(scope.namespace(OPEN_UNDO), "open")
    return cast(Begun, item.value) if item else None


async def finish(store: BaseStore, semantic: SemanticMemory, scope: Scope) -> str | None:
    """Go on with an undo that was broken off; the night's id, None where there is none.

    Twice is the same as once. That it is done is written behind all else, and told in the log then.
    """
    begun = await unfinished(store, scope)
    if begun is None:
        return None
    record = await night.load(store, scope, begun["id"])
    if record is None:
        await write_batch(store, [_pointer(scope, None)])
        return None
    undone: NightRecord = {**record, "status": "undone"}
    if night.status_of(record) != "undone":
        plans = await night.plans_of(store, scope, record["id"])
        puts = [*_summaries(scope, record["id"], plans), night.record_put(scope, undone)]
        done = inverse(applied(record, plans))
        await apply.apply_operations(done, store=store, semantic=semantic, scope=scope, also=puts)
    entry = of_undo(undone, at=datetime.fromisoformat(begun["at"]), who=begun["who"])
    await audit.write(store, scope, [entry], also=[_pointer(scope, None)])
    return record["id"]


def applied(record: NightRecord, plans: Plans) -> list[Operation]:
    """What a night made so: the operations of the phases that were applied."""
    return [one for phase in record["applied"] for one in plans.operations(phase)]


def _summaries(scope: Scope, night_id: str, plans: Sequence[PlanRecord]) -> list[PutOp]:
    """Without what the night's compaction had kept."""
    cuts = [plan["inputs"] for plan in plans if plan["step"] == "compact"]
    namespace = scope.namespace(SUMMARIES)
    return [
        PutOp(namespace, key, None) for ids in cuts for key in kept_keys(night_id, ids).values()
    ]


def _pointer(scope: Scope, begun: Begun | None) -> PutOp:
    value = cast(dict[str, Any], dict(begun)) if begun else None
    return PutOp(scope.namespace(OPEN_UNDO), "open", value, index=False)
