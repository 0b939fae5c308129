"""Recall: what long-term memory holds about a query, best first. It reads and never writes.

Facts and journal entries are searched together, by meaning and by words, and ranked by one rule
(`ranking`); memories linked to the best ones come with them. Entries are indexed when they are
written (`episodes`), and the users of the results note the recall (`night.keep_probe`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import filterfalse, islice
from types import MappingProxyType
from typing import NamedTuple, Protocol, cast

from langgraph.store.base import BaseStore

from memory import entities, journal, telemetry
from memory.errors import InputError, ModelError
from memory.events import event_class_of
from memory.facts import Counted, Matches, Row, SemanticMemory, Vector
from memory.guards import telling
from memory.journal import Listeners, Told, links
from memory.models import HashingEmbeddings
from memory.recall.episodes import SPEAKERS
from memory.recall.merging import (
    joined_into,
    lifted_by_links,
    merged,
    newer_value_first,
    says_again,
    that_hold,
    told_once,
    with_those_that_stay,
)
from memory.recall.ranking import (
    FIRST,
    Candidate,
    Proof,
    Scored,
    calibrated,
    candidate_of,
    certainty,
    leading,
    ordered,
    proof_of,
    rank,
    weights_of,
)
from memory.records import INSIGHT, Earlier, RecallHit, Scope
from memory.settings import Settings
from memory.text import (
    Query,
    approximate_tokens,
    asks_nothing,
    best_sentences,
    content_stems,
    cut_to,
    is_small_talk,
    read_query,
)

CANDIDATES = 100
"""Memories taken of each kind, from each of the two searches, beyond the number wanted."""

WORDS_OF_NAMES = 60
"""Words of a query that are searched for speakers' names."""

LEADING, ASIDE = 50, 2
"""The best LEADING entries bring their neighbours in the session: ASIDE on each side."""

TELLING = 2
"""Stems that two facts of a speaker share, at least, if the newer may replace the older."""

LINKED = 10
"""Follow links from the top N; add at most N."""

MARKED = 60
"""The top N inherit the marks of facts that the search did not find."""

CHAIN = 4
"""Steps in which the facts made from entries, and their successors, are read."""

MADE_OF, DEPENDS_ON = "made_of", "depends_on"
"""Relations of a fact: to an entry that it was made from, and to a fact that it rests on."""

LINKED_SHARE = 0.5
"""Score of an added memory, as a share of the score of the memory that led to it."""

LIFTING = 2
"""The top N lift memories that they are linked to."""

IN_PROMPT = 30
"""Memories in a prompt, at most: the tokens decide how many."""

LONGEST_LINE = 64
"""Tokens of a memory in a prompt; of a longer one the best sentences are shown."""

BESIDE = 14
"""Tokens of a line beside the text: number, date, speaker."""

LEAST = 20
"""Tokens to which a memory that does not fit may be shortened."""

LONGEST_SMALL_TALK = 60
"""Characters of an entry that may be mere small talk."""

log = logging.getLogger(__name__)


class PendingChanges(Protocol):
    """Memory as a night would leave it, so that the night can be tried out on recall."""

    def gone(self) -> set[str]:
        """Ids of facts that the night removes."""
        ...

    def seen(self, rows: Scored) -> Scored:
        """The rows that the night leaves, with their scores."""
        ...


@telemetry.timed(telemetry.RECALL_SECONDS)
async def recall(
    queries: Sequence[str],
    *,
    scope: Scope,
    now: datetime,
    semantic: SemanticMemory,
    store: BaseStore,
    settings: Settings,
    limit: int,
    max_tokens: int | None = None,
    include_superseded: bool = False,
    facts_only: bool = False,
    visible: Collection[str] = (),
    heard: bool = False,
    changes: PendingChanges | None = None,
) -> list[list[RecallHit]]:
    """Find at most `limit` memories about each of `queries`, best first; they are read together.

    Scores are 0..1: how certain it is that the best memory matches by more than chance, and how the
    others compare with it. [] if nothing fits. If the embedder is down, words alone decide.

    Args:
        queries, limit: an empty query or a limit below 1 is an InputError.
        scope, semantic, store: whose memory, and where it is.
        now, settings: for recency (UTC), and of recall.
        max_tokens: for a prompt: long memories are shortened, unimportant weak ones left out.
        include_superseded: also facts that no longer hold, marked; so does a query about the past.
        facts_only: neither journal entries nor links, as for a night that works on the entries.
        visible: ids of events and entries that are shown; what comes from these alone is left out.
        heard: whether it is a message. If it asks nothing, a memory must match by itself.
        changes: a pending night's changes, as if they were made.
    """
    if not all(query.strip() for query in queries):
        raise InputError("there is nothing to recall: the query is empty")
    if limit < 1:
        raise InputError(f"recall gives at least 1 memory, not {limit}")
    memory = _Memory(scope, semantic, store, settings, changes)
    asked = {n: read for n, one in enumerate(queries) if (read := await memory.read(one))}
    every = await semantic.run(memory.search, [*asked.values()], facts_only, now, limit)
    hits = [list[RecallHit]() for _ in queries]
    for place, found in zip(asked, every, strict=True):
        shown, proof = await memory.judged(found, facts_only=facts_only, past=include_superseded)
        shown = [one for one in _unseen(shown, visible) if not memory.asks_another(one, found)]
        if max_tokens is not None:
            fit = _for_prompts(shown, found, settings.names, heard)
            # Among facts alone none restates another: those beyond the limit can stay unseen.
            shown = told_once([*islice(fit, limit if facts_only else None)], found.query.terms)
        hits[place] = await memory.hits(calibrated(shown[:limit], proof.scale), proof.fit)
        if max_tokens is not None:
            hits[place] = within(hits[place], max_tokens, weights_of(found.query, found.known))
    return hits


async def named_speakers(store: BaseStore, scope: Scope, query: str) -> set[str]:
    """The known names in `query`: of speakers, and of entities with their aliases."""
    text = " ".join(query.split()[:WORDS_OF_NAMES])
    return await entities.called_in(store, scope, text, beside=SPEAKERS)


async def fit_for(
    listeners: Listeners,
    hits: Sequence[RecallHit],
    *,
    scope: Scope,
    semantic: SemanticMemory,
    store: BaseStore,
    settings: Settings,
) -> list[RecallHit]:
    """The hits without an owner's private words that `listeners` are not to know."""
    if listeners.audience == "private" or not hits:
        return list(hits)
    said: list[RecallHit | Earlier] = [*hits]
    said += [one for hit in hits for one in hit.get("earlier", ())]
    facts = await semantic.by_id(scope, [one["id"] for one in said])
    told = [
        Told(
            one["speaker"],
            facts[one["id"]]["source_entries"] if one["id"] in facts else [one["id"]],
        )
        for one in said
    ]
    private = await journal.private_ones(store, scope, told, listeners=listeners, settings=settings)
    kept = {one["id"] for one, hidden in zip(said, private, strict=True) if not hidden}
    return [_without_earlier(hit, kept) for hit in hits if hit["id"] in kept]


def _without_earlier(hit: RecallHit, kept: Collection[str]) -> RecallHit:
    """The hit without its superseded facts, unless all of them may be told."""
    earlier = hit.get("earlier", ())
    if all(one["id"] in kept for one in earlier):
        return hit
    others = {event for one in earlier for event in one["sources"]}
    left = {key: value for key, value in hit.items() if key != "earlier"}
    left["sources"] = [event for event in hit["sources"] if event not in others]
    return cast(RecallHit, left)


def hit_of(candidate: Candidate, against: Collection[str] = ()) -> RecallHit:
    """A candidate as a hit. A fact's time is when it came to hold. `against`: ops that hold."""
    payload = candidate.row.payload
    claims = payload.get("disputed", ()) if payload["kind"] == "fact" else candidate.disputes
    hit: RecallHit = {
        "id": candidate.id,
        "kind": "fact" if payload["kind"] == "fact" else "episode",
        "text": payload["data"],
        "score": candidate.score,
        "sources": list(candidate.sources),
        "at": payload["valid_from"],
        "speaker": payload["speaker"],
        "parts": dict(candidate.parts),
    }
    if origins := _origins([candidate.row, *candidate.earlier]):
        hit = {**hit, "origins": origins}
    if candidate.id.startswith(INSIGHT):
        hit = {**hit, "inference": True}
    if candidate.earlier:
        hit = _with_earlier(hit, candidate.earlier)
    if candidate.superseded or "outdated" in candidate.marks:
        gone: RecallHit = {**hit, "superseded": True}
        by = candidate.heir or payload.get("superseded_by")
        return {**gone, "superseded_by": by} if by else gone
    if "partly_superseded" in candidate.marks:
        hit = {**hit, "partly_superseded": True}
    if payload.get("doubtful"):
        hit = {**hit, "doubtful": True}
    return {**hit, "disputed": True} if {*claims} & {*against} else hit


def _origins(rows: Sequence[Row]) -> list[str]:
    """People other than the speaker on whose words a hit or its superseded facts rest."""
    first, *earlier = (row.payload for row in rows)
    names = [*(first.get("origins") or ())]
    for old in earlier:
        names += [*(old.get("origins") or ()), *([old["speaker"]] if old["speaker"] else [])]
    own = first["speaker"]
    return list(dict.fromkeys(name for name in names if name != own))


def _with_earlier(hit: RecallHit, rows: Sequence[Row]) -> RecallHit:
    """The hit with its superseded facts, each with the time of its successor, and their sources."""
    earlier, until = list[Earlier](), hit["at"]
    for row in rows:
        one: Earlier = {
            "id": candidate_of(row, {}).id,
            "text": row.payload["data"],
            "until": until,
            "speaker": row.payload["speaker"],
            "sources": list(row.payload["source_events"]),
        }
        earlier.append(one)
        until = row.payload["valid_from"]
    sources = [*hit["sources"], *(event for one in earlier for event in one["sources"])]
    return {**hit, "earlier": earlier, "sources": list(dict.fromkeys(sources))}


def within(
    hits: Sequence[RecallHit], tokens: int, weights: Mapping[str, float] = MappingProxyType({})
) -> list[RecallHit]:
    """The first hits that fit `tokens` as lines; of long ones their best sentences.

    `weights`: of the query's words. An estimate: `memory.prompt.rendering` cuts the lines, too.
    """
    kept: list[RecallHit] = []
    for hit in hits:
        text = best_sentences(hit["text"], weights, LONGEST_LINE)
        size = approximate_tokens(text) + BESIDE
        size += sum(approximate_tokens(one["text"]) + BESIDE // 2 for one in hit.get("earlier", ()))
        if size > tokens:
            if tokens - BESIDE < LEAST:
                break
            text = cut_to(text, tokens - BESIDE, 1.0)
        tokens -= min(size, tokens)
        kept.append({**hit, "text": text})
    return kept


class SearchResult(NamedTuple):
    """The results of a search."""

    query: Query
    ranked: list[Candidate]
    known: Counted
    cosines: Mapping[str, float]
    """By row id; empty where the embedder compares little more than words."""


@dataclass(frozen=True)
class _Memory:
    """What one recall reads."""

    scope: Scope
    semantic: SemanticMemory
    store: BaseStore
    settings: Settings
    changes: PendingChanges | None

    def search(
        self,
        asked: Sequence[tuple[Query, Vector | None]],
        facts_only: bool,
        now: datetime,
        limit: int,
    ) -> list[SearchResult]:
        """The results of both searches, and the neighbours of the best, ranked. Blocking.

        Facts that no longer hold are included: the entry that stated one must not stand for it.
        """
        with self.semantic.open_table().reading():
            every = self.semantic.lookup(
                self.scope,
                asked=[(query.terms, vector) for query, vector in asked],
                kinds=["fact"] if facts_only else ["fact", "episode"],
                limit=CANDIDATES + limit,
                include_superseded=True,
                min_trust=self.settings.min_source_trust,
            )
            pairs = zip(asked, every, strict=True)
            return [self._ranked(query, found, facts_only, now) for (query, _), found in pairs]

    def _ranked(
        self, query: Query, found: Matches, facts_only: bool, now: datetime
    ) -> SearchResult:
        near, worded = (
            [pair for pair in self._seen(some) if not self._is_small_talk(pair[0])]
            for some in (found.near, found.worded)
        )
        if not facts_only:
            again = self._again([row for row, _ in (*near, *worded)], query.terms)
            near, worded = (
                [pair for pair in some if pair[0].id not in again] for some in (near, worded)
            )
        by_words = isinstance(self.semantic.open_embeddings(), HashingEmbeddings)
        first = {row.seq for row in leading(near, worded, LEADING)}
        neighbours = self.semantic.beside(self.scope, first, ASIDE).values()
        best = rank(
            query,
            near,
            worded,
            beside=filter(self._trusted, filterfalse(self._is_small_talk, neighbours)),
            now=now,
            settings=self.settings,
            by_words=by_words,
        )
        cosines = {} if by_words else {row.id: cosine for row, cosine in near}
        return SearchResult(query, newer_value_first(best, query), found.known, cosines)

    async def judged(
        self, found: SearchResult, *, facts_only: bool, past: bool
    ) -> tuple[list[Candidate], Proof]:
        """The found memories that hold, best first, and what they prove; [] if nothing fits."""
        past = past or found.query.past
        if facts_only:
            facts = await self.semantic.run(self._facts, found.ranked, {}) if past else {}
            stays = await self._joined(facts | {one.id: one.row for one in found.ranked})
            together = merged(with_those_that_stay(found.ranked, stays))
            shown = [one for one in together if past or not one.superseded]
        else:
            shown = await self.with_linked(found.ranked, found.query.terms, past=past)
        proof = proof_of(shown, found.query, found.known, found.cosines)
        return [one for one in shown if proof.scale and one.score > 0], proof

    async def with_linked(
        self, ranked: Sequence[Candidate], wanted: Sequence[str], *, past: bool
    ) -> list[Candidate]:
        """`ranked` without duplicates, and with the memories that the best are linked to.

        Linked memories are lifted if they were found, else added. One hop, from facts and entries
        alike. A memory that was found and is not shown is not added.
        """
        ends = await links.read(self.store, self.scope, [one.id for one in ranked[:MARKED]])
        # Before the first night nothing leads to other facts, and no thread is asked.
        payloads = (one.row.payload for one in ranked)
        leads = any(one.get("superseded_by") or one.get("disputed") for one in payloads)
        leads = leads or any(end["relations"] for end in ends.values())
        facts = await self.semantic.run(self._facts, ranked, ends) if leads else {}
        stays = await self._joined(facts | {one.id: one.row for one in ranked})
        facts = {id_: row for id_, row in facts.items() if id_ not in stays}
        found = merged(with_those_that_stay(ranked, stays), facts, wanted)
        shown = that_hold(found, wanted, past=past)
        if not self.settings.recall_weight_links:
            return ordered(shown)
        near = [_linked_to(candidate, ends) for candidate in shown[:LINKED]]
        higher = lifted_by_links(shown, near[:LIFTING], self.settings.recall_weight_links)
        known = {*stays, *(one.id for one in ranked), *(id_ for one in found for id_ in one.ids)}
        added = await self._added(shown, near, known)
        if not added:
            return ordered(higher)
        # A link may lead from an entry to the fact that repeats it, or that no longer holds.
        hidden = [candidate for candidate in found if candidate.superseded and not past]
        together = merged(ordered([*hidden, *higher, *added]), facts, wanted)
        return that_hold(together, wanted, past=past)

    async def _joined(self, known: Mapping[str, Row]) -> dict[str, Row]:
        """The facts that stay, by the ids of those that were joined into them."""
        stays = {id_: stay for id_, row in known.items() if (stay := joined_into(row, known))}
        ends = await links.read(self.store, self.scope, stays) if stays else {}
        for id_, end in ends.items():
            how = end["relations"].get(stays[id_].id, {}).get("relation")
            if how not in (None, "duplicates"):  # its entry told of a change
                del stays[id_]
        return stays

    def _facts(self, ranked: Sequence[Candidate], ends: Mapping[str, links.End]) -> dict[str, Row]:
        """Facts beside `ranked`, by id: those made from the best entries, those on which the best
        facts rest, and those that superseded or contradict one of these. Blocking.
        """
        seen, facts = {one.id for one in ranked}, dict[str, Row]()
        near = {
            other
            for end in ends.values()
            for other, link in end["relations"].items()
            if link["relation"] in (MADE_OF, DEPENDS_ON)
        }
        best = {one.id for one in ranked[:MARKED]} | near
        rows = [one.row for one in ranked if one.id in best]
        missing = {*near}
        for _ in range(CHAIN):
            missing |= {by for row in rows if (by := row.payload.get("superseded_by"))}
            against = {op for row in rows for op in row.payload.get("disputed") or ()}
            read = self.semantic.facts(self.scope, missing - seen)
            read += [row for row in self.semantic.made(self.scope, against) if row.id not in seen]
            rows = [row for row, _ in self._seen([(row, 0.0) for row in read])]
            facts |= {row.id: row for row in rows if self._trusted(row)}
            seen |= missing | facts.keys()
        return facts

    async def hits(self, shown: Sequence[Candidate], fit: Collection[str]) -> list[RecallHit]:
        """`shown` as hits, marked faint if not in `fit`. A dispute ends with its other side."""
        ops = sorted({op for one in shown for op in one.disputes})
        against = await self.semantic.by_op(self.scope, ops) if ops else {}
        rows = [(Row(0, fact["id"], {**fact}), 0.0) for fact in against.values()]
        ids = {row.id for row, _ in self._seen(rows) if row.payload["invalid_at"] is None}
        holding = {op for op, fact in against.items() if fact["id"] in ids}
        hits = ((one.id in fit, hit_of(one, holding)) for one in shown)
        return [hit if fits else {**hit, "faint": True} for fits, hit in hits]

    async def _added(
        self, shown: Sequence[Candidate], near: Sequence[Sequence[str]], known: set[str]
    ) -> list[Candidate]:
        if self.changes is not None:
            known = known | self.changes.gone()
        scores: dict[str, float] = {}
        for candidate, ids in zip(shown, near, strict=False):
            for id_ in ids:
                if id_ not in known:
                    scores.setdefault(id_, candidate.score * LINKED_SHARE)
        rows = await self.semantic.run(self._rows, list(scores)[:LINKED]) if scores else {}
        return [
            candidate_of(row, {"link": scores[id_]})
            for id_, row in rows.items()
            if self._trusted(row)
        ]

    def _rows(self, ids: Sequence[str]) -> dict[str, Row]:
        facts = self.semantic.facts(self.scope, ids)
        return self.semantic.entries(self.scope, ids) | {row.id: row for row in facts}

    def _again(self, rows: Sequence[Row], wanted: Sequence[str]) -> set[str]:
        """The facts that say the same as an entry that was not found. Blocking.

        Otherwise facts, of which there are fewer than entries, would crowd out other entries.
        """
        facts = {row.id: row for row in rows if row.payload["kind"] == "fact"}
        found = {row.payload["op"] for row in rows if row.payload["kind"] == "episode"}
        left = [one for one in facts.values() if found.isdisjoint(one.payload["source_entries"])]
        sources = {op for one in left for op in one.payload["source_entries"]}
        entries = self.semantic.entries(self.scope, sources)
        return {one.id for one in left if says_again(one, entries, wanted)}

    def _seen(self, rows: Scored) -> Scored:
        return rows if self.changes is None else self.changes.seen(rows)

    def _is_small_talk(self, row: Row) -> bool:
        text, names = row.payload["data"], self.settings.names
        return len(text) <= LONGEST_SMALL_TALK and is_small_talk(text, names, praise=True)

    def asks_another(self, candidate: Candidate, found: SearchResult) -> bool:
        """Whether an entry is a question without a word of the query.

        The words around such an entry found it, and it tells nothing by itself.
        """
        payload = candidate.row.payload
        return (
            payload["kind"] != "fact"
            and "?" in payload["data"]  # a cheap test first: no text without it is a query
            and event_class_of(payload["data"], self.settings.names)[0] == "query"
            and not certainty(candidate, found.query.terms, found.known, found.cosines)
        )

    async def read(self, text: str) -> tuple[Query, Vector | None] | None:
        """A query and its vector, if the embedder gives one; None for one that asks nothing."""
        read = read_query(text, await named_speakers(self.store, self.scope, text))
        query = replace(read, terms=telling(read.terms, text))
        if asks_nothing(text, [*self.settings.names, *query.people]):
            return None
        try:
            return query, await self.semantic.embed_query(query.text)
        except ModelError as error:
            log.warning("%s; recall goes by words until it answers", error)
            return query, None

    def _trusted(self, row: Row) -> bool:
        return bool(row.payload["trust"] >= (self.settings.min_source_trust or 0.0))


def _unseen(found: Sequence[Candidate], visible: Collection[str]) -> list[Candidate]:
    """The memories that the conversation does not show, and facts of it that may replace one.

    Until a night has compared them, the older fact alone would pass for what holds.
    """
    hidden = {one.id for one in found if _stands_in(one, visible)}
    left = [one for one in found if one.id not in hidden]
    facts = [one for one in left if one.row.payload["kind"] == "fact"] if hidden else []
    return [
        one for one in found if one.id not in hidden or any(_replaces(one, fact) for fact in facts)
    ]


def _replaces(one: Candidate, other: Candidate) -> bool:
    """Whether one fact restates another fact of its speaker, as far as words tell."""
    mine, theirs = one.row.payload, other.row.payload
    if mine["kind"] != "fact" or mine["speaker"] is None or mine["speaker"] != theirs["speaker"]:
        return False
    shared = {*content_stems(mine["data"])} & {*content_stems(theirs["data"])}
    return mine["valid_from"] > theirs["valid_from"] and len(shared) >= TELLING


def _stands_in(candidate: Candidate, visible: Collection[str]) -> bool:
    """Whether the conversation or a page shows a memory, and all that it superseded."""
    sources, seen = {*candidate.sources}, {*visible}
    shown = candidate.id in seen or (bool(sources) and sources <= seen)
    return shown and all({*row.payload["source_events"]} <= seen for row in candidate.earlier)


def _for_prompts(
    shown: Sequence[Candidate], found: SearchResult, names: Collection[str], heard: bool
) -> Iterator[Candidate]:
    """`shown` (best first) without fillers, and without memories that a night scored low, unless
    they fit very well.

    A memory fits very well if it is among the first by its words or its own meaning. A conclusion
    that says no more about the query than its evidence leaves its room to the evidence.
    """
    left = (one for one in shown if "evidence" not in one.parts)
    asked = not heard or not {*"?\uff1f\u061f"}.isdisjoint(found.query.text)
    for place, one in enumerate(left):
        fits = certainty(one, found.query.terms, found.known, found.cosines) > 0
        near = asked or fits or one.earlier or "supersedes" in one.parts
        weighty = not one.row.payload.get("minor") or (place < FIRST and fits)
        if near and weighty and not asks_nothing(one.row.payload["data"], names):
            yield one


def _linked_to(candidate: Candidate, ends: Mapping[str, links.End]) -> list[str]:
    ids = [
        other for id_ in sorted(candidate.ids) if id_ in ends for other in ends[id_]["linked_to"]
    ]
    return [other for other in dict.fromkeys(ids) if other not in candidate.ids]
