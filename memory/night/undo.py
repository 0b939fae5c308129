"""Undo a night: inverse operations, later nights that built on it, and recovery after a crash.

Store namespace (below `(user, thread)`): `open_undo` "open" -> Begun, from before the first change
until after the last. Facts and the store are separate files, so a crash in between leaves a memory
that is neither the one before the night nor the one after. The next run then finishes the undo.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from langgraph.store.base import BaseStore, PutOp
from typing_extensions import TypedDict

from memory import audit
from memory.audit import of_undo
from memory.compaction import SUMMARIES, kept_keys
from memory.facts import SemanticMemory
from memory.night import record as night
from memory.night.record import Plans
from memory.operations import apply
from memory.records import NightRecord, Operation, OperationKind, PlanRecord, Scope, operation_id
from memory.storage import write_batch

OPEN_UNDO = "open_undo"

SWAPPED = (
    *("score_entry", "mark_entry", "change_fact", "change_entity", "settle_fact", "reflected"),
    "write_page",
)
"""Kinds whose inverse is the same kind with before and after exchanged."""

DERIVED = ("settle_fact", "reflected", "write_page")
"""Kinds that another night may do again at any time: nothing builds on them."""

OPPOSITE: dict[OperationKind, OperationKind] = {
    "add_entry": "prune_entry",
    "prune_entry": "add_entry",
    "add_fact": "remove_fact",
    "remove_fact": "add_fact",
    "link": "unlink",
    "unlink": "link",
    "add_entity": "remove_entity",
    "remove_entity": "add_entity",
    "observe_entity": "unobserve_entity",
    "unobserve_entity": "observe_entity",
}


class UndoBegun(TypedDict):
    """An undo in progress."""

    id: str
    """The night's id."""
    at: str
    """Time of the request, ISO 8601."""
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
    """Restore memory as it was before a night, without a check for conflicts."""
    begun: UndoBegun = {"id": night_id, "at": at.isoformat(), "who": who}
    await write_batch(store, [_pointer(scope, begun)])
    await finish(store, semantic, scope)


async def unfinished_undo(store: BaseStore, scope: Scope) -> UndoBegun | None:
    """The unfinished undo, if any."""
    item = await store.aget(scope.namespace(OPEN_UNDO), "open")
    return cast(UndoBegun, item.value) if item else None


async def finish(store: BaseStore, semantic: SemanticMemory, scope: Scope) -> str | None:
    """Finish an interrupted undo; returns the night's id, or None if there is no such undo.

    Finishing twice has the same effect as once: the mark and the audit line are written last.
    """
    begun = await unfinished_undo(store, scope)
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
    """The operations of the phases that the night applied."""
    return [one for phase in record["applied"] for one in plans.operations(phase)]


def _summaries(scope: Scope, night_id: str, plans: Sequence[PlanRecord]) -> list[PutOp]:
    cuts = [plan["inputs"] for plan in plans if plan["step"] == "compact"]
    namespace = scope.namespace(SUMMARIES)
    return [
        PutOp(namespace, key, None) for ids in cuts for key in kept_keys(night_id, ids).values()
    ]


def _pointer(scope: Scope, begun: UndoBegun | None) -> PutOp:
    value = cast(dict[str, Any], dict(begun)) if begun else None
    return PutOp(scope.namespace(OPEN_UNDO), "open", value, index=False)


def inverse(operations: Sequence[Operation]) -> list[Operation]:
    """The operations that undo `operations`, in reverse order.

    Operations without an inverse (meeting someone, cutting the conversation) are left out.
    """
    taken = (_inverse(one) for one in reversed(operations))
    return [one for one in taken if one is not None]


def _inverse(one: Operation) -> Operation | None:
    kind: OperationKind
    if one["kind"] in SWAPPED:
        kind = one["kind"]
    elif one["kind"] in OPPOSITE:
        kind = OPPOSITE[one["kind"]]
    else:
        return None
    return {
        **one,
        "id": operation_id("undo", one["id"]),
        "kind": kind,
        "before": one["after"],
        "after": one["before"],
        "reason": f"undo: {one['reason']}",
    }


def made_or_changed(operations: Iterable[Operation]) -> set[str]:
    """The ids of memories that these operations made or changed."""
    return {one["target"] for one in operations if one["kind"] not in DERIVED}


def built_on(
    operations: Sequence[Operation],
    later: Sequence[tuple[str, Sequence[Operation]]],
    facts: Mapping[str, str],
) -> dict[str, list[str]]:
    """The later nights that build on these operations: night id -> the shared ids.

    A night builds on an earlier one if it changed, pruned, linked or cited a memory that the
    earlier one made or changed.

    Args:
        operations: Of this night.
        later: (night id, operations) of each later night.
        facts: Ids of facts by operation id, since an insight cites a fact by its own id.
    """
    mine = made_or_changed(operations)
    mine |= {facts[one] for one in mine if one in facts}
    found: dict[str, list[str]] = {}
    for later_night, others in later:
        used = {
            one
            for operation in others
            for one in (operation["target"], *operation["sources"], *_ends(operation))
            if operation["kind"] not in DERIVED
        }
        if shared := sorted(mine & used):
            found[later_night] = shared
    return found


def _ends(operation: Operation) -> list[str]:
    value = operation["after"] or operation["before"] or {}
    other = [value["other"]] if operation["kind"] in ("link", "unlink") and value else []
    return [*other, *(value.get("evidence", ()) if operation["kind"] == "add_entry" else ())]
