"""Fitting: how much a match means in this memory, and the floor below which nothing fits. Pure.

A match is weighed against chance: how many memories would have the same words of the query if the
words were spread at random. One rare word, or two that seldom meet, say much; words that many
memories have say little. So a score means the same for every query and in every installation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from memory.facts import Counted
from memory.recall.ranking import NEAR, Candidate
from memory.text import Query, approximate_tokens, cut_to, sentences, terms

FIRST = 10
"""The best N memories say how well a query is answered."""

PHATIC = frozenset(
    terms(
        "thanks thank thx ty ok okay yes yeah yep no nope sure cool perfect wow lol haha hm hmm oh"
        " please hi hey hello hiya bye goodbye cheers danke bitte hallo tschuss gracias hola"
        " merci salut bonjour grazie ciao prego obrigado ola tak hvala bok tesekkurler merhaba"
        " selam dziekuje spasibo"
    )
)
"""Words that keep a talk going and are about nothing."""

WELL = 0.5
"""Certainty from which a memory fits very well."""

LEAST = 0.1
"""Certainty of a match that has all words of the query, however common they are."""

LEAST_SHARE = 0.1
"""Share of a query's weight that the best memories must have where their match is by chance."""


def is_about_nothing(query: Query) -> bool:
    """Whether a query has only words that keep a talk going, and names."""
    names = {term for name in query.people for term in terms(name)}
    return bool(query.terms) and {*query.terms} - names <= PHATIC and not {*query.terms} <= names


def certainty(candidate: Candidate, query: Query, known: Counted, cosine: float = 0.0) -> float:
    """How certain it is (0..1) that a memory matches the query by more than chance.

    `cosine`: by an embedder that knows meanings; else 0.
    """
    chance = float(known.rows)
    for term in _own(candidate) & {*query.terms}:
        chance *= known.having.get(term, 1) / (known.rows + 1)
    by_words = 1 / (1 + chance) if chance < known.rows else 0.0
    by_meaning = max(0.0, cosine - NEAR) / (1 - NEAR)
    return 1 - (1 - by_words) * (1 - by_meaning)


def share(candidates: Sequence[Candidate], query: Query, known: Counted) -> float:
    """The share (0..1) of the query's weight that any of the candidates has; rare words weigh more.

    A word that no memory has weighs like one that a single memory has.
    """
    weights = weights_of(query, known)
    has = set[str]().union(*map(_own, candidates)) if candidates else set[str]()
    whole = sum(weights.values())
    return sum(weights[term] for term in weights if term in has) / whole if whole else 0.0


def weights_of(query: Query, known: Counted) -> dict[str, float]:
    """The weights of the query's words: the rarer, the more."""
    return {term: math.log1p((known.rows + 1) / known.having.get(term, 1)) for term in query.terms}


def best_sentences(text: str, weights: Mapping[str, float], tokens: int) -> str:
    """The sentences of a long text that have most of the query, in their order, in `tokens`.

    Left out parts are marked by ` ... `. Without a word of the query: the beginning.
    """
    if approximate_tokens(text) <= tokens:
        return text
    parts = sentences(text)
    values = [sum(weights.get(term, 0.0) for term in {*terms(part)}) for part in parts]
    left, chosen = tokens, set[int]()
    for place in sorted(range(len(parts)), key=lambda at: (-values[at], at)):
        size = approximate_tokens(parts[place]) + 1
        if chosen and (values[place] <= 0 or size > left):
            continue
        chosen.add(place)
        left -= size
        if left <= 0:
            break
    lines, before = list[str](), -1
    for place in sorted(chosen):
        lines += [*(["..."] if place > before + 1 else []), parts[place]]
        before = place
    shown = " ".join([*lines, *(["..."] if before < len(parts) - 1 else [])])
    return cut_to(shown, tokens + 2, 1.0)


def calibrated(
    found: Sequence[Candidate],
    query: Query,
    known: Counted,
    cosines: Mapping[str, float],
) -> list[Candidate]:
    """`found` (best first) with scores against chance, in the same order; [] if nothing fits."""
    best = [one for one in found[:FIRST] if one.score > 0]
    if not best:
        return []
    sure = max(certainty(one, query, known, cosines.get(one.row.id, 0.0)) for one in best)
    has = share(best, query, known)
    if sure <= 0 or (sure < WELL and has < LEAST_SHARE):
        return []
    sure = max(sure, LEAST * has)
    scale = sure / best[0].score
    return [_scaled(one, min(scale, sure / one.score)) for one in found if one.score > 0]


def fits_well(
    candidate: Candidate, query: Query, known: Counted, cosines: Mapping[str, float]
) -> bool:
    """Whether a memory fits very well by itself."""
    return certainty(candidate, query, known, cosines.get(candidate.row.id, 0.0)) >= WELL


def _scaled(candidate: Candidate, by: float) -> Candidate:
    return replace(candidate, parts={name: by * part for name, part in candidate.parts.items()})


def _own(candidate: Candidate) -> set[str]:
    """The terms of a memory, of who said it, and of what a night wrote beside it."""
    payload = candidate.row.payload
    beside = [payload["speaker"], payload.get("context"), *(payload.get("tags") or ())]
    return {*terms(payload["data"]), *(term for text in beside if text for term in terms(text))}
