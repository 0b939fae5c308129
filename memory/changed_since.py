"""What changed in memory while a preview or a held night waited for a person.

Stricter than the check before an undo, which accepts a value that already is as the operation would
leave it: a preview applied after a night that did the same would make everything twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langgraph.store.base import BaseStore

from memory import entities, journal, links
from memory.apply import UNDREAMED, last_reflection
from memory.fact_changes import JOINED
from memory.operations import BLANK, told
from memory.profiles import EntityProfile
from memory.records import Fact, JournalEntry, Operation
from memory.scope import Scope
from memory.semantic import SemanticMemory
from memory.store_access import list_items

Fields = dict[str, Any]


@dataclass
class Expected:
    """The values that operations found when they were decided, by target. Pure.

    Of several operations on one target the first tells what was found. Memories that the operations
    make themselves are not expected.
    """

    entries: dict[str, Fields] = field(default_factory=dict)
    facts: dict[str, Fields] = field(default_factory=dict)
    """By operation id; {} for a fact that is only named."""
    profiles: dict[str, tuple[Fields, Fields]] = field(default_factory=dict)
    """Attributes by name and observations by id."""
    undreamed: list[str] = field(default_factory=list)
    new: dict[str, None] = field(default_factory=dict)
    """Ids of new memories: journal ids, and operation ids of facts."""
    reflection: list[str | None] = field(default_factory=list)

    @classmethod
    def by(cls, operations: Sequence[Operation]) -> Expected:
        """The values that `operations` found."""
        found = cls()
        for one in told(operations):
            found._read(one)
        return found

    def _read(self, one: Operation) -> None:
        target, before = one["target"], one["before"]
        match one["kind"]:
            case "add_entry" | "add_fact":
                self.new[target] = None
            case "score_entry" | "mark_entry" | "prune_entry":
                self._expect(self.entries, target, before)
            case "change_fact":
                plain = {name: value for name, value in before.items() if name not in JOINED}
                self._expect(self.facts, target, plain)
                self._name(one["after"].get("superseded_by"))
            case "link":
                self._name(*links.fact_ops(one))
            case "change_entity":
                attributes, observations = self.profiles.setdefault(target, ({}, {}))
                self.profiles[target] = (
                    before["attributes"] | attributes,
                    before["observations"] | observations,
                )
            case "settle_fact":
                self.undreamed.append(target)
            case "reflected":
                self.reflection.append(before["at"])

    def _expect(self, records: dict[str, Fields], target: str, fields: Fields) -> None:
        if target not in self.new:
            known = records.setdefault(target, {})
            for name, value in fields.items():
                known.setdefault(name, value)

    def _name(self, *ops: str | None) -> None:
        for op in ops:
            if op is not None:
                self._expect(self.facts, op, {})


async def changed_since(
    operations: Sequence[Operation], *, store: BaseStore, semantic: SemanticMemory, scope: Scope
) -> list[str]:
    """The ids of memories that are not as `operations` found them; [] if they can be applied.

    Journal ids, operation ids of facts, profile ids, and `reflection` if insights were stored.
    """
    expected = Expected.by(operations)
    entries = await journal.read_many(store, scope, [*expected.entries, *expected.new])
    facts = await semantic.by_op(scope, [*expected.facts, *expected.new])
    profiles = await entities.read(store, scope, list(expected.profiles))
    marked = {item.key for item in await list_items(store, scope.namespace(UNDREAMED))}
    since = await last_reflection(store, scope)
    found = [one for one in expected.new if one in entries or one in facts]
    found += [one for one, was in expected.entries.items() if not _as_was(entries.get(one), was)]
    found += [one for one, was in expected.facts.items() if not _holds_as(facts.get(one), was)]
    known = expected.profiles.items()
    found += [one for one, was in known if not _known_as(profiles.get(one), was)]
    found += [one for one in expected.undreamed if one not in {*expected.new, *marked}]
    found += ["reflection"] if any(at != since for at in expected.reflection[:1]) else []
    return list(dict.fromkeys(found))


def _as_was(entry: JournalEntry | None, fields: Fields) -> bool:
    return entry is not None and all(entry.get(name) == value for name, value in fields.items())


def _holds_as(fact: Fact | None, fields: Fields) -> bool:
    """Whether the fact still holds and has these values."""
    if fact is None or fact["invalid_at"] is not None:
        return False
    now: Mapping[str, Any] = fact
    return all(now.get(name, BLANK.get(name)) == value for name, value in fields.items())


def _known_as(profile: EntityProfile | None, was: tuple[Fields, Fields]) -> bool:
    if profile is None:
        return False
    attributes, observations = was
    standing: dict[str, Mapping[str, Any]] = {one["id"]: one for one in profile["observations"]}
    if any(profile["attributes"].get(name) != value for name, value in attributes.items()):
        return False
    return all(
        id_ in standing and all(standing[id_].get(name) == v for name, v in (was_so or {}).items())
        for id_, was_so in observations.items()
    )
