"""The work of dreaming, fixed once compacting is over, so that a night is repeatable."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from langgraph.store.base import BaseStore
from typing_extensions import TypedDict

from memory import entities, journal
from memory.entities import Subject
from memory.guards import rests_on
from memory.night import record as night
from memory.night.steps import NightContext
from memory.operations import last_reflection, undreamed_facts
from memory.records import (
    REFLECTION,
    Conversation,
    EntityProfile,
    Fact,
    JournalEntry,
    Observation,
    RecallHit,
    Scope,
)
from memory.settings import Settings
from memory.state import State

LEAST_FACTS = 2
"""Facts that name somebody who never spoke, from which a profile is made."""

MOST_READ = 30
"""Entities whose facts one night reads. The next night takes the others."""

LONGEST_QUERY = 2000
"""Characters of an entry with which facts near it are found."""

DREAMT = ("settle_fact", "change_entity", "reflected")
"""Kinds of operations that mark a fact, an entity or the reflection as done."""


class DreamWork(TypedDict):
    """The inputs of dreaming, as the night's record keeps them."""

    facts: list[str]
    """Operation ids of facts that no night has compared with their neighbours."""
    entities: list[str]
    """Ids of entities with new facts or enough observations, the most important first."""
    reflect: bool


async def work_waits(
    state: State, store: BaseStore, scope: Scope, settings: Settings, now: datetime
) -> bool:
    """Whether a night has work beside pending entries."""
    decided = await _decided_already(store, scope)
    if any(op not in decided for op in await undreamed_facts(store, scope)):
        return True
    if stale(state["conversations"], now=now, settings=settings):
        return True
    profiles = await entities.everyone(store, scope)
    ripened = (one for one in profiles if ripe(one, settings.min_observations))
    if any(one["id"] not in decided for one in ripened):
        return True
    if REFLECTION in decided:
        return False
    counted = await counted_entries(store, scope, await last_reflection(store, scope))
    return sum(entry["importance"] for entry in counted) >= settings.reflection_threshold


async def work_of(context: NightContext) -> DreamWork:
    """The work of dreaming after compacting."""
    store, scope, settings = context.store, context.scope, context.settings
    view, assistant = context.pending_view(), assistant_names(settings)
    undreamed, profiles = await undreamed_facts(store, scope), await view.everyone()
    decided = await _decided_already(store, scope)
    ripened = [id_ for id_, one in sorted(profiles.items()) if ripe(one, settings.min_observations)]
    new = await view.facts([*undreamed, *context.added_facts()])
    named = await view.about(new.values(), assistant)  # With older facts, too.
    subjects = await view.subjects(assistant, {*named.values()}, recent_ones=True)
    since = await last_reflection(store, scope)
    counted = context.entries_after(await counted_entries(store, scope, since))
    total = sum(entry["importance"] for entry in counted if journal.counts(entry))
    facts = dict.fromkeys([*undreamed, *context.added_facts()])
    tended = [one["target"] for one in entities.joins(profiles)]
    tended += [*with_news(subjects, profiles, facts), *ripened]
    return {
        "facts": [op for op in facts if op not in decided],
        "entities": [id_ for id_ in dict.fromkeys(tended) if id_ not in decided],
        "reflect": total >= settings.reflection_threshold and REFLECTION not in decided,
    }


async def known_facts(context: NightContext, batch: Sequence[JournalEntry]) -> list[RecallHit]:
    """The facts that consolidation shows with a batch: those made from it, then the facts nearest
    to any of its entries and their speakers, as many as the prompt has room for.

    A batch of owners' words is shown no fact that rests on words of others, and no batch a fact of
    doubtful origin: the night makes it again.
    """
    queries = [f"{one['source_entity'] or ''}: {one['content']}"[:LONGEST_QUERY] for one in batch]
    every = await context.recall(*queries, limit=context.settings.recall_limit, facts_only=True)
    found = [hit for hits in every for hit in hits]
    best = {hit["id"]: hit for hit in sorted(found, key=lambda hit: hit["score"])}
    known = sorted(best.values(), key=lambda hit: -hit["score"])
    made = [_as_hit(fact) for fact in await _facts_from(context, batch)]
    known = [*made, *(hit for hit in known if hit["id"] not in {one["id"] for one in made})]
    if any(rests_on(one["source_entity"], one, context.owners) for one in batch):
        return [hit for hit in known if hit["speaker"] or not hit.get("origins")]
    return [hit for hit in known if not rests_on(hit["speaker"], hit, context.owners)]


async def _facts_from(context: NightContext, batch: Sequence[JournalEntry]) -> list[Fact]:
    """The facts that hold and cite an entry of the batch: the model would make them again."""
    semantic, scope, ids = context.resources.semantic, context.scope, {one["id"] for one in batch}
    waiting = await undreamed_facts(context.store, context.scope)
    ends = await journal.links.read(context.store, scope, ids)
    near = {other for end in ends.values() for other in end["linked_to"]}
    found = await semantic.by_op(scope, waiting)
    found |= await semantic.by_id(scope, sorted(near))
    facts = {fact["id"]: fact for fact in found.values()}
    return [
        fact
        for fact in sorted(facts.values(), key=lambda one: (one["valid_from"], one["op"]))
        if fact["invalid_at"] is None and not ids.isdisjoint(fact["source_entries"])
    ]


def _as_hit(fact: Fact) -> RecallHit:
    hit: RecallHit = {
        "id": fact["id"],
        "kind": "fact",
        "text": fact["text"],
        "score": 1.0,
        "sources": fact["source_events"],
        "at": fact["valid_from"],
        "speaker": fact["speaker"],
    }
    return {**hit, "origins": fact["origins"]} if "origins" in fact else hit


async def counted_entries(store: BaseStore, scope: Scope, since: str | None) -> list[JournalEntry]:
    """The entries after `since` that count towards a reflection, none by the assistant."""
    entries = await journal.since(store, scope, since)
    return [entry for entry in entries if journal.counts(entry)]


async def _decided_already(store: BaseStore, scope: Scope) -> set[str]:
    """Facts, entities and reflection that held nights decided about: they wait for a person."""
    found: set[str] = set()
    for record in await night.records(store, scope):
        if record.get("status") == "held" and not (
            record.get("reduced") or record.get("forgotten")
        ):
            plans = await night.plans_of(store, scope, record["id"])
            dreamt = plans.operations("dreaming")
            found |= {one["target"] for one in dreamt if one["kind"] in DREAMT}
    return found


def ripe(profile: EntityProfile, least: int) -> list[Observation]:
    """The observations that wait to be consolidated, if there are at least `least`; else []."""
    waiting = [one for one in profile["observations"] if not one["consolidated"]]
    return waiting if len(waiting) >= least else []


def with_news(
    subjects: Mapping[str, Subject], profiles: Mapping[str, EntityProfile], new: Collection[str]
) -> list[str]:
    """The ids of entities whose facts a night should read, at most MOST_READ, speakers first.

    A profile has news if facts were made since a night last read its facts. An entity without a
    profile gets one for what it says itself, or if at least LEAST_FACTS facts name it, one of them
    `new` (operation ids): not every capitalised word is somebody.
    """
    found = dict[str, tuple[bool, int]]()
    for id_, subject in subjects.items():
        profile = profiles.get(id_)
        if profile is not None:
            news = len(unread(profile, subject.facts, new))
        else:
            known = subject.speaks or len(subject.facts) >= LEAST_FACTS
            news = sum(fact["op"] in new for fact in subject.facts) if known else 0
        if news:
            found[id_] = (not subject.speaks, -news)
    return sorted(found, key=lambda id_: (found[id_], id_))[:MOST_READ]


def unread(profile: EntityProfile, facts: Sequence[Fact], new: Collection[str] = ()) -> list[Fact]:
    """Those of the entity's facts that are `new`, or made since a night last read its facts."""
    until = profile.get("read_until") or ""
    return [fact for fact in facts if fact["op"] in new or fact["created"] > until]


def assistant_names(settings: Settings) -> list[str]:
    """What the assistant is called, in lower case."""
    return ["assistant", "circadian", *(name.casefold() for name in settings.names if name.strip())]


def stale(
    conversations: Mapping[str, Conversation], *, now: datetime, settings: Settings
) -> list[str]:
    """The keys of conversations that are idle for long and have no pending action."""
    before = now - timedelta(hours=settings.stale_conversation_hours)
    return [
        key
        for key, one in conversations.items()
        if datetime.fromisoformat(one["last_at"]) < before and not one["pending_actions"]
    ]
