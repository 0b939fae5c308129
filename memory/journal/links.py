"""Links between memories, stored at both ends.

Store namespace (below `(user, thread)`): `links` id -> End, the id of a journal entry or a fact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore, PutOp

from memory.records import End as End
from memory.records import Operation, Scope, with_values
from memory.storage import read_values

LINKS = "links"


async def read(store: BaseStore, scope: Scope, ids: Iterable[str]) -> dict[str, End]:
    """Read the links of those memories among `ids` that have any, by id."""
    namespace = scope.namespace(LINKS)
    return (await read_values(store, {namespace: ids}))[namespace]


def ends_named(operation: Operation, facts: Mapping[str, str]) -> tuple[str, str] | None:
    """Ids of the two ends; None if one is no stored fact. `facts`: operation id -> fact id."""
    value = operation["after"] or operation["before"]
    first, second = operation["target"], value["other"]
    if value["of"] == "facts":
        first = facts.get(first, "")
    if value["of"] in ("facts", "entry_fact"):
        second = facts.get(second, "")
    return (first, second) if first and second and first != second else None


def fact_ops(operation: Operation) -> set[str]:
    """Operation ids of the facts that a link names."""
    value = operation["after"] or operation["before"]
    ends = {"facts": (operation["target"], value["other"]), "entry_fact": (value["other"],)}
    return set(ends.get(value["of"], ()))


def after(
    ends: Mapping[str, End], operations: Sequence[Operation], facts: Mapping[str, str]
) -> dict[str, End]:
    """The ends after `operations` added and removed links, in order."""
    changed = dict(ends)
    for operation in of_links(operations):
        named = ends_named(operation, facts)
        if named is None:
            continue
        for end, other in (named, named[::-1]):
            if operation["kind"] == "link":
                changed[end] = _joined(changed.get(end), other, operation["after"])
            elif end in changed:
                changed[end] = _parted(changed[end], other, operation["before"])
    return changed


def _joined(end: End | None, other: str, value: Mapping[str, Any]) -> End:
    created, relations = value["created"], dict(end["relations"]) if end else {}
    if end is None or other not in end["linked_to"]:
        relations[other] = _relation(value)
    return {
        "linked_to": sorted({*(end["linked_to"] if end else []), other}),
        "created": end["created"] if end else created,
        "relations": relations,
    }


def _relation(value: Mapping[str, Any]) -> dict[str, str]:
    return {"relation": value["relation"], "reason": value["reason"], "at": value["created"]}


def _parted(end: End, other: str, value: Mapping[str, Any]) -> End:
    """The end without this link; an earlier link between the same memories stays."""
    standing = end["relations"].get(other)
    if standing is not None and standing != _relation(value):
        return end
    return {
        **end,
        "linked_to": [id_ for id_ in end["linked_to"] if id_ != other],
        "relations": {id_: value for id_, value in end["relations"].items() if id_ != other},
    }


def named_by(operations: Sequence[Operation], facts: Mapping[str, str]) -> set[str]:
    """Ids of all memories that `operations` link or unlink."""
    named = (ends_named(one, facts) for one in of_links(operations))
    return {id_ for both in named if both for id_ in both}


def of_links(operations: Iterable[Operation]) -> list[Operation]:
    """Operations that link or unlink and still have their values."""
    return [one for one in with_values(operations) if one["kind"] in ("link", "unlink")]


def without(ends: Mapping[str, End], gone: Collection[str]) -> dict[str, End]:
    """The ends without any link to or from the ids in `gone`."""
    return {
        id_: {
            **end,
            "linked_to": [other for other in end["linked_to"] if not {id_, other} & {*gone}],
            "relations": {
                other: value
                for other, value in end["relations"].items()
                if not {id_, other} & {*gone}
            },
        }
        for id_, end in ends.items()
    }


async def puts_after(
    store: BaseStore,
    scope: Scope,
    operations: Sequence[Operation],
    facts: Mapping[str, str],
    gone: Collection[str] = (),
) -> list[PutOp]:
    """Store writes for the links among `operations`, without those of removed memories (`gone`)."""
    standing = await read(store, scope, {*named_by(operations, facts), *gone})
    across = {other for id_ in gone if id_ in standing for other in standing[id_]["linked_to"]}
    standing |= await read(store, scope, across - standing.keys())
    changed = without(after(standing, operations, facts), gone)
    namespace = scope.namespace(LINKS)
    return [
        PutOp(namespace, id_, dict(end) if end["linked_to"] else None)
        for id_, end in changed.items()
        if end != standing.get(id_) and (end["linked_to"] or id_ in standing)
    ]
