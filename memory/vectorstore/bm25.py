"""BM25: how well texts match words, a rare word counting for more (Robertson and Zaragoza 2009).

Pure. The inverse document frequency is that of Lucene, log(1 + (N - n + 0.5) / (n + 0.5)): above 0
for every word, so that a word of half of the texts still tells them from the rest.

Texts are of kinds, and each kind is a collection of its own: what a fact says again that an entry
said would else make the entry's words common, and its length long. A word is rarer in more texts,
so the scores of each kind are measured by what all words of the query weigh in it: a text that has
them all counts alike, whether there are ten of its kind or ten thousand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

SATURATION, LENGTH_PART = 1.2, 0.75
"""k1 and b."""

Numbers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]


def bm25(postings: Sequence[Numbers], texts: Numbers, lengths: Numbers, kinds: Numbers) -> Scores:
    """The score of each text; 0 where it has none of the words.

    `postings` holds for each word of the query the numbers of the texts that have it, once for each
    time, in ascending order. `texts` are the numbers of all texts, ascending, `lengths` how
    many words each has (at least one), and `kinds` the number of its kind, from 0. Numbers in
    `postings` that are no text are left out.
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
    """The inverse document frequency of a word, of so many rows as have it."""
    found: Scores = np.log(1 + (rows - having + 0.5) / (having + 0.5))
    return found


def best(numbers: Numbers, scores: Scores, limit: int) -> list[tuple[int, float]]:
    """The `limit` best of them with their scores, best first; of equals the lower number first."""
    if 0 < limit < len(scores):
        least = np.partition(scores, -limit)[-limit]
        numbers, scores = numbers[scores >= least], scores[scores >= least]
    order = np.lexsort((numbers, -scores))[: max(limit, 0)]
    return [(int(numbers[place]), float(scores[place])) for place in order]
