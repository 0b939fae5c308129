"""Conflicts of operations with memory that somebody changed meanwhile.

There are two checks. An undo accepts a value that already is as the operation would leave it. A
preview or a held night does not: applied after a night that did the same, it would make everything
twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
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
    facts = await semantic.by_op(scope, _facts_named(mine))
    standing = CheckedTargets(
        await journal.read_many(store, scope, _targets(mine, ON_ENTRIES)),
        facts_after(facts, []),
        await entities.read(store, scope, _targets(mine, entities.KINDS)),
        frozenset(_targets(mine, _TAKING)),
    )
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


def _taken(records: dict[str, Record], target: str) -> dict[str, Record]:
    """Take the record with id `target` out of `records`."""
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
    """Operation ids of the facts that change and of those that supersede them."""
    mine = [one for one in operations if one["kind"] == "change_fact"]
    values = (value for one in mine for value in (one["before"], one["after"]))
    by = (value.get("superseded_by") for value in values)
    return list(dict.fromkeys([*_targets(operations, _FACTS), *(op for op in by if op)]))


Fields = dict[Any, Any]


async def changed_since(
    operations: Sequence[Operation], *, store: BaseStore, semantic: SemanticMemory, scope: Scope
) -> list[str]:
    """The ids of memories that differ from what `operations` found; [] if they can be applied.

    Journal ids, operation ids of facts, profile ids, and `reflection` if insights were stored.
    """
    operations = told(operations)
    new = dict.fromkeys(_targets(operations, ("add_entry", "add_fact", "add_entity")))
    entries, facts, profiles = (_found(operations, new, what) for what in _WHAT)
    standing = await journal.read_many(store, scope, [*entries, *new])
    known = await semantic.by_op(scope, [*facts, *new])
    people = await entities.read(store, scope, list(profiles))
    marked = {item.key for item in await list_items(store, scope.namespace(UNDREAMED))}
    since = await last_reflection(store, scope)
    found = [id_ for id_ in new if id_ in standing or id_ in known]
    found += [id_ for id_, was in entries.items() if not _as_was(standing.get(id_), was)]
    found += [op for op, was in facts.items() if not _holds_as(known.get(op), was)]
    found += [id_ for id_, was in profiles.items() if not _known_as(people.get(id_), was)]
    found += [op for op in _targets(operations, ("settle_fact",)) if op not in {*new, *marked}]
    at = [one["before"]["at"] for one in operations if one["kind"] == "reflected"]
    found += ["reflection"] if at and at[0] != since else []
    return list(dict.fromkeys(found))


def _entries_found(one: Operation) -> dict[str | None, Fields]:
    scored = one["kind"] in ("score_entry", "mark_entry", "prune_entry")
    return {one["target"]: one["before"]} if scored else {}


def _facts_found(one: Operation) -> dict[str | None, Fields]:
    """Without fields: a fact that an operation only names."""
    if one["kind"] == "link":
        return {op: {} for op in links.fact_ops(one)}
    if one["kind"] != "change_fact":
        return {}
    plain = {name: value for name, value in one["before"].items() if name not in JOINED}
    return {one["after"].get("superseded_by"): {}, one["target"]: plain}


def _profiles_found(one: Operation) -> dict[str | None, Fields]:
    """The keys are pairs: ("attributes", name) or ("observations", id)."""
    if one["kind"] != "change_entity":
        return {}
    parts = ("attributes", "observations")
    return {one["target"]: {(p, k): v for p in parts for k, v in one["before"][p].items()}}


_WHAT = (_entries_found, _facts_found, _profiles_found)


def _found(
    operations: Sequence[Operation],
    new: Collection[str],
    what: Callable[[Operation], dict[str | None, Fields]],
) -> dict[str, Fields]:
    """The values that operations found in existing memories; the first on a field counts."""
    found: dict[str, Fields] = {}
    for one in operations:
        for id_, fields in what(one).items():
            if id_ is not None and id_ not in new:
                found[id_] = {**fields, **found.get(id_, {})}
    return found


def _as_was(entry: JournalEntry | None, fields: Fields) -> bool:
    return entry is not None and all(entry.get(name) == value for name, value in fields.items())


def _holds_as(fact: Fact | None, fields: Fields) -> bool:
    """Whether the fact still holds and has these values."""
    if fact is None or fact["invalid_at"] is not None:
        return False
    now: Mapping[str, Any] = fact
    return all(now.get(name, BLANK.get(name)) == value for name, value in fields.items())


def _known_as(profile: EntityProfile | None, fields: Fields) -> bool:
    if profile is None:
        return False
    observed: dict[str, Mapping[str, Any]] = {one["id"]: one for one in profile["observations"]}
    return all(
        profile["attributes"].get(key) == was
        if part == "attributes"
        else key in observed and all(observed[key].get(k) == v for k, v in (was or {}).items())
        for (part, key), was in fields.items()
    )
