"""BM25: how well texts match words; rare words count for more (Robertson and Zaragoza 2009).

Pure. The inverse document frequency is Lucene's, log(1 + (N - n + 0.5) / (n + 0.5)): above 0 for
every word, so that a word in half of the texts still tells them from the rest.

Each kind of text (facts, journal entries) is a collection of its own. Otherwise a fact that repeats
an entry would make the entry's words common. Words are rarer in a larger collection, so the scores
of each kind are scaled by the weight of the whole query in it: a text with all the words scores the
same among ten texts of its kind or ten thousand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

SATURATION, LENGTH_PART = 1.2, 0.75
"""k1 and b."""
MAX_QUERY_WORDS = 64
"""Words of a query that are looked up: a pasted page is not a query."""

Numbers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]


def bm25(postings: Sequence[Numbers], texts: Numbers, lengths: Numbers, kinds: Numbers) -> Scores:
    """The score of each text; 0 where it has none of the words.

    Args:
        postings: for each word of the query the numbers of the texts that have it, ascending, once
            per occurrence. Numbers that are not in `texts` are ignored.
        texts: the numbers of all texts, ascending.
        lengths: the number of words of each text, at least 1.
        kinds: the number of each text's kind, from 0.
    """
    scores = np.zeros(len(texts))
    if not len(texts):
        return scores
    rows = np.bincount(kinds)
    mean = np.bincount(kinds, weights=lengths) / np.maximum(rows, 1)
    damping = SATURATION * (1 - LENGTH_PART + LENGTH_PART * lengths / mean[kinds])
    weight, whole = np.zeros(len(rows)), 0.0
    for posting in postings:
        numbers, counts = np.unique(posting, return_counts=True)
        places = np.searchsorted(texts, numbers)
        known = places < len(texts)
        known[known] = texts[places[known]] == numbers[known]
        places, counts = places[known], counts[known]
        of_kind = kinds[places]
        having = np.bincount(of_kind, minlength=len(rows))
        rarity = _rarity(rows, having)
        scores[places] += rarity[of_kind] * counts * (SATURATION + 1) / (counts + damping[places])
        weight += rarity
        whole += float(_rarity(np.array(len(texts)), np.array(len(places))))
    return scores * (whole / weight)[kinds] if postings else scores


def _rarity(rows: Numbers, having: Numbers) -> Scores:
    """The inverse document frequency of a word that `having` of `rows` texts have."""
    found: Scores = np.log(1 + (rows - having + 0.5) / (having + 0.5))
    return found


def best(numbers: Numbers, scores: Scores, limit: int) -> list[tuple[int, float]]:
    """The `limit` best numbers with their scores, best first; ties go to the lower number."""
    if 0 < limit < len(scores):
        least = np.partition(scores, -limit)[-limit]
        numbers, scores = numbers[scores >= least], scores[scores >= least]
    order = np.lexsort((numbers, -scores))[: max(limit, 0)]
    return [(int(numbers[place]), float(scores[place])) for place in order]
