"""Ranking: the order of the memories that a search found, and why. Pure.

Relevance combines words (BM25) and meaning (cosine), each scaled to 0..1, with how well the rest of
an entry's session fits, who spoke, when, and how much was said. Recency, importance and trust (Park
et al. 2023) have small weights: they break ties. A conclusion drawn from other memories ranks
behind them, unless it says more about the query.

The score of the best is then weighed against chance: how many memories would have the same words of
the query if the words were spread at random. So a score means the same in every installation.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from heapq import nlargest
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from memory.facts import Counted, Row
from memory.guards import languages
from memory.recall.episodes import LETTERS, LONG, TalkTraits, moment, talk_of
from memory.settings import Settings
from memory.text import (
    Query,
    about_self,
    asks,
    figures,
    regex,
    sentences,
    tells_amount,
    term_set,
    terms,
)

Scored = Sequence[tuple[Row, float]]

Mark = Literal["superseded", "outdated", "partly_superseded"]
"""`outdated`: its facts are superseded, but it is shown, because it says more than they did."""

WEIGHTS: Mapping[str, float] = {
    "words": 1.0,
    "meaning": 1.0,
    "session": 0.6,
    "date": 1.2,
    "substance": 0.5,
    "speaker": 0.3,
    "question": -0.3,
    "self": 0.6,
    "figure": 0.15,
}
"""Weights of relevance, chosen on the development split of LoCoMo (Maharana et al. 2024).

The weights of `substance` and `question` are for short turns, and fall with the length of messages;
if all are long, the shorter of two equal matches has more of the query.
"""

FAINT_MEANING = 0.02
"""Weight of meaning where the embedder compares little more than words."""

AGAIN, MAX_AGAIN = 0.02, 3
"""How much each of up to N earlier entries of its session lowers an entry's score, if a question
asks for several things."""

NEAR = 0.3
"""Cosine below which even the nearest memory does not count in full."""

TOP_OF_SESSION = 3
"""The best N entries of a session, by words and meaning, say how well it fits."""

FADED = 0.98
"""Share of its score that a faded entry keeps: it is found if nothing fits better."""

FIRST = 10
"""The best N memories say how well a query is answered."""

WELL = 0.5
"""Certainty from which a memory fits very well."""

LEAST = 0.02
"""Certainty of a match that has all words of the query, and proves nothing."""

BESIDE_BEST = 0.5
"""Share that the certainty of another memory adds to the best: it may only repeat the best."""

CLOSE = 0.5
"""Closeness from which a memory is of the day that a query names."""

MIN_SHARE = 0.1
"""Share of a query's weight that the best memories must have if their match may be chance."""

UNTOLD, UNNAMED, UNCOUNTED, ASKING = 0.5, 0.25, 0.25, 0.1
"""Shares of its certainty that a match keeps if none of the best names what a question asks for, if
the memory itself has no name that the query has, if it has no number and the query asks for one,
and if it asks and tells nothing."""

OF_DAY = 0.1
"""Certainty of a memory of the day that a query names."""

FITS, JUDGED = 0.25, 30
"""Share of the best certainty from which a memory fits by itself, and how many are judged so."""

ASKED_FOR = regex(r"(?i)\b(?:which|what|how(?: many| much)?) ([\w'-]+)")
"""What a question asks for: "which airline", "how old"."""

HOURLY_DECAY = 0.995
"""Recency after an hour."""

LOWEST, HIGHEST = 1, 10
"""The range of importance."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory with the parts of its score."""

    row: Row
    parts: Mapping[str, float]
    """Name -> weighted share; the score is their sum."""
    sources: tuple[str, ...]
    """Ids of the events that the memory comes from."""
    stands_for: frozenset[str] = frozenset()
    """Ids of the facts and entries that say the same, which it replaces."""
    marks: frozenset[Mark] = frozenset()
    """What an entry inherits from the facts made from it."""
    heir: str | None = None
    """Id of the fact that superseded the facts made from an entry."""
    earlier: tuple[Row, ...] = ()
    """Superseded facts that are shown with it, newest first."""
    disputes: frozenset[str] = frozenset()
    """Operation ids of the facts that contradict it."""
    id: str = field(init=False)
    """The fact's id, or the journal entry's, which links use."""
    ids: frozenset[str] = field(init=False)
    """Its own id, and the ids of the memories that it replaces."""
    score: float = field(init=False)
    """0..1; compares the memories of one search."""
    place: tuple[float, float, str] = field(init=False)
    """Sort key of memories: the best first, then the newer, then the lower id."""
    superseded: bool = field(init=False)
    """A fact that no longer holds, or an entry none of whose facts holds."""
    drawn: bool = field(init=False)
    """A conclusion from other memories: an insight, a note, an archive."""

    def __post_init__(self) -> None:
        """Compute values that one recall reads many times."""
        row, payload, put = self.row, self.row.payload, object.__setattr__
        id_ = row.id if payload["kind"] == "fact" else str(payload["op"])
        score = max(0.0, sum(self.parts.values()))
        put(self, "id", id_)
        put(self, "ids", self.stands_for | {id_})
        put(self, "score", score)
        put(self, "place", (-score, -moment(payload["valid_from"]).timestamp(), row.id))
        put(self, "superseded", "superseded" in self.marks or payload.get("invalid_at") is not None)
        put(self, "drawn", _drawn(row))

    @property
    def at(self) -> datetime:
        """When the entry was written, or the fact came to hold; UTC."""
        return moment(self.row.payload["valid_from"])


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
    """Rank the results of both searches, best first; ties go to the newer one.

    Rows found neither `near` in meaning nor by a shared word are left out, except those `beside`
    found entries in their sessions. `by_words`: the embedder compares little more than words.
    """
    words, meaning = scaled(worded), stretched(near)
    rows = {row.id: row for row, _ in (*near, *worded) if row.id in words or row.id in meaning}
    rows |= {row.id: row for row in beside}
    of_meaning = FAINT_MEANING if by_words else WEIGHTS["meaning"] if near else 0.0
    weights = _weights(query, talk_of(rows.values()), of_meaning)
    fits = _sessions(rows.values(), words, meaning, weights["meaning"])
    shares = _shares(weights, settings)
    found = []
    for id_, row in rows.items():
        relevance = {
            "words": words.get(id_, 0.0),
            "meaning": meaning.get(id_, 0.0),
            "session": fits[id_],
            **_asked_for(row.payload, query),
            **_tie_breakers(row, now),
        }
        parts = {name: shares[name] * part for name, part in relevance.items() if part}
        if row.payload.get("faded"):
            parts["faded"] = (FADED - 1) * sum(parts.values())
        found.append(candidate_of(row, parts))
    best = ordered(_behind_evidence(found, query))
    return ordered(_from_several(best)) if query.several and not by_words else best


def candidate_of(row: Row, parts: Mapping[str, float]) -> Candidate:
    """A memory with these parts of its score."""
    disputes = frozenset(row.payload.get("disputed") or ())
    return Candidate(row, parts, tuple(row.payload["source_events"]), disputes=disputes)


def leading(near: Scored, worded: Scored, count: int) -> list[Row]:
    """The `count` best entries by meaning and words alone, best first; facts repeat them."""
    words, meaning = scaled(worded), stretched(near)
    rows = {row.id: row for row, _ in (*near, *worded) if row.payload["kind"] == "episode"}
    fits = {id_: words.get(id_, 0.0) + meaning.get(id_, 0.0) for id_ in rows}
    return [rows[id_] for id_ in nlargest(count, fits, key=fits.__getitem__) if fits[id_] > 0]


def ordered(found: Iterable[Candidate]) -> list[Candidate]:
    """Best first; ties go to the newer one, then to the lower id."""
    return sorted(found, key=attrgetter("place"))


def scaled(scores: Scored) -> dict[str, float]:
    """BM25 scaled to 0..1 over the whole scope, by row id: 0 is no match, 1 the best.

    The minimum is BM25's own 0 and not the last result: else the last of two good matches would
    count for nothing. The maximum is the best that somebody said, so that making facts of some
    entries moves no others, and as conclusions repeat others' words.
    """
    first_hand = [pair for pair in scores if not _drawn(pair[0])]
    said = [score for row, score in first_hand if row.payload["kind"] != "fact"]
    best = max(said or [score for _, score in first_hand or scores], default=0.0)
    return {row.id: min(1.0, score / best) for row, score in scores if score > 0}


def stretched(scores: Scored) -> dict[str, float]:
    """Cosines scaled to 0..1 over the results, by row id, since embedders differ in their range.

    A cosine of 0 or less does not count. Few results say little about the embedder's range: the
    fewer they are, the closer to 0 is the minimum. If even the nearest is below NEAR, it does not
    count in full. As with words, entries set the range if there are any.
    """
    near = [pair for pair in scores if pair[1] > 0]
    said = [score for row, score in near if not (row.payload["kind"] == "fact" or _drawn(row))]
    measure = said or [score for _, score in near]
    if not measure:
        return {}
    low = min(measure) * (1 - 1 / len(measure))
    span = max(NEAR, *measure) - low
    return {row.id: min(1.0, max(0.0, (score - low) / span)) for row, score in near}


def _from_several(found: Sequence[Candidate]) -> list[Candidate]:
    """`found` (best first) with entries a little lower behind others of their session.

    A fact is of the session of its entry, and lowers nothing.
    """
    sessions = {one.row.payload["op"]: one.row.payload.get("session") for one in found}
    seen: dict[str, int] = defaultdict(int)
    spread = []
    for one in found:
        payload = one.row.payload
        session = next((s for op in payload["source_entries"] if (s := sessions.get(op))), None)
        if session is None or one.drawn:
            spread.append(one)
            continue
        lower = AGAIN * min(seen[session], MAX_AGAIN)
        seen[session] += payload["kind"] != "fact"
        spread.append(replace(one, parts={**one.parts, "again": -lower}) if lower else one)
    return spread


def recency(row: Row, now: datetime) -> float:
    """HOURLY_DECAY to the power of the hours since the last access, or since the memory's time."""
    last = moment(row.payload["valid_from"])
    if row.last_access is not None:
        last = max(last, moment(row.last_access))
    return math.pow(HOURLY_DECAY, max(0.0, (now - last).total_seconds() / 3_600))


def _sessions(
    rows: Collection[Row], words: Mapping[str, float], meaning: Mapping[str, float], weight: float
) -> dict[str, float]:
    """How well each row's session fits, 0..1, by the session's best entries.

    A fact counts as a session whose entries all fit as well as the fact.
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
    """Conclusions are alone in their session (`memory.recall.episodes.session_of`)."""
    payload = row.payload
    return payload["kind"] != "fact" and bool(payload.get("session") == payload["op"])


def _behind_evidence(found: Sequence[Candidate], query: Query) -> list[Candidate]:
    """Lower conclusions that say no more about the query than their evidence.

    An insight repeats what its evidence has in common and would rank before each piece of it. So it
    scores the mean of its evidence (0 for a piece that was not found), except for meaning.
    """
    best: dict[str, Candidate] = {}
    for candidate in found:
        for event in () if candidate.drawn else candidate.sources:
            if event not in best or best[event].score < candidate.score:
                best[event] = candidate
    return [_bounded(one, best, query) if one.drawn and one.sources else one for one in found]


def _bounded(drawn: Candidate, best: Mapping[str, Candidate], query: Query) -> Candidate:
    """A conclusion, bounded by its evidence: the `best` candidate of each source event.

    A word of the query that its evidence lacks frees it; it has names and numbers only to say who
    spoke, and on which day.
    """
    evidence = [best[event] for event in drawn.sources if event in best]
    fit = sum(map(_without_meaning, evidence)) / len(drawn.sources)
    over = _without_meaning(drawn) - fit
    left = {term for term in query.terms if not term.isdigit()} & words_of(drawn.row)
    names = (terms(name or "") for name in (drawn.row.payload["speaker"], *query.people))
    if over <= 0 or left.difference(*names, *(words_of(one.row) for one in evidence)):
        return drawn
    return replace(drawn, parts={**drawn.parts, "evidence": -over})


def _without_meaning(candidate: Candidate) -> float:
    return sum(part for name, part in candidate.parts.items() if name != "meaning")


def words_of(row: Row) -> frozenset[str]:
    """The terms of a memory's text."""
    return term_set(row.payload["data"])


def asked_of(query: Query) -> set[str]:
    """What a query asks for: its terms, without the names."""
    return {*query.terms}.difference(*map(terms, query.people))


def _asked_for(payload: Mapping[str, Any], query: Query) -> dict[str, float]:
    text = payload["data"]
    parts = {
        "substance": min(1.0, math.log1p(len(text) / LETTERS) / math.log1p(LONG)),
        "question": float(payload["kind"] != "fact" and asks(text)),
    }
    if query.own:
        parts["self"] = _about_self(payload)
    if query.figure:
        parts["figure"] = figures(text, query.figure)
    if query.days:
        at = moment(payload["valid_from"]).astimezone(UTC)
        parts["date"] = max(day.closeness(at) for day in query.days)
    if query.people:
        about = (payload["speaker"], *payload["entities"])
        parts["speaker"] = float(any(_is_one_of(name, query.people) for name in about if name))
    return parts


def _about_self(payload: Mapping[str, Any]) -> float:
    """How much a memory tells of its speaker, 0..1; a fact is in the third person."""
    if payload["kind"] != "fact":
        return about_self(payload["data"])
    return float(bool(payload["speaker"]) and _is_one_of(payload["speaker"], payload["entities"]))


def _is_one_of(name: str, people: Collection[str]) -> bool:
    return name in people or name.casefold() in map(str.casefold, people)


def _tie_breakers(row: Row, now: datetime) -> dict[str, float]:
    importance = (row.payload["importance"] - LOWEST) / (HIGHEST - LOWEST)
    return {
        "recency": recency(row, now),
        "importance": min(1.0, max(0.0, importance)),
        "trust": min(1.0, max(0.0, row.payload["trust"])),
    }


def _weights(query: Query, talk: TalkTraits, meaning: float) -> dict[str, float]:
    """The weights of relevance for this query; dates and speakers count only if it names any.

    A question about oneself is answered by what somebody said of themselves: in a chat the
    assistant's long answers have more of the question's words, but say "you".

    The length of a text, and whether it asks, matter only in talk of short turns and of few
    questions: if all messages are long requests, the answers are among these.
    """
    asked = {
        "meaning": meaning,
        "substance": (2 * talk.brevity - 1) * WEIGHTS["substance"],
        "question": talk.brevity * talk.telling * WEIGHTS["question"],
        "self": talk.private * WEIGHTS["self"],
    }
    needs: dict[str, object] = {"date": query.days, "speaker": query.people}
    needs |= {"self": query.own, "figure": query.figure}
    return {**WEIGHTS, **asked, **{name: 0.0 for name, has in needs.items() if not has}}


def _shares(weights: Mapping[str, float], settings: Settings) -> dict[str, float]:
    """The largest share of each part in a score of 1; relevance as a whole has the weight 1."""
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


# A score against chance, and the floor below which nothing fits.


def certainty(
    candidate: Candidate, wanted: Collection[str], known: Counted, cosines: Mapping[str, float]
) -> float:
    """How certain it is (0..1) that a memory matches these terms by more than chance.

    `cosines`: by row id, of an embedder that knows meanings; else none.
    """
    chance = float(known.rows)
    for term in own_terms(candidate.row, candidate.earlier) & {*wanted}:
        chance *= known.having.get(term, 1) / (known.rows + 1)
    by_words = 1 / (1 + chance) if chance < known.rows else 0.0
    by_meaning = max(0.0, cosines.get(candidate.row.id, 0.0) - NEAR) / (1 - NEAR)
    return 1 - (1 - by_words) * (1 - by_meaning)


def weights_of(query: Query, known: Counted) -> dict[str, float]:
    """The weights of the query's words: the rarer, the more. An unknown word is rarest."""
    return {term: math.log1p((known.rows + 1) / known.having.get(term, 1)) for term in query.terms}


class Proof(NamedTuple):
    """What the memories found prove of a query."""

    scale: float
    """The factor that gives them scores against chance; 0 if nothing fits."""
    fit: frozenset[str] = frozenset()
    """Ids of those that fit by themselves; others were found by what stands beside them."""


def proof_of(
    found: Sequence[Candidate], query: Query, known: Counted, cosines: Mapping[str, float]
) -> Proof:
    """What `found` (best first) prove of the query."""
    best = [one for one in found[:FIRST] if one.score > 0]
    if not best:
        return Proof(0.0)
    sure = max(certainty(one, query.terms, known, cosines) for one in best)
    said = [own_terms(one.row, one.earlier) for one in best]
    weights = weights_of(query, known)
    has = sum(weights[term] for term in weights.keys() & set[str]().union(*said))
    has /= sum(weights.values()) or 1
    on_day = max(_on_day(one, query) for one in best)
    if not on_day and (sure <= 0 or (sure < WELL and has < MIN_SHARE)):
        return Proof(0.0)
    judged = found[:JUDGED]
    sure_of = _certainties(judged, query, best, known, cosines)
    first, *others = sorted((sure_of[one.id] for one in best), reverse=True)
    certain = 1 - (1 - first) * math.prod(1 - BESIDE_BEST * one for one in others)
    wanted = {term for what in ASKED_FOR.findall(query.text) for term in terms(what)}
    wanted &= {*query.terms}
    if wanted and not any(wanted & each for each in said):
        certain *= UNTOLD
    certain = max(certain, LEAST * has, OF_DAY * on_day)
    # A link lifts the best, too: it says something beside the match.
    matched = best[0].score - best[0].parts.get("link", 0.0)
    scale = certain / (matched if matched > 0 else best[0].score)
    return Proof(scale, _fit(judged, query, sure_of))


def _certainties(
    found: Sequence[Candidate],
    query: Query,
    best: Sequence[Candidate],
    known: Counted,
    cosines: Mapping[str, float],
) -> dict[str, float]:
    """How certainly (0..1) each memory tells what is asked, by id.

    A name leads to somebody, and proves nothing about the question. Where a memory has none of the
    names, its words may be said of somebody else. Without a number it does not tell how many. What
    was only asked is no answer.
    """
    asked = asked_of(query) - _named(query, best) or asked_of(query) or {*query.terms}
    names, sure_of = {*query.terms} - asked, dict[str, float]()
    names |= {term for name in query.called for term in terms(name)} if names else set()
    for one in found:
        sure = certainty(one, asked, known, cosines)
        if sure and names:
            has = own_terms(one.row, one.earlier).union(*map(terms, one.row.payload["entities"]))
            sure *= UNNAMED if names.isdisjoint(has) else 1.0
        if sure and query.amount and not tells_amount(_said(one), query.amount):
            sure *= UNCOUNTED
        sure_of[one.id] = sure * (ASKING if sure and _only_asks(one.row) else 1.0)
    return sure_of


def _said(one: Candidate) -> str:
    return "\n".join(row.payload["data"] for row in (one.row, *one.earlier))


def _only_asks(row: Row) -> bool:
    text = row.payload["data"]
    if row.payload["kind"] == "fact" or not asks(text) or _KEEP.search(text):
        return False
    return all(map(asks, sentences(text)))


_KEEP = regex(r"(?i)\b(?:remember|note|save|keep|merke?n?|notier\w*) (?:that|dir|down|,|dass)\b")
"""Words of a request that tells what to keep: "Can you remember that the code is 4711?"."""


def _on_day(one: Candidate, query: Query) -> float:
    """How near (0..1) a memory is to a day that the query names; 0 if it is far."""
    near = max((day.closeness(one.at.astimezone(UTC)) for day in query.days), default=0.0)
    return near if near >= CLOSE else 0.0


def _fit(found: Sequence[Candidate], query: Query, sure: Mapping[str, float]) -> frozenset[str]:
    """The ids of those that tell what is asked, or are of its day, or answer or follow such."""
    least = FITS * max(sure.values(), default=0.0)
    fit = {one.id for one in found if sure[one.id] > 0 and sure[one.id] >= least}
    asking = {one.id for one in found if one.id in fit and asks(one.row.payload["data"])}
    for one in found:
        payload = one.row.payload
        before = payload["source_entries"][1:2] if payload["kind"] != "fact" else ()
        by_others = one.earlier or {"link", "supersedes"} & one.parts.keys()
        if (by_others and sure[one.id]) or asking.intersection(before) or _on_day(one, query):
            fit.add(one.id)
    return frozenset(fit)


def _named(query: Query, best: Iterable[Candidate]) -> set[str]:
    """The terms of the names in a query. German writes every noun like a name.

    A query all in small letters, or in capitals, shows no names: the best memories do.
    """
    if languages(query.text)[:1] == ("de",):
        return set()
    if not (query.text.islower() or query.text.isupper()):
        return _capitalised(query.text)
    said = [one.row.payload["data"] for one in best]
    names = set[str]().union(*map(_capitalised, said))
    return names.difference(*(terms(" ".join(re.findall(r"\b[a-z]\S+", text))) for text in said))


def _capitalised(text: str) -> set[str]:
    return set(terms(" ".join(word for word in text.split()[1:] if word[:1].isupper())))


def calibrated(found: Iterable[Candidate], scale: float) -> list[Candidate]:
    """`found` with scores against chance, at most 1."""
    shares = ((one, min(scale, 1 / one.score)) for one in found)
    return [replace(one, parts={k: by * v for k, v in one.parts.items()}) for one, by in shares]


def own_terms(row: Row, earlier: Sequence[Row] = ()) -> set[str]:
    """The terms of a memory, of who said it, of what a night wrote beside it, and of `earlier`."""
    payload = row.payload
    beside = [payload["speaker"], payload.get("context"), *(payload.get("tags") or ())]
    beside += [one.payload["data"] for one in earlier]
    beside += payload.get("other_words") or ()
    return {*words_of(row)}.union(*map(terms, filter(None, beside)))
