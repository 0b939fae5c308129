"""Facts that are decided and not stored yet, found as those that are. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from memory.analysis import terms
from memory.records import Fact
from memory.vectorstore.table import Vector


class Unstored:
    """A small index of facts. `vectors`: theirs, in their order, each of length 1."""

    def __init__(self, facts: Sequence[Fact], vectors: Sequence[Vector]) -> None:
        self.facts = facts
        self.vectors = {one["op"]: vector for one, vector in zip(facts, vectors, strict=True)}
        """By operation id."""
        self._matrix = np.stack(vectors) if facts else None
        having: dict[str, list[int]] = defaultdict(list)
        for place, one in enumerate(facts):
            for term in set(terms(one["text"])):
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
        """The `limit` that share most words with `text`, with how many those are."""
        having = [self._having[term] for term in set(terms(text)) if term in self._having]
        if not having:
            return []
        counts = np.bincount(np.concatenate(having), minlength=len(self.facts))
        best = np.argsort(-counts, kind="stable")[:limit]
        return [(self.facts[place], float(counts[place])) for place in best if counts[place]]
