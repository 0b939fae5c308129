"""Facts, journal entries and profiles for tests of nights, and a memory to apply operations to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from memory.entities import entities
from memory.facts.semantic import SemanticMemory
from memory.journal import entries as journal
from memory.journal import links
from memory.night import undo
from memory.night.dream_work import ripe
from memory.night.pending_view import PendingView
from memory.operations import apply
from memory.operations.apply import fact_from
from memory.records.operations import add_entry, add_fact, observe_entity
from memory.records.profiles import EntityProfile, Observation, entity_id, new_profile
from memory.records.records import Conversation, Fact, FactDraft, JournalEntry, Operation, Scope
from memory.storage.access import write_batch
from nodes.night.consolidate_entities import EntityNews
from tests.support.facts import draft

NOW = "2026-05-03T02:00:00+00:00"
ADA = entity_id("ada")
ACCESSES = ("access_count", "last_access")


def fact(op: str, text: str = "Ada grows beans.", **fields: Any) -> Fact:
    return cast(Fact, {**fact_from(draft(op, text)), "id": f"id-{op}", "speaker": "Ada", **fields})


def entry(id_: str, **fields: Any) -> JournalEntry:
    made = {
        "id": id_,
        "timestamp": "2026-05-02T09:00:00+00:00",
        "content": f"Ada said something of {id_}.",
        "source_type": "direct",
        "source_trust": 0.9,
        "source_entity": "Ada",
        "importance": 3,
        "scoring_method": "heuristic",
        "tags": ["event"],
        "related_projects": [],
        "sources": [f"source-of-{id_}"],
        "channel": None,
        "consolidation": "pending",
    }
    return cast(JournalEntry, {**made, **fields})


def observation(number: int, text: str = "", **fields: Any) -> Observation:
    made = {
        "id": f"o{number}",
        "text": text or f"Ada likes tea number {number}.",
        "at": f"2026-05-02T09:{number:02}:00+00:00",
        "speaker": "Ben",
        "trust": 0.9,
        "sources": [f"e{number}"],
        "consolidated": False,
    }
    return cast(Observation, {**made, **fields})


def news(profile: EntityProfile, least: int = 5) -> EntityNews:
    """What a night reads of somebody of whom no fact is new."""
    return EntityNews(profile, [], ripe(profile, least), [*profile["attributes"]])


def ada(*observations: Observation, **fields: Any) -> EntityProfile:
    made = {**new_profile(ADA, "Ada", NOW), "observations": list(observations)}
    return cast(EntityProfile, {**made, **fields})


def talk(entity: str, at: str, **fields: Any) -> Conversation:
    """A conversation in which nothing is pending."""
    made: dict[str, Any] = {
        "entity": entity,
        "channel": None,
        "last_event": "e",
        "last_at": at,
        "pending_actions": [],
    }
    return cast(Conversation, {**made, **fields})


def noticed(one: Observation, *, aliases: Sequence[str] = ()) -> Operation:
    return observe_entity(ADA, "Ada", one, aliases=aliases, kept=50, now=NOW, reason="noticed")


@dataclass
class Memory:
    semantic: SemanticMemory
    scope: Scope
    store: BaseStore

    @classmethod
    def new(cls, semantic: SemanticMemory, name: str) -> Memory:
        return cls(semantic, Scope("ada", name), InMemoryStore())

    async def apply(self, operations: Sequence[Operation]) -> None:
        await apply.apply_operations(
            operations, store=self.store, semantic=self.semantic, scope=self.scope
        )

    async def hold(
        self, facts: Sequence[FactDraft] = (), entries: Sequence[JournalEntry] = ()
    ) -> list[Fact]:
        """Store these facts and entries, with the facts marked as dreamt; returns the facts."""
        await self.apply([*(add_fact(d, "test") for d in facts)])
        await self.apply([add_entry(e, "test") for e in entries])
        marks = [apply._undreamed_puts(add_fact(d, "test"), self.scope)[0] for d in facts]
        await write_batch(self.store, [one._replace(value=None) for one in marks])
        stored = await self.semantic.by_op(self.scope, [one["op"] for one in facts])
        return [stored[one["op"]] for one in facts]

    async def conflicts(self, operations: Sequence[Operation]) -> list[str]:
        return await undo.undo_conflicts(
            operations, store=self.store, semantic=self.semantic, scope=self.scope
        )

    def through(self, operations: Sequence[Operation]) -> PendingView:
        return PendingView(self.store, self.semantic, self.scope).follow(operations)

    async def fact(self, op: str) -> Fact:
        return (await self.semantic.by_op(self.scope, [op]))[op]

    async def entry(self, id_: str) -> JournalEntry | None:
        return await journal.read(self.store, self.scope, id_)

    async def ada(self) -> EntityProfile | None:
        return (await entities.read(self.store, self.scope, [ADA])).get(ADA)

    async def links(self) -> dict[str, list[str]]:
        items = await self.store.asearch(self.scope.namespace(links.LINKS), limit=1_000)
        return {item.key: item.value["linked_to"] for item in items}

    async def everything(self) -> dict[str, Any]:
        """All that stands, but for what recall counts and what it is still to be told of.

        Facts are named by operation id: one that comes again has another id.
        """
        facts = await self.semantic.all(self.scope)
        ops = {one["id"]: one["op"] for one in facts}
        items = await self.store.asearch(self.scope.namespace(), limit=10_000)
        unindexed = self.scope.namespace(journal.UNINDEXED)
        stored = {
            f"{'/'.join(item.namespace)} {ops.get(item.key, item.key)}": _named(item.value, ops)
            for item in items
            if item.namespace != unindexed
        }
        return {
            **stored,
            **{
                op: _named({k: v for k, v in one.items() if k not in ACCESSES}, ops)
                for op, one in ((one["op"], one) for one in facts)
            },
        }


def _named(value: Any, ops: dict[str, str]) -> Any:
    """`value` with ids of facts as operation ids, texts sorted, without the time of a change."""
    if isinstance(value, dict):
        kept = {ops.get(k, k): _named(v, ops) for k, v in value.items() if k != "updated"}
        return {k: v for k, v in kept.items() if (k, v) not in _BLANK}
    if isinstance(value, list):
        named = [_named(one, ops) for one in value]
        return sorted(named) if all(isinstance(one, str) for one in named) else named
    return ops.get(value, value) if isinstance(value, str) else value


_BLANK: list[tuple[str, Any]] = [("tags", []), ("earlier", []), ("disputed", []), ("context", None)]
"""A fact that a night had given these is as before without them."""
