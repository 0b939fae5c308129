"""Recall: what long-term memory holds about a query, best first. The one way to it.

Facts and the journal's entries are searched together, by meaning and by words, and ranked by one
rule (`memory.ranking`); what is linked to the best of them comes with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from langgraph.store.base import BaseStore

from memory import journal, links, metrics, probes
from memory.analysis import Query, read_query
from memory.duplicates import merged
from memory.episodes import catch_up, episode_of, named_speakers
from memory.errors import InputError, ModelError
from memory.models.hashing import HashingEmbeddings
from memory.overlay import Changes
from memory.ranking import Candidate, leading, ordered, rank
from memory.records import RecallHit
from memory.scope import Scope
from memory.semantic import SemanticMemory
from memory.settings import Settings
from memory.tokens import approximate_tokens, cut_to
from memory.vectorstore.table import Kind, Row, Vector

CANDIDATES = 150
"""Memories taken from each of the two searches, at the least."""
LEADING, ASIDE = 50, 2
"""The best so many bring with them so many entries on each side in their sessions."""
LINKED = 10
"""Of the best, so many lead on; and at most so many are led to."""
LINKED_SHARE = 0.5
"""Of the score of what led to it."""
LIFTING, LIFTED = 2, 3
"""So many of the best lift so many each, the best of what they are linked to. A memory of many
links would lift a crowd past what fits better.
"""
LEAST = 60
"""Tokens: a memory that does not fit is shortened to no less."""

log = logging.getLogger(__name__)


@metrics.timed(metrics.RECALL_SECONDS)
async def recall(
    query: str,
    *,
    scope: Scope,
    now: datetime,
    semantic: SemanticMemory,
    store: BaseStore,
    settings: Settings,
    limit: int,
    used_by_agent: bool,
    include_superseded: bool = False,
    facts_only: bool = False,
    changes: Changes | None = None,
) -> list[RecallHit]:
    """At most `limit` memories near `query`, best first; what does not match at all is no hit.

    Scores are 0..1 and compare the hits of one query. What no longer holds is given where
    `include_superseded` or the query asks for it, and marked. What the agent itself uses is at most
    `recall_tokens` long together, and counted as an access of the facts; a person may look at
    more, and leaves no trace. A night wants `facts_only`: the entries are its work in hand, and it
    counts nothing, for it may be a trial. Where the embedder fails, words alone decide.

    `changes` are facts as a night would leave them, to try out what it would do to recall.

    Raises:
        InputError: the query is empty, or the limit below 1.
        MemoryStoreError: memory cannot be read.
    """
    if not query.strip():
        raise InputError("there is nothing to recall: the query is empty")
    if limit < 1:
        raise InputError(f"recall gives at least 1 memory, not {limit}")
    if not facts_only:
        await catch_up(store, semantic, scope)
    read = read_query(query, await named_speakers(store, scope, query))
    kinds: list[Kind] = ["fact"] if facts_only else ["fact", "episode"]
    depth = max(CANDIDATES, 2 * limit)
    found = await _found(read, kinds, scope, now, semantic, settings, depth, changes)
    known = {id_ for one in found for id_ in (one.id, *one.stands_for)}
    known |= changes.gone() if changes is not None else set()
    past = include_superseded or read.past
    shown = _asked_for(found, past=past)
    if not facts_only:
        joined = await _linked(shown, known, scope, semantic, store, settings)
        if len(joined) > len(shown):
            # A link leads from an entry to the fact that says the same, or says it no longer.
            hidden = [one for one in found if one.superseded and not past]
            shown = _asked_for(merged([*hidden, *joined]), past=past)
        else:
            shown = ordered(joined)
    hits = [hit_of(one) for one in shown[:limit] if one.score > 0]
    if used_by_agent:
        hits = within(hits, settings.recall_tokens)
        used = [hit["id"] for hit in hits if hit["kind"] == "fact"]
        if not facts_only:
            await probes.keep(store, scope, query, hits, now=now, most=settings.probes_kept)
            if used:
                await semantic.touch(scope, used, now)
    return hits


def _asked_for(found: Sequence[Candidate], *, past: bool) -> list[Candidate]:
    """Those that hold; with `past` all."""
    return [one for one in found if past or not one.superseded]


def hit_of(one: Candidate) -> RecallHit:
    """A candidate as it is shown. A fact's time is when it came to hold."""
    payload = one.row.payload
    hit: RecallHit = {
        "id": one.id,
        "kind": "fact" if payload["kind"] == "fact" else "episode",
        "text": payload["data"],
        "score": one.score,
        "sources": list(one.sources),
        "at": payload["valid_from"],
        "speaker": payload["speaker"],
        "parts": dict(one.parts),
    }
    if one.superseded:
        gone: RecallHit = {**hit, "superseded": True}
        by = payload.get("superseded_by")
        return {**gone, "superseded_by": by} if by else gone
    return {**hit, "disputed": True} if payload.get("disputed") else hit


def within(hits: Sequence[RecallHit], tokens: int) -> list[RecallHit]:
    """As many of the first as fit `tokens`; one that is too long is shortened, or left out."""
    kept: list[RecallHit] = []
    for hit in hits:
        size = approximate_tokens(hit["text"])
        if size > tokens and tokens < LEAST:
            continue
        text = hit["text"] if size <= tokens else cut_to(hit["text"], tokens, 1.0)
        tokens -= min(size, tokens)
        kept.append({**hit, "text": text})
    return kept


async def _found(
    query: Query,
    kinds: Sequence[Kind],
    scope: Scope,
    now: datetime,
    semantic: SemanticMemory,
    settings: Settings,
    depth: int,
    changes: Changes | None,
) -> list[Candidate]:
    """What both searches find, ranked, each thing once.

    What no longer holds is found with the rest: the entry that said it must not stand for it.
    """
    near, worded = await semantic.lookup(
        scope,
        terms=query.terms,
        vector=await _vector(query.text, semantic),
        kinds=kinds,
        limit=depth,
        include_superseded=True,
        min_trust=settings.min_source_trust,
    )
    if changes is not None:
        near, worded = changes.seen(near), changes.seen(worded)
    beside = await _beside(leading(near, worded, LEADING), scope, semantic)
    least = settings.min_source_trust or 0.0
    trusted = [row for row in beside if row.payload["trust"] >= least]
    by_words = isinstance(semantic.open_embeddings(), HashingEmbeddings)
    ranked = partial(rank, beside=trusted, now=now, settings=settings, by_words=by_words)
    return await asyncio.to_thread(lambda: merged(ranked(query, near, worded)))


async def _beside(rows: Sequence[Row], scope: Scope, semantic: SemanticMemory) -> list[Row]:
    """The entries that stand next to these in their sessions."""
    found = {row.seq for row in rows if row.payload["kind"] == "episode"}
    sessions = dict.fromkeys(row.payload["session"] for row in rows if row.seq in found)
    there = await semantic.timeline(scope, list(sessions)) if sessions else []
    near = {
        other.seq
        for place, one in enumerate(there)
        if one.seq in found
        for other in there[max(0, place - ASIDE) : place + ASIDE + 1]
        if other.session == one.session
    }
    return list((await semantic.numbered(scope, near - found)).values())


async def _vector(text: str, semantic: SemanticMemory) -> Vector | None:
    """None where the embedder fails, or sees nothing in the text."""
    try:
        return await semantic.embed_query(text)
    except ModelError as error:
        log.warning("%s; recall goes by words until it answers", error)
        return None


async def _linked(
    found: Sequence[Candidate],
    known: Container[str],
    scope: Scope,
    semantic: SemanticMemory,
    store: BaseStore,
    settings: Settings,
) -> list[Candidate]:
    """`found`, with what the best of it is linked to: lifted where it was found, else beside it.

    One hop, from facts and entries alike. What is `known` and was left out stays out.
    """
    if not settings.recall_weight_links:
        return list(found)
    leading = found[:LINKED]
    ends = await links.read(store, scope, {id_ for one in leading for id_ in one.ids})
    near = [_ends(one, ends) for one in leading]
    led: dict[str, float] = {}
    for one, ids in zip(leading, near, strict=True):
        for id_ in ids:
            if id_ not in known:
                led.setdefault(id_, one.score * LINKED_SHARE)
    rows = await _rows(list(led)[:LINKED], scope, semantic, store)
    least = settings.min_source_trust or 0.0
    joining = [
        Candidate(row, {"link": led[id_]}, tuple(row.payload["source_events"]))
        for id_, row in rows.items()
        if row.payload["trust"] >= least
    ]
    return [*lifted(found, near[:LIFTING], settings.recall_weight_links), *joining]


def lifted(
    found: Sequence[Candidate], near: Sequence[Collection[str]], share: float
) -> list[Candidate]:
    """`found` with `share` of the score of its first added to what each is linked to. Pure.

    `near`: of each of those first, the ids that it is linked to. What was drawn from it is not
    lifted: that is linked to it for having its words.
    """
    first_hand = [(number, one) for number, one in enumerate(found) if not one.drawn]
    place = {id_: number for number, one in first_hand for id_ in one.ids}
    lifts: dict[int, float] = {}
    for one, ids in zip(found, near, strict=False):
        beside = sorted({place[id_] for id_ in ids if id_ in place})
        for number in beside[:LIFTED]:
            lifts[number] = max(lifts.get(number, 0.0), share * one.score)
    higher = list(found)
    for number, lift in lifts.items():
        one = found[number]
        parts = {**one.parts, "link": min(1 - one.score, lift)}
        higher[number] = replace(one, parts=parts)
    return higher


def _ends(one: Candidate, ends: Mapping[str, links.End]) -> list[str]:
    """What a candidate is linked to, itself aside, each once."""
    there = (other for id_ in sorted(one.ids) if id_ in ends for other in ends[id_]["linked_to"])
    return [other for other in dict.fromkeys(there) if other not in one.ids]


async def _rows(
    ids: Sequence[str], scope: Scope, semantic: SemanticMemory, store: BaseStore
) -> dict[str, Row]:
    """Facts and entries by id, as rows; those that are gone, or never recalled, are left out."""
    entries = await journal.read_many(store, scope, ids)
    others = [id_ for id_ in ids if id_ not in entries]
    facts = await asyncio.gather(*(semantic.get(scope, id_) for id_ in others))
    rows = {
        entry["id"]: Row(0, entry["id"], dict(episode_of(entry)))
        for entry in entries.values()
        if journal.SELF not in entry["tags"]
    }
    for fact in facts:
        if fact is not None:
            rows[fact["id"]] = Row(0, fact["id"], {**fact, "data": fact["text"], "kind": "fact"})
    return rows
