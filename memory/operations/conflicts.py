"""Conflicts of operations with memory that somebody changed meanwhile.

There are two checks. An undo accepts a value that already is as the operation would leave it. A
preview or a held night does not: applied after a night that did the same, it would make everything
twice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from langgraph.store.base import BaseStore

from memory import entities, journal
from memory.facts import SemanticMemory
from memory.journal import links
from memory.operations import apply
from memory.operations.apply import (
    JOINED,
    ON_ENTRIES,
    UNDREAMED,
    entries_after,
    fact_from,
    facts_after,
    fields_after,
    last_reflection,
)
from memory.records import (
    BLANK,
    EntityProfile,
    Fact,
    FactDraft,
    JournalEntry,
    Operation,
    Scope,
    told,
)
from memory.storage import list_items

_FACTS = ("add_fact", "change_fact", "remove_fact")
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
    """Targets that the operations remove, as an interrupted undo may have done already."""
    as_found: bool = False
    """Whether a target must still be as its operation found it, too."""
    conflicting: dict[str, None] = field(default_factory=dict)

    def check(self, one: Operation) -> None:
        """Note a conflict of `one` with its target, then apply it."""
        target = one["target"]
        if not self._fits(one):
            self.conflicting[target] = None
        if one["kind"] in ON_ENTRIES:
            self.entries |= entries_after(_taken(self.entries, target), [one])
        elif one["kind"] in _FACTS:
            self.facts |= facts_after(_taken(self.facts, target), [one])
        else:
            self.profiles |= entities.after(_taken(self.profiles, target), {}, [one])[0]

    def _fits(self, one: Operation) -> bool:
        target, before, after = one["target"], one["before"], one["after"]
        if self.as_found:
            return self._is_as_found(one)
        if target in self.going and not self._stands(target):
            return True
        match one["kind"]:
            case "score_entry" | "mark_entry":
                entry = self.entries.get(target)
                return entry is not None and fields_after(entry, before, after) is not None
            case "prune_entry":
                return self.entries.get(target) in (None, before)
            case "change_fact":
                fact = self.facts.get(target)
                return fact is not None and fields_after(fact, before, after) is not None
            case "remove_fact":
                return _untouched(self.facts.get(target), before)
            case "change_entity":
                profile = self.profiles.get(target)
                return profile is not None and entities.changed(profile, one) is not None
        return True

    def _is_as_found(self, one: Operation) -> bool:
        target, before = one["target"], one["before"]
        record: Any = self.entries.get(target) or self.facts.get(target)
        match one["kind"]:
            case "add_entry" | "add_fact":
                return record is None
            case "score_entry" | "mark_entry" | "prune_entry" | "change_fact":
                plain = before.keys() - {*JOINED}
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


async def find_conflicts(
    operations: Sequence[Operation], *, store: BaseStore, semantic: SemanticMemory, scope: Scope
) -> list[str]:
    """The ids of targets that differ from what the operations expect, each once, in order.

    A target that is already changed as the operation wants, or that the operations make, is no
    conflict.
    """
    operations = told(operations)
    mine = [o for o in operations if o["kind"] in (*ON_ENTRIES, *_FACTS, *entities.KINDS)]
    standing = await _standing(mine, store, semantic, scope)
    standing.going = frozenset(_targets(mine, _TAKING))
    pruned = [
        standing.entries[id_] for id_ in _targets(mine, ("prune_entry",)) if id_ in standing.entries
    ]
    for one in mine:
        standing.check(one)
    if pruned:
        ids = [one["id"] for one in pruned]
        cited = await apply.cited_ids(ids, operations, store=store, semantic=semantic, scope=scope)
        kept = [one["id"] for one in pruned if apply.stands_under(one, cited)]
        standing.conflicting |= dict.fromkeys(kept)
    return list(standing.conflicting)


async def _standing(
    operations: Sequence[Operation], store: BaseStore, semantic: SemanticMemory, scope: Scope
) -> CheckedTargets:
    """The targets of operations, and the facts that they name, as memory has them."""
    return CheckedTargets(
        await journal.read_many(store, scope, _targets(operations, ON_ENTRIES)),
        facts_after(await semantic.by_op(scope, _facts_named(operations)), []),
        await entities.read(store, scope, _targets(operations, entities.KINDS)),
    )


def _taken(records: dict[str, Record], target: str) -> dict[str, Record]:
    return {target: records.pop(target)} if target in records else {}


def _untouched(fact: Fact | None, draft: FactDraft) -> bool:
    """Whether the fact is gone, older than this draft, or exactly as the draft made it."""
    if fact is None or fact["op"] != draft["op"]:
        return True
    made, now = ({**BLANK, **one} for one in (fact_from(draft), fact))
    names = {*made, *now} - {*_COUNTED}
    return all(cast(Any, made).get(name) == cast(Any, now).get(name) for name in names)


def _targets(operations: Sequence[Operation], kinds: Collection[str]) -> list[str]:
    return [one["target"] for one in operations if one["kind"] in kinds]


def _facts_named(operations: Sequence[Operation]) -> list[str]:
    found = dict.fromkeys(_targets(operations, _FACTS))
    for one in operations:
        if one["kind"] == "change_fact":
            by = (one[when].get("superseded_by") for when in ("before", "after"))
            found |= dict.fromkeys(op for op in by if op)
        elif one["kind"] == "link":
            found |= dict.fromkeys(links.fact_ops(one))
    return list(found)


async def changed_since(
    operations: Sequence[Operation], *, store: BaseStore, semantic: SemanticMemory, scope: Scope
) -> list[str]:
    """The ids of memories that differ from what `operations` found; [] if they can be applied.

    Journal ids, operation ids of facts, profile ids, and `reflection` if insights were stored.
    """
    operations = told(operations)
    standing = await _standing(operations, store, semantic, scope)
    standing.as_found = True
    new = {*_targets(operations, ("add_entry", "add_fact"))}
    holding = {op for op, fact in standing.facts.items() if fact["invalid_at"] is None}
    marked = {item.key for item in await list_items(store, scope.namespace(UNDREAMED))}
    since = await last_reflection(store, scope)
    found = [op for op in _facts_named(operations) if op not in holding | new]
    for one in operations:
        if one["kind"] in (*ON_ENTRIES, *_FACTS, *entities.KINDS):
            standing.check(one)
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
