"""Ranking: which of the memories that a search found come first, and why. Pure.

Relevance is made of words (BM25) and meaning (cosine), each scaled to 0..1, of how well the rest of
an entry's session fits, and of who spoke, when, and how much was said. To it come recency,
importance and trust in the form of Generative Agents (Park et al. 2023), small: they break ties.
What was drawn from other memories comes behind them, unless it says more of what is asked.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from heapq import nlargest
from typing import Any

from memory.analysis import Query, asks, terms
from memory.settings import Settings
from memory.vectorstore.table import Row

Scored = Sequence[tuple[Row, float]]

WEIGHTS: Mapping[str, float] = {
    "words": 1.0,
    "meaning": 1.0,
    "session": 0.6,
    "date": 1.2,
    "substance": 0.5,
    "speaker": 0.3,
    "question": -0.3,
}
"""Of the parts of relevance. Chosen on the development split of LoCoMo (Maharana et al. 2024)."""
FAINT_MEANING = 0.02
"""The weight of meaning where the embedder compares little more than words."""
NEAR = 0.3
"""Cosine below which nothing is near."""
TOP_OF_SESSION = 3
"""So many of a session's entries, the best by words and meaning, say how well it fits."""
LONG = 60
"""Words of a text that has all the substance there is."""
LETTERS = 6
"""Of a word with its blank, about."""
SAYS_ALL = 0.6
"""Share of an entry's words from which a fact stands for the entry; below, the entry stays."""
HOURLY_DECAY = 0.995
"""Of recency."""
LOWEST, HIGHEST = 1, 10
"""Importance."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory with what its score is made of."""

    row: Row
    parts: Mapping[str, float]
    """Name -> weighted share; the score is their sum."""
    sources: tuple[str, ...]
    """Ids of the events that it comes from."""
    stands_for: frozenset[str] = frozenset()
    """Ids of the facts and entries that say the same and are not shown beside it."""

    @property
    def at(self) -> datetime:
        """When it came to be, or to hold; UTC."""
        return moment(self.row.payload["valid_from"])

    @property
    def id(self) -> str:
        """A fact's own; of an entry the journal's, under which links know it."""
        payload = self.row.payload
        return self.row.id if payload["kind"] == "fact" else str(payload["op"])

    @property
    def ids(self) -> frozenset[str]:
        """Its own, and those of what it stands for."""
        return self.stands_for | {self.id}

    @property
    def score(self) -> float:
        """0..1; compares the memories of one search."""
        return max(0.0, sum(self.parts.values()))

    @property
    def superseded(self) -> bool:
        """No longer held to be true."""
        return self.row.payload.get("invalid_at") is not None

    @property
    def drawn(self) -> bool:
        """Drawn from other memories: an insight, a note, an archive."""
        return _drawn(self.row)


def rank(
    query: Query,
    near: Scored,
    worded: Scored,
    *,
    beside: Iterable[Row] = (),
    now: datetime,
    settings: Settings,
    by_words: bool = False,
) -> list[Candidate]:
    """What was found by meaning (with cosine) or by words (with BM25), best first.

    What neither is near nor shares a word is left out, but for what stands `beside` a find in its
    session. Of equals the newer comes first. `by_words`: the embedder compares little more than
    words.
    """
    words, meaning = scaled(worded), stretched(near)
    rows = {row.id: row for row, _ in (*near, *worded) if row.id in words or row.id in meaning}
    rows |= {row.id: row for row in beside}
    weights = _weights(query, FAINT_MEANING if by_words else WEIGHTS["meaning"] if near else 0.0)
    fits = _sessions(rows.values(), words, meaning, weights["meaning"])
    shares = _shares(weights, settings)
    found = []
    for id_, row in rows.items():
        told = {
            "words": words.get(id_, 0.0),
            "meaning": meaning.get(id_, 0.0),
            "session": fits[id_],
            **_told(row.payload, query),
            **_weighed(row, now),
        }
        parts = {name: shares[name] * part for name, part in told.items() if part}
        found.append(Candidate(row, parts, tuple(row.payload["source_events"])))
    return ordered(_behind_evidence(found, query))


def leading(near: Scored, worded: Scored, count: int) -> list[Row]:
    """The `count` best of what was found, by meaning and words alone, best first."""
    words, meaning = scaled(worded), stretched(near)
    rows = {row.id: row for row, _ in (*near, *worded)}
    fits = {id_: words.get(id_, 0.0) + meaning.get(id_, 0.0) for id_ in rows}
    return [rows[id_] for id_ in nlargest(count, fits, key=fits.__getitem__) if fits[id_] > 0]


def ordered(found: Iterable[Candidate]) -> list[Candidate]:
    """Best first; of equals the newer, then the lower id."""
    newest = sorted(found, key=lambda one: one.row.id)
    newest.sort(key=lambda one: one.at, reverse=True)
    return sorted(newest, key=lambda one: one.score, reverse=True)


def merged(found: Sequence[Candidate]) -> list[Candidate]:
    """`found` (best first) with each thing once.

    A fact that says what the entry it comes from says is one with it and adds nothing to how well
    it fits: it stands where the entry would stand alone, so that making facts of some entries moves
    no others. Two texts that are the same stand at the better of their places. An entry whose fact
    no longer holds goes the way of the fact.
    """
    entries = {one.row.payload["op"]: one for one in found if one.row.payload["kind"] == "episode"}
    said: dict[str, list[Candidate]] = defaultdict(list)
    left = []
    for one in found:
        source = _said_by(one, entries) if one.row.payload["kind"] == "fact" else None
        if source is not None:
            said[source].append(one)
        elif one.row.payload["kind"] == "fact":
            left.append(one)
    left += [_with_facts(entry, said[op]) for op, entry in entries.items()]
    return _once(ordered(left))


def joined(one: Candidate, other: Candidate) -> Candidate:
    """`one` with the better score of the two and the sources of both."""
    better = max(one, other, key=lambda candidate: candidate.score)
    return replace(
        one,
        parts=better.parts,
        sources=tuple(dict.fromkeys((*one.sources, *other.sources))),
        stands_for=one.stands_for | other.stands_for | {other.id} - {one.id},
    )


def _said_by(fact: Candidate, entries: Mapping[str, Candidate]) -> str | None:
    """The entry among the fact's sources that has all of its words; names aside."""
    payload = fact.row.payload
    sources = [source for source in payload["source_entries"] if source in entries]
    if not sources:
        return None
    names = {
        term for name in (payload["speaker"], *payload["entities"]) for term in terms(name or "")
    }
    says = set(terms(payload["data"])) - names
    for source in sources:
        if says <= set(terms(entries[source].row.payload["data"])):
            return str(source)
    return None


def _with_facts(entry: Candidate, facts: Sequence[Candidate]) -> Candidate:
    """An entry and the facts that say what it says, as one: a fact that says most of it, if any."""
    if not facts:
        return entry
    has = set(terms(entry.row.payload["data"]))
    whole = [
        one
        for one in facts
        if len(has & set(terms(one.row.payload["data"]))) >= SAYS_ALL * len(has)
    ]
    holding = sorted(whole, key=lambda one: one.superseded)
    best = holding[0] if holding else entry
    for one in (entry, *facts):
        if not one.superseded or one is best:
            best = joined(best, one)
    return best if best.superseded else replace(best, parts=entry.parts)


def _once(found: Sequence[Candidate]) -> list[Candidate]:
    """Of those with one text the best, unless one holds and the other does not."""
    kept: dict[tuple[str, bool], Candidate] = {}
    for one in found:
        key = (" ".join(one.row.payload["data"].casefold().split()), one.superseded)
        kept[key] = joined(kept[key], one) if key in kept else one
    return ordered(kept.values())


def scaled(scores: Scored) -> dict[str, float]:
    """BM25 min-max over the whole scope, by row: 0 is no match, 1 the best.

    No match is 0 in BM25 too, so that is the minimum, not the last candidate: else the last of
    two good matches would count for nothing. What was drawn from others, whose words it repeats,
    is measured by the best of those.
    """
    best = max((score for row, score in scores if not _drawn(row)), default=0.0)
    best = best or max((score for _, score in scores), default=0.0)
    return {row.id: min(1.0, score / best) for row, score in scores if score > 0}


def stretched(scores: Scored) -> dict[str, float]:
    """Cosines min-max over the candidates, by row, for embedders differ in what is far to them.

    What has no positive cosine is near to nothing. Few candidates say little of what is far: the
    fewer they are, the nearer to 0 is what counts as the minimum. Where even the nearest is far,
    it does not count in full.
    """
    near = {row.id: score for row, score in scores if score > 0}
    if not near:
        return {}
    low = min(near.values()) * (1 - 1 / len(near))
    span = max(NEAR, *near.values()) - low
    return {id_: (score - low) / span for id_, score in near.items()}


def recency(row: Row, now: datetime) -> float:
    """0.995 to the power of the hours since the last access, or since it came to be; 1 is now."""
    last = moment(row.payload["valid_from"])
    if row.last_access is not None:
        last = max(last, moment(row.last_access))
    return math.pow(HOURLY_DECAY, max(0.0, (now - last).total_seconds() / 3_600))


def moment(at: str) -> datetime:
    """An ISO 8601 time; UTC where it names no zone."""
    told = datetime.fromisoformat(at)
    return told if told.tzinfo is not None else told.replace(tzinfo=UTC)


def _sessions(
    rows: Collection[Row],
    words: Mapping[str, float],
    meaning: Mapping[str, float],
    weight: float,
) -> dict[str, float]:
    """How well each row's session fits, 0..1, by the session's best entries.

    A fact stands for itself: it fits as a session would of which all entries were as good.
    """
    fits = {row.id: words.get(row.id, 0.0) + weight * meaning.get(row.id, 0.0) for row in rows}
    found: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if (session := row.payload.get("session")) is not None:
            found[session].append(fits[row.id])
    sums = {session: sum(nlargest(TOP_OF_SESSION, some)) for session, some in found.items()}
    best = max(sums.values(), default=0.0) or TOP_OF_SESSION * max(fits.values(), default=0.0)
    whole = {
        row.id: sums.get(row.payload.get("session") or "", TOP_OF_SESSION * fits[row.id])
        for row in rows
    }
    return {id_: min(1.0, one / best) if best else 0.0 for id_, one in whole.items()}


def _drawn(row: Row) -> bool:
    """Alone in its session: so is what was drawn from others (`memory.episodes.session_of`)."""
    payload = row.payload
    return payload["kind"] != "fact" and bool(payload.get("session") == payload["op"])


def _behind_evidence(found: Sequence[Candidate], query: Query) -> list[Candidate]:
    """`found`, in which nothing fits for words that it has of the memories it was drawn from.

    An insight repeats what those have in common, and would stand before each of them. So where it
    says no more of what is asked, it fits as they do on the whole, one that was not found not at
    all; but how near it is in meaning is its own.
    """
    told: dict[str, Candidate] = {}
    for one in found:
        for event in () if one.drawn else one.sources:
            if event not in told or told[event].score < one.score:
                told[event] = one
    return [_bounded(one, told, query) if one.drawn and one.sources else one for one in found]


def _bounded(one: Candidate, told: Mapping[str, Candidate], query: Query) -> Candidate:
    """`one`, by what the events that it comes from told: the best of each."""
    evidence = [told[event] for event in one.sources if event in told]
    fit = sum(map(_beside_meaning, evidence)) / len(one.sources)
    over = _beside_meaning(one) - fit
    if over <= 0 or _adds(one, evidence, query):
        return one
    return replace(one, parts={**one.parts, "evidence": -over})


def _beside_meaning(one: Candidate) -> float:
    return sum(part for name, part in one.parts.items() if name != "meaning")


def _adds(one: Candidate, evidence: Sequence[Candidate], query: Query) -> bool:
    """Whether it has a word of the query that its evidence has not; names and numbers aside.

    Those stand in what is drawn to say whose words and of which day they are.
    """
    left = {term for term in query.terms if not term.isdigit()} & _words_of(one)
    for name in (one.row.payload["speaker"], *query.people):
        left.difference_update(terms(name or ""))
    for told in evidence:
        left -= _words_of(told)
    return bool(left)


def _words_of(one: Candidate) -> set[str]:
    return set(terms(one.row.payload["data"]))


def _told(payload: Mapping[str, Any], query: Query) -> dict[str, float]:
    """What a memory's own fields say to the query, each part 0..1."""
    text = payload["data"]
    told = {
        "substance": min(1.0, math.log1p(len(text) / LETTERS) / math.log1p(LONG)),
        "question": float(payload["kind"] != "fact" and asks(text)),
    }
    if query.days:
        at = moment(payload["valid_from"]).astimezone(UTC)
        told["date"] = max(day.closeness(at) for day in query.days)
    if query.people:
        about = (payload["speaker"], *payload["entities"])
        told["speaker"] = float(any(_is_one_of(name, query.people) for name in about if name))
    return told


def _is_one_of(name: str, people: Collection[str]) -> bool:
    return name in people or name.casefold() in map(str.casefold, people)


def _weighed(row: Row, now: datetime) -> dict[str, float]:
    """Recency, importance and trust, each 0..1."""
    importance = (row.payload["importance"] - LOWEST) / (HIGHEST - LOWEST)
    return {
        "recency": recency(row, now),
        "importance": min(1.0, max(0.0, importance)),
        "trust": min(1.0, max(0.0, row.payload["trust"])),
    }


def _weights(query: Query, meaning: float) -> dict[str, float]:
    """The weights of relevance for this query: of what it does not ask for there is none."""
    asked = {"meaning": meaning}
    if not query.days:
        asked["date"] = 0.0
    if not query.people:
        asked["speaker"] = 0.0
    return {**WEIGHTS, **asked}


def _shares(weights: Mapping[str, float], settings: Settings) -> dict[str, float]:
    """What each part adds at most to a score of 1; relevance as a whole has the weight 1."""
    relevance = sum(weight for weight in weights.values() if weight > 0)
    beside = {
        "recency": settings.recall_weight_recency,
        "importance": settings.recall_weight_importance,
        "trust": settings.recall_weight_trust,
    }
    whole = 1.0 + sum(beside.values())
    return {name: weight / relevance / whole for name, weight in weights.items()} | {
        name: weight / whole for name, weight in beside.items()
    }
