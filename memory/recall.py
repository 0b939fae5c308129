"""Recall: what long-term memory holds about a query, best first.

Facts are ranked by meaning and by words together; episodes that no night has made into facts are
ranked by words. Everything but the two lookups is pure.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from memory.errors import InputError
from memory.models.words import STOP_WORDS, content_stems, stem, words
from memory.records import Fact, JournalEntry, RecallHit
from memory.scope import Scope
from memory.semantic import SemanticMemory

CANDIDATES = 200
"""Facts taken from each of the two lists, at the least."""
SATURATION, LENGTH_PART = 1.2, 0.75
"""BM25's k1 and b (Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework")."""

Scored = Sequence[tuple[Fact, float]]


async def recall(
    query: str,
    *,
    scope: Scope,
    now: datetime,
    semantic: SemanticMemory,
    episodes: Sequence[JournalEntry] = (),
    limit: int = 10,
    include_superseded: bool = False,
) -> list[RecallHit]:
    """At most `limit` memories near `query`, best first; what does not match at all is no hit.

    Scores are 0..1 and compare the hits of one query. `episodes` are journal entries that no fact
    stands for, as `memory.episodes` gives them; of equal hits the one nearest to `now` (UTC) comes
    first. Raises InputError for an empty query or a limit below 1, and the errors of
    `SemanticMemory`.
    """
    if not query.strip():
        raise InputError("there is nothing to recall: the query is empty")
    if limit < 1:
        raise InputError(f"recall gives at least 1 memory, not {limit}")
    depth = max(CANDIDATES, 2 * limit)
    near, worded = await asyncio.gather(
        semantic.search(scope, query, depth, include_superseded=include_superseded),
        semantic.keywords(scope, telling(query), depth, include_superseded=include_superseded),
    )
    facts = [fact_hit(fact, score) for fact, score in fuse(near, worded)]
    shares = await asyncio.to_thread(rank_episodes, query, episodes)
    told = [episode_hit(entry, score) for entry, score in shares]
    return ranked([*facts, *told], now)[:limit]


def telling(query: str) -> str:
    """The words of `query` that tell texts apart; all of them where it has no other."""
    kept = [word for word in words(query) if word not in STOP_WORDS]
    return " ".join(kept) or query


def fuse(near: Scored, worded: Scored) -> list[tuple[Fact, float]]:
    """Half the cosine and half the scaled BM25 of every fact in either list (0..1).

    A cosine is on that scale by itself. Stretched to the best of its list, it would make a match
    of the noise that is all there is when nothing is near; and measured on LoCoMo it ranks worse.
    """
    facts = {fact["id"]: fact for fact, _ in (*near, *worded)}
    by_meaning = {fact["id"]: max(score, 0.0) for fact, score in near}
    by_words = scaled(worded)
    return [
        (fact, 0.5 * by_meaning.get(one, 0.0) + 0.5 * by_words.get(one, 0.0))
        for one, fact in facts.items()
    ]


def scaled(scores: Scored) -> dict[str, float]:
    """Min-max over the whole scope, by fact id: 0 is no match, 1 the best match.

    No match is 0 in BM25 too, so that is the minimum, not the last candidate: else the last of
    two good matches would count for nothing. In a list of equal scores each fact gets 1, and the
    list says nothing about their order.
    """
    best = max((score for _, score in scores), default=0.0)
    return {fact["id"]: score / best for fact, score in scores if score > 0}


def rank_episodes(query: str, episodes: Sequence[JournalEntry]) -> list[tuple[JournalEntry, float]]:
    """The share (0..1) of the query's weight that each episode carries, by its words.

    The weight of a word is BM25's: rare among the episodes weighs more. A word that is in none of
    them counts against all.
    """
    texts = [Counter(content_stems(entry["content"])) for entry in episodes]
    wanted = set(content_stems(query)) or {stem(word) for word in words(query)}
    weights = {word: _rarity(word, texts) for word in wanted}
    mean = sum(text.total() for text in texts) / len(texts) if texts else 0.0
    shares = (_share(weights, text, text.total() / mean if mean else 0.0) for text in texts)
    return list(zip(episodes, shares, strict=True))


def _rarity(word: str, texts: Sequence[Counter[str]]) -> float:
    """Inverse document frequency, always above 0."""
    having = sum(word in text for text in texts)
    return math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))


def _share(weights: Mapping[str, float], text: Counter[str], length: float) -> float:
    """BM25 of a text of `length` times the mean, over that of a mean text with every word once."""
    damping = SATURATION * (1 - LENGTH_PART + LENGTH_PART * length)
    got = sum(
        weight * text[word] * (SATURATION + 1) / (text[word] + damping)
        for word, weight in weights.items()
    )
    whole = sum(weights.values())
    return min(1.0, got / whole) if whole else 0.0


def ranked(hits: Sequence[RecallHit], now: datetime) -> list[RecallHit]:
    """The hits that match, best first; of equals the newer, then the lower id."""
    matching = [hit for hit in hits if hit["score"] > 0]
    return sorted(matching, key=lambda hit: (-hit["score"], _age(hit["at"], now), hit["id"]))


def _age(at: str, now: datetime) -> float:
    """Seconds from `at` to `now`. A time without a zone is UTC."""
    moment = datetime.fromisoformat(at)
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (now - aware).total_seconds()


def fact_hit(fact: Fact, score: float) -> RecallHit:
    """A fact as a hit; its time is when it came to hold."""
    return {
        "id": fact["id"],
        "kind": "fact",
        "text": fact["text"],
        "score": score,
        "sources": list(fact["source_events"]),
        "at": fact["valid_from"],
        "speaker": fact["speaker"],
    }


def episode_hit(entry: JournalEntry, score: float) -> RecallHit:
    """A journal entry as a hit."""
    return {
        "id": entry["id"],
        "kind": "episode",
        "text": entry["content"],
        "score": score,
        "sources": list(entry["sources"]),
        "at": entry["timestamp"],
        "speaker": entry["source_entity"],
    }
