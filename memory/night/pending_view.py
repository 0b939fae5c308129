"""Memory as a night sees it: the stored records with the night's operations so far applied.

Operations that are stored already make no difference, because applying is idempotent. So a preview,
which applies nothing, sees the same as a night. Facts are keyed by operation id.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple, Self, cast

import numpy as np
from langgraph.store.base import BaseStore

from memory import entities
from memory.entities import Subject
from memory.facts import Listing, Row, SemanticMemory, Vector
from memory.operations import apply, dependents_of, fact_from, facts_after
from memory.records import EntityProfile, Fact, FactDraft, Operation, Scope, part_id, with_values
from memory.text import regex, term_set

MEANING, WORDS, NAMES, TIME = 0.5, 0.3, 0.1, 0.1
"""Weights of similarity in meaning, shared words, shared names and nearness in time."""

DEPTH = 4
"""Candidates per wanted neighbour, from each of the two searches."""

MOST_WORDS = 8
"""Words of a fact in the search for its neighbours. The ranking weighs all shared words."""

_WORD = regex(r"\w+")

RECENT = 2_000
"""Facts that a night reads: of those last written, of each busy entity, of all others together. A
memory of no more facts is read whole."""

BUSY = 4
"""An entity with more than this part of the facts last written has a reading of its own."""

EVERY = Listing(MappingProxyType({}))
"""The list of all facts, the last written first."""

WEEK = 7 * 24 * 3600.0
"""Seconds after which nearness in time has fallen to 1/e."""


def profiles_after(
    standing: Mapping[str, EntityProfile], operations: Sequence[Operation]
) -> dict[str, EntityProfile]:
    """Profiles by id once `operations` are applied, in order. Pure."""
    return entities.after(standing, {}, operations)[0]


class PendingView:
    """Reads of one scope through a night's operations."""

    def __init__(self, store: BaseStore, semantic: SemanticMemory, scope: Scope) -> None:
        self._store, self._semantic, self._scope = store, semantic, scope
        self._operations = list[Operation]()
        self._on: dict[str, list[Operation]] = {}
        self._added: dict[str, FactDraft] = {}
        self._looked_up: tuple[int, PendingFacts] | None = None
        """(number of added facts, an index of the facts not stored yet), as last looked up."""

    def follow(self, operations: Sequence[Operation]) -> Self:
        """Take in operations added since the last call; returns itself."""
        new = list(islice(operations, len(self._operations), None))
        self._operations += new
        for operation in with_values(new):
            if operation["kind"] not in apply.ON_FACTS:
                continue
            on = self._on.setdefault(operation["target"], [])
            on.append(operation)
            if len(on) == 1 and operation["kind"] == "add_fact":
                self._added[operation["target"]] = cast(FactDraft, operation["after"])
        return self

    async def facts(self, ops: Iterable[str]) -> dict[str, Fact]:
        """The facts that exist among these operation ids."""
        wanted = list(dict.fromkeys(ops))
        stored = await self._semantic.by_op(self._scope, wanted)
        own = {op: stored[op]["op"] if op in stored else op for op in wanted}
        after = self._after(stored.values(), own.values())
        return {op: after[own[op]] for op in wanted if own[op] in after}

    async def with_heirs(self, ops: Iterable[str]) -> dict[str, Fact]:
        """The facts that exist among these operation ids, those that superseded them, and parts of
        them that remain.
        """
        stored, after = dict[str, Fact](), dict[str, Fact]()
        asked, seen = set(ops), set[str]()
        while asked:
            seen |= asked
            found = await self._semantic.by_op(self._scope, sorted(asked))
            found |= await self._semantic.by_id(self._scope, sorted(asked))
            stored |= {fact["op"]: fact for fact in found.values()}
            after = self._after(stored.values(), [*stored, *seen])
            fell = [(op, by) for op, fact in after.items() if (by := fact["superseded_by"])]
            heirs = {id_ for op, by in fell for id_ in (by, part_id(op, by))}
            asked = heirs - seen - after.keys()
        return after

    async def reads_all(self) -> bool:
        """Whether memory is so small that a night reads all of its facts."""
        return await self._semantic.count(self._scope) <= RECENT

    async def holding(self, wanted: Listing = EVERY) -> dict[str, Fact]:
        """The facts of a list that hold by now, planned facts included, by operation id.

        Planned facts pass only the tests of names, of a field and of the limit.
        """
        listing = wanted._replace(filters={**wanted.filters, "invalid_at": None})
        stored = await self._semantic.facts_listed(self._scope, listing)
        new = [one for one in (await self._new()).facts[::-1] if _is_listed(one, wanted)]
        after = self._after([*new, *stored], [fact["op"] for fact in (*new, *stored)])
        found = [fact for fact in after.values() if fact["invalid_at"] is None]
        if wanted.order == "valid_from":
            found.sort(key=lambda fact: fact["valid_from"], reverse=True)
        return {fact["op"]: fact for fact in found[: wanted.limit]}

    async def neighbours(self, facts: Sequence[Fact], limit: int) -> dict[str, list[Fact]]:
        """For each fact, by operation id, the facts nearest to it that hold, nearest first.

        Nearness combines meaning, words, names and time (A-MEM). All words weigh the same, because
        a rarity would change with every new fact.
        """
        new, depth, vectors = await self._new(), DEPTH * limit, dict[str, Vector]()
        for fact in facts:
            vector = new.vectors.get(fact["op"])
            if vector is None:
                vector = await self._semantic.vector_of(self._scope, fact["id"])
            if vector is not None:
                vectors[fact["op"]] = vector
        found = await self._semantic.near(self._scope, list(vectors.values()), depth)
        near = dict(zip(vectors, found, strict=True))
        for op, vector in vectors.items():
            near[op] += new.near(vector, depth)
        return {
            fact["op"]: await self._nearest(fact, near.get(fact["op"], []), limit) for fact in facts
        }

    async def _nearest(
        self, fact: Fact, near: Sequence[tuple[Fact, float]], limit: int
    ) -> list[Fact]:
        """`near`: the facts nearest in meaning, with cosine."""
        new, depth = await self._new(), DEPTH * limit
        worded = await self._semantic.keywords(self._scope, _telling(fact["text"]), depth)
        worded += new.keywords(fact["text"], depth)
        meaning = {one["op"]: max(0.0, score) for one, score in near}
        found = {one["op"]: one for one, _ in (*near, *worded)}
        after = self._after(found.values(), found)
        scored = [
            (_near(fact, one, meaning.get(op, 0.0)), op)
            for op, one in after.items()
            if op != fact["op"] and one["invalid_at"] is None
        ]
        scored.sort(key=lambda pair: (-pair[0], pair[1]))
        return [after[op] for score, op in scored[:limit] if score > TIME]

    async def dependents(self, facts: Sequence[Fact]) -> dict[str, Fact]:
        """The facts that hold and depend on any of these, by operation id."""
        if not facts:
            return {}
        ops = {fact["op"] for fact in facts}
        stored = await dependents_of(
            facts, store=self._store, semantic=self._semantic, scope=self._scope
        )
        planned = [
            one["target"]
            for one in with_values(self._operations)
            if one["kind"] == "change_fact"
            and not ops.isdisjoint(one["after"].get("depends_on", ()))
        ]
        found = await self.facts([*(fact["op"] for fact in stored), *planned])
        return {
            op: fact
            for op, fact in found.items()
            if fact["invalid_at"] is None and not ops.isdisjoint(fact.get("depends_on", ()))
        }

    def _after(self, facts: Iterable[Fact], ops: Iterable[str]) -> dict[str, Fact]:
        mine = [one for op in dict.fromkeys(ops) for one in self._on.get(op, ())]
        return facts_after({fact["op"]: fact for fact in facts}, mine)

    async def _new(self) -> PendingFacts:
        """An index of facts that the operations add and that are not stored yet."""
        if self._looked_up is None or self._looked_up[0] != len(self._added):
            added = dict(self._added)
            stored = await self._semantic.by_op(self._scope, list(added)) if added else {}
            facts = [fact_from(draft) for op, draft in added.items() if op not in stored]
            vectors = await self._semantic.embed([fact["text"] for fact in facts])
            found = PendingFacts(facts, [vectors[fact["text"]] for fact in facts])
            self._looked_up = len(added), found
        return self._looked_up[1]

    async def profiles(self, ids: Iterable[str]) -> dict[str, EntityProfile]:
        """The profiles that exist among `ids`."""
        wanted = list(dict.fromkeys(ids))
        standing = await entities.read(self._store, self._scope, wanted)
        after = profiles_after(standing, self._operations)
        return {id_: after[id_] for id_ in wanted if id_ in after}

    async def about(self, facts: Iterable[Fact], assistant: Sequence[str]) -> dict[str, str]:
        """The names that facts give what they are about, each with the id of its entity.

        `assistant`: the assistant's names, in lower case. Some may have no profile yet.
        """
        given = sorted({name for fact in facts for name in entities.names_about(fact, assistant)})
        known = await entities.named(self._store, self._scope, given)
        ids = {name: entity.id for name, entity in zip(given, known, strict=True)}
        for one in with_values(self._operations):
            if one["kind"] == "remove_entity":  # the profile joined another
                heir = one["before"].get("heir")
                ids = {
                    name: heir or id_ if id_ == one["target"] else id_ for name, id_ in ids.items()
                }
        return ids

    async def subjects(
        self, assistant: Sequence[str], ids: Collection[str], *, recent_ones: bool = False
    ) -> dict[str, Subject]:
        """The entities among `ids` that facts which hold are about, by id, with their newest facts.

        With `recent_ones` also all others that the facts last written are about, with those facts.
        """
        facts = await self.holding(EVERY._replace(limit=RECENT))
        known = await self.about(facts.values(), assistant)
        recent = entities.subjects(facts.values(), known, assistant)
        if await self.reads_all():
            return {id_: one for id_, one in recent.items() if recent_ones or id_ in ids}
        names = defaultdict[str, set[str]](set)
        for name, id_ in known.items():
            names[id_].add(name)
        for id_, one in (await self.profiles(ids)).items():
            names[id_].update((one["name"], *one["aliases"], *one["senders"]))
        busy = [id_ for id_ in ids if id_ in recent and len(recent[id_].facts) > RECENT // BUSY]
        others = {name for id_ in {*ids}.difference(busy) for name in names[id_]}
        for called in (others, *(names[id_] for id_ in busy)):
            newest = EVERY._replace(names=sorted(called), order="valid_from", limit=RECENT)
            facts |= await self.holding(newest) if called else {}
        known = await self.about(facts.values(), assistant)
        found = entities.subjects(facts.values(), known, assistant)
        chosen = {id_: one for id_, one in found.items() if id_ in ids}
        return {**recent, **chosen} if recent_ones else chosen

    async def everyone(self) -> dict[str, EntityProfile]:
        """Every profile, by id."""
        standing = {one["id"]: one for one in await entities.everyone(self._store, self._scope)}
        return profiles_after(standing, self._operations)


def _is_listed(fact: Fact, wanted: Listing) -> bool:
    names = {fact["speaker"], *fact["entities"]}
    named = not wanted.names or not names.isdisjoint(wanted.names)
    return named and (wanted.has is None or wanted.has in fact)


class PendingFacts:
    """A search index of planned facts, each with its vector of length 1."""

    def __init__(self, facts: Sequence[Fact], vectors: Sequence[Vector]) -> None:
        self.facts = facts
        self.vectors = {one["op"]: vector for one, vector in zip(facts, vectors, strict=True)}
        """By operation id."""
        self._matrix = np.stack(vectors) if facts else None
        having: dict[str, list[int]] = defaultdict(list)
        for place, fact in enumerate(facts):
            for term in term_set(fact["text"]):
                having[term].append(place)
        self._having = {term: np.array(places) for term, places in having.items()}

    def near(self, vector: Vector, limit: int) -> list[tuple[Fact, float]]:
        """The `limit` nearest in meaning, nearest first, with cosine (-1..1)."""
        if self._matrix is None:
            return []
        scores = self._matrix @ vector
        best = np.argsort(-scores, kind="stable")[:limit]
        return [(self.facts[place], float(scores[place])) for place in best]

    def keywords(self, text: str, limit: int) -> list[tuple[Fact, float]]:
        """The `limit` facts that share most words with `text`, with the number of words."""
        having = [self._having[term] for term in term_set(text) if term in self._having]
        if not having:
            return []
        counts = np.bincount(np.concatenate(having), minlength=len(self.facts))
        best = np.argsort(-counts, kind="stable")[:limit]
        return [(self.facts[place], float(counts[place])) for place in best if counts[place]]


def _near(fact: Fact, other: Fact, meaning: float) -> float:
    """How near two facts are.

    A name counts as an entity or as a word: not every fact lists its entities. The speaker's
    name is no shared word, since all of the speaker's facts may have it.
    """
    speaker = fact["speaker"] if fact["speaker"] == other["speaker"] else None
    aside = term_set(speaker or "")
    mine, theirs = term_set(fact["text"]) - aside, term_set(other["text"]) - aside
    words = len(mine & theirs) / math.sqrt(len(mine) * len(theirs)) if mine and theirs else 0.0
    names = {term_set(name) for name in (*fact["entities"], *other["entities"])}
    about = [term_set(one["text"]).union(*map(term_set, one["entities"])) for one in (fact, other)]
    named = sum(name <= about[0] & about[1] for name in names) / len(names) if names else 0.0
    apart = abs(_seconds(fact["valid_from"]) - _seconds(other["valid_from"]))
    return MEANING * meaning + WORDS * words + NAMES * named + TIME * math.exp(-apart / WEEK)


def _telling(text: str) -> str:
    """The longest words of a text: each costs a look-up, and common words are short (Zipf)."""
    words = sorted(dict.fromkeys(_WORD.findall(text)), key=len, reverse=True)
    return " ".join(words[:MOST_WORDS])


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


class Changes(NamedTuple):
    """Pending changes of memories, for recalls that try a night out."""

    facts: Mapping[str, Fact | None]
    """Changed facts by id; None for a fact that is gone."""
    scores: Mapping[str, int] = MappingProxyType({})
    """Importance of journal entries that the night scored, by id."""

    @classmethod
    def of(cls, operations: Sequence[Operation], stored: Mapping[str, Fact]) -> Changes:
        """The changes of `operations` to the `stored` facts (by operation id)."""
        before, after = facts_after(stored, []), facts_after(stored, operations)
        changed = {
            fact["id"]: after.get(op) for op, fact in stored.items() if after.get(op) != before[op]
        }
        return cls(changed)

    def gone(self) -> set[str]:
        """The ids of memories that are gone."""
        return {id_ for id_, fact in self.facts.items() if fact is None}

    def seen(self, rows: Sequence[tuple[Row, float]]) -> list[tuple[Row, float]]:
        """The rows found, with the changes made."""
        return [(row, score) for one, score in rows if (row := self._row(one)) is not None]

    def _row(self, row: Row) -> Row | None:
        if row.id in self.scores:
            return row._replace(payload={**row.payload, "importance": self.scores[row.id]})
        if row.id not in self.facts:
            return row
        fact = self.facts[row.id]
        if fact is None:
            return None
        fields = {key: fact.get(key) for key in ("invalid_at", "source_events", "source_entries")}
        return row._replace(payload={**row.payload, **fields})
