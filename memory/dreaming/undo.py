"""Taking a night back: the inverse of its operations, and what stands in the way. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from memory.operations import operation_id
from memory.records import Operation, OperationKind

SWAPPED = ("score_entry", "mark_entry", "change_fact", "change_entity", "settle_fact", "reflected")
"""Kinds whose inverse is the same with before and after exchanged."""
OPPOSITE: dict[OperationKind, OperationKind] = {
    "add_entry": "prune_entry",
    "prune_entry": "add_entry",
    "add_fact": "remove_fact",
    "remove_fact": "add_fact",
    "link": "unlink",
    "unlink": "link",
    "observe_entity": "unobserve_entity",
    "unobserve_entity": "observe_entity",
}


def inverse(operations: Sequence[Operation]) -> list[Operation]:
    """What takes `operations` back, the last one first.

    What has no inverse (meeting someone, cutting the live conversation) is left out.
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
    """The ids that a later night may have built on: what these operations made or changed."""
    return {one["target"] for one in operations if one["kind"] not in ("settle_fact", "reflected")}


def built_on(
    operations: Sequence[Operation],
    later: Sequence[tuple[str, Sequence[Operation]]],
    facts: Mapping[str, str],
) -> dict[str, list[str]]:
    """Which later nights build on these operations: night id -> the ids in question.

    A later night builds on this one where it changed, linked or cited what this one made or
    changed. Pruning what this one changed is building on it, too. `facts`: the ids of facts by
    operation id, since an insight cites a fact by the id it has.
    """
    mine = made_or_changed(operations)
    mine |= {facts[one] for one in mine if one in facts}
    found: dict[str, list[str]] = {}
    for night, others in later:
        used = {
            one
            for operation in others
            for one in (operation["target"], *operation["sources"], *_ends(operation))
            if operation["kind"] not in ("settle_fact", "reflected")
        }
        if shared := sorted(mine & used):
            found[night] = shared
    return found


def _ends(operation: Operation) -> list[str]:
    """The other end of a link, and what an insight stands on."""
    value = operation["after"] or operation["before"] or {}
    other = [value["other"]] if operation["kind"] in ("link", "unlink") and value else []
    return [*other, *(value.get("evidence", ()) if operation["kind"] == "add_entry" else ())]
