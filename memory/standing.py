"""Conflicts of operations with memory as it is now, because somebody changed it meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from langgraph.store.base import BaseStore

from memory import citations, entities, journal, profile_overlay
from memory.apply import entries_after
from memory.fact_changes import fact_from, facts_after, fields_after
from memory.operations import BLANK, told
from memory.profiles import EntityProfile
from memory.records import Fact, FactDraft, JournalEntry, Operation
from memory.scope import Scope
from memory.semantic import SemanticMemory

_ENTRIES = ("add_entry", "score_entry", "mark_entry", "prune_entry")
_FACTS = ("add_fact", "change_fact", "remove_fact")
_TAKING = ("prune_entry", "remove_fact", "unobserve_entity")
Record = TypeVar("Record")
_COUNTED = ("id", "access_count", "last_access")
"""Fields of a fact that reading it changes."""


@dataclass
class Standing:
    """The targets of operations, with the operations checked so far applied."""

    entries: dict[str, JournalEntry]
    facts: dict[str, Fact]
    """By operation id."""
    profiles: dict[str, EntityProfile]
    going: frozenset[str] = frozenset()
    """Targets that the operations remove; an interrupted undo may have removed them already."""
    conflicting: dict[str, None] = field(default_factory=dict)

    def check(self, one: Operation) -> None:
        """Note a conflict of `one` with its target, then apply it."""
        target = one["target"]
        if not self._fits(one):
            self.conflicting[target] = None
        if one["kind"] in _ENTRIES:
            self.entries |= entries_after(_taken(self.entries, target), [one])
        elif one["kind"] in _FACTS:
            self.facts |= facts_after(_taken(self.facts, target), [one])
        else:
            self.profiles |= profile_overlay.after(_taken(self.profiles, target), {}, [one])[0]

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
                return profile is not None and profile_overlay.changed(profile, one) is not None
        return True

    def _stands(self, target: str) -> bool:
        return target in self.entries or target in self.facts or target in self.profiles


async def conflicts(
    operations: Sequence[Operation], *, store: BaseStore, semantic: SemanticMemory, scope: Scope
) -> list[str]:
    """The ids of targets that are not as the operations expect them, each once, in order.

    A target that already is as an operation would leave it is no conflict, nor is one that the
    operations make themselves.
    """
    operations = told(operations)
    mine = [o for o in operations if o["kind"] in (*_ENTRIES, *_FACTS, *profile_overlay.KINDS)]
    facts = await semantic.by_op(scope, _facts_named(mine))
    standing = Standing(
        await journal.read_many(store, scope, _targets(mine, _ENTRIES)),
        facts_after(facts, []),
        await entities.read(store, scope, _targets(mine, profile_overlay.KINDS)),
        frozenset(_targets(mine, _TAKING)),
    )
    pruned = [
        standing.entries[id_] for id_ in _targets(mine, ("prune_entry",)) if id_ in standing.entries
    ]
    for one in mine:
        standing.check(one)
    if pruned:
        ids = [one["id"] for one in pruned]
        cited = await citations.cited(ids, operations, store=store, semantic=semantic, scope=scope)
        kept = [one["id"] for one in pruned if citations.stands_under(one, cited)]
        standing.conflicting |= dict.fromkeys(kept)
    return list(standing.conflicting)


def _taken(records: dict[str, Record], target: str) -> dict[str, Record]:
    """Take the record with id `target` out of `records`."""
    return {target: records.pop(target)} if target in records else {}


def _untouched(fact: Fact | None, draft: FactDraft) -> bool:
    """Whether the fact is gone, existed before this draft, or is as the draft made it."""
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
