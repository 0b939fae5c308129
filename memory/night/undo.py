"""Taking a night back or applying it later: inverses, and conflicts with what changed since.

Store namespace (below `(user, thread)`): `open_undo` "open" -> UndoBegun, from before the first
change until after the last: facts and the store are separate files; the next run finishes the undo.

There are two checks. An undo (`undo_conflicts`) accepts a value that is already as the undo would
leave it. Applying a preview or a held night (`apply_conflicts`) does not, or it would make
everything a second time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar, cast

from langgraph.store.base import BaseStore, PutOp
from typing_extensions import TypedDict

from memory import audit, entities, journal
from memory.audit import of_undo
from memory.compaction import SUMMARIES, kept_keys
from memory.facts import SemanticMemory
from memory.night.record import Plans, load, plans_of, record_put, status_of
from memory.operations import apply
from memory.records import (
    BLANK,
    EntityProfile,
    Fact,
    FactDraft,
    JournalEntry,
    NightRecord,
    Operation,
    OperationKind,
    PlanRecord,
    Scope,
    operation_id,
    with_values,
)
from memory.storage import write_batch

OPEN_UNDO = "open_undo"

DERIVED = ("settle_fact", "reflected", "write_page")
"""Kinds that no later night builds on: every night makes them anew."""

INVERSE: dict[OperationKind, OperationKind] = {
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
    "score_entry": "score_entry",
    "mark_entry": "mark_entry",
    "change_fact": "change_fact",
    "change_entity": "change_entity",
    "settle_fact": "settle_fact",
    "reflected": "reflected",
    "write_page": "write_page",
}
"""The kind that takes an operation of another kind back, with before and after exchanged."""


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
    """Finish an interrupted undo; returns the night's id, None without one. Idempotent."""
    begun = await unfinished_undo(store, scope)
    if begun is None:
        return None
    record = await load(store, scope, begun["id"])
    if record is None:
        await write_batch(store, [_pointer(scope, None)])
        return None
    undone: NightRecord = {**record, "status": "undone"}
    if status_of(record) != "undone":
        plans = await plans_of(store, scope, record["id"])
        puts = [*_summaries(scope, record["id"], plans), record_put(scope, undone)]
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
    """The operations that undo `operations`, in reverse order, as far as they have inverses."""
    taken = (_inverse(one) for one in reversed(operations))
    return [one for one in taken if one is not None]


def _inverse(one: Operation) -> Operation | None:
    kind = INVERSE.get(one["kind"])
    if kind is None:
        return None
    return {
        **one,
        "id": operation_id("undo", one["id"]),
        "kind": kind,
        "before": one["after"],
        "after": one["before"],
        "reason": f"undo: {one['reason']}",
    }


def built_on(
    operations: Sequence[Operation],
    later: Sequence[tuple[str, Sequence[Operation]]],
    facts: Mapping[str, str],
) -> dict[str, list[str]]:
    """The later nights that build on these operations: night id -> the shared ids.

    A night builds on an earlier one if it changed, pruned, linked or cited a memory that the
    earlier one made or changed. `facts`: ids of facts by operation id, as an insight cites them.
    """
    mine = {one["target"] for one in operations if one["kind"] not in DERIVED}
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


# Conflicts with what somebody changed meanwhile.

_ON_RECORDS = (*apply.ON_ENTRIES, *apply.ON_FACTS, *entities.KINDS)
_TAKING = ("prune_entry", "remove_fact", "unobserve_entity", "remove_entity")
Record = TypeVar("Record")

_COUNTED = ("id", "access_count", "last_access")
"""Fields of a fact that reading it changes."""


@dataclass
class CheckedTargets:
    """The targets of operations, with all checked operations applied."""

    entries: dict[str, JournalEntry]
    facts: dict[str, Fact]
    """By operation id."""
    profiles: dict[str, EntityProfile]
    going: frozenset[str] = frozenset()
    """Targets that the operations remove. They may be gone: an interrupted undo removed them."""
    conflicting: dict[str, None] = field(default_factory=dict)

    def check(self, one: Operation, *, fits: bool) -> None:
        """Note a conflict of `one` with its target unless it `fits`, then apply it."""
        target = one["target"]
        if not fits:
            self.conflicting[target] = None
        if one["kind"] in apply.ON_ENTRIES:
            self.entries |= apply.entries_after(_pop(self.entries, target), [one])
        elif one["kind"] in apply.ON_FACTS:
            self.facts |= apply.facts_after(_pop(self.facts, target), [one])
        else:
            self.profiles |= entities.after(_pop(self.profiles, target), {}, [one])[0]

    def is_undoable(self, one: Operation) -> bool:
        """Whether the target of an inverse is as that expects it, or as it would leave it."""
        target, before, after = one["target"], one["before"], one["after"]
        if target in self.going and not self._stands(target):
            return True
        match one["kind"]:
            case "score_entry" | "mark_entry" | "change_fact":
                record = self.entries.get(target) or self.facts.get(target)
                return record is not None and apply.fields_after(record, before, after) is not None
            case "prune_entry":
                return self.entries.get(target) in (None, before)
            case "remove_fact":
                return _untouched(self.facts.get(target), before)
            case "change_entity":
                profile = self.profiles.get(target)
                return profile is not None and entities.changed(profile, one) is not None
            case "add_entity" if "whole" in after:  # a join is taken back
                return self.profiles.get(target) in (None, after["whole"])
        return True

    def is_as_found(self, one: Operation) -> bool:
        """Whether the target is still as its operation found it."""
        target, before = one["target"], one["before"]
        record: Any = self.entries.get(target) or self.facts.get(target)
        match one["kind"]:
            case "add_entry" | "add_fact":
                return record is None
            case "score_entry" | "mark_entry" | "prune_entry" | "change_fact":
                plain = before.keys() - {*apply.JOINED}
                return record is not None and all(
                    record.get(name, BLANK.get(name)) == before[name] for name in plain
                )
            case "change_entity":
                profile = self.profiles.get(target)
                return profile is not None and _known_as(profile, before)
            case "remove_entity":
                return bool(self.profiles.get(target) == before["whole"])
        return True

    def _stands(self, target: str) -> bool:
        return target in self.entries or target in self.facts or target in self.profiles


async def undo_conflicts(
    operations: Sequence[Operation], *, store: BaseStore, semantic: SemanticMemory, scope: Scope
) -> list[str]:
    """The ids of targets that are neither as the operations expect nor as they leave them."""
    operations = with_values(operations)
    mine = [one for one in operations if one["kind"] in _ON_RECORDS]
    standing = await _standing(mine, store, semantic, scope)
    standing.going = frozenset(_targets(mine, _TAKING))
    pruned = [
        standing.entries[id_] for id_ in _targets(mine, ("prune_entry",)) if id_ in standing.entries
    ]
    for one in mine:
        standing.check(one, fits=standing.is_undoable(one))
    # An owner may have corrected an older fact by one that goes now.
    heirs = {fact["superseded_by"] for fact in standing.facts.values()}
    standing.conflicting |= dict.fromkeys(op for op in sorted(standing.going) if op in heirs)
    if pruned:
        cited = await apply.cited_ids(
            pruned, operations, store=store, semantic=semantic, scope=scope
        )
        kept = [one["id"] for one in pruned if apply.stands_under(one, cited)]
        standing.conflicting |= dict.fromkeys(kept)
    return list(standing.conflicting)


async def _standing(
    operations: Sequence[Operation], store: BaseStore, semantic: SemanticMemory, scope: Scope
) -> CheckedTargets:
    """The targets of operations, and the facts that they name, as memory has them."""
    return CheckedTargets(
        await journal.read_many(store, scope, _targets(operations, apply.ON_ENTRIES)),
        apply.facts_after(await semantic.by_op(scope, sorted(apply.facts_named(operations))), []),
        await entities.read(store, scope, _targets(operations, entities.KINDS)),
    )


def _pop(records: dict[str, Record], target: str) -> dict[str, Record]:
    return {target: records.pop(target)} if target in records else {}


def _untouched(fact: Fact | None, draft: FactDraft) -> bool:
    """Whether the fact is gone, older than this draft, or exactly as the draft made it."""
    if fact is None or fact["op"] != draft["op"]:
        return True
    made, now = ({**BLANK, **one} for one in (apply.fact_from(draft), fact))
    names = {*made, *now} - {*_COUNTED}
    return all(cast(Any, made).get(name) == cast(Any, now).get(name) for name in names)


def _targets(operations: Sequence[Operation], kinds: Collection[str]) -> list[str]:
    return [one["target"] for one in operations if one["kind"] in kinds]


async def apply_conflicts(
    operations: Sequence[Operation], *, store: BaseStore, semantic: SemanticMemory, scope: Scope
) -> list[str]:
    """The ids of what differs from what `operations` found; [] if they can be applied."""
    operations = with_values(operations)
    standing = await _standing(operations, store, semantic, scope)
    new = {*_targets(operations, ("add_entry", "add_fact"))}
    holding = {op for op, fact in standing.facts.items() if fact["invalid_at"] is None}
    marked = {*await apply.undreamed_facts(store, scope)}
    since = await apply.last_reflection(store, scope)
    found = sorted(apply.facts_named(operations) - holding - new)
    for one in operations:
        if one["kind"] in _ON_RECORDS:
            standing.check(one, fits=standing.is_as_found(one))
    found += standing.conflicting
    found += [op for op in _targets(operations, ("settle_fact",)) if op not in marked | new]
    at = [one["before"]["at"] for one in operations if one["kind"] == "reflected"]
    found += ["reflection"] if at and at[0] != since else []
    return list(dict.fromkeys(found))


def _known_as(profile: EntityProfile, fields: Mapping[str, Any]) -> bool:
    """Whether a profile has these attributes and observations, the latter as far as given."""
    observed: dict[str, Mapping[str, Any]] = {one["id"]: one for one in profile["observations"]}
    return all(
        profile["attributes"].get(name) == was for name, was in fields["attributes"].items()
    ) and all(
        was.items() <= observed.get(id_, {}).items() if was else id_ not in observed
        for id_, was in fields["observations"].items()
    )
