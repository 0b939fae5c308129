"""The vector index of one scope: FAISS in memory, filled from the table and kept in step with it.

Importing this imports FAISS.
"""

from __future__ import annotations

import faiss
import numpy as np
import numpy.typing as npt

from memory.vectorstore.bm25 import Numbers
from memory.vectorstore.table import Vector


class FaissIndex:
    """Exact nearest neighbours by cosine, among the rows that are allowed."""

    def __init__(self, dimension: int) -> None:
        self._faiss = faiss.IndexFlatIP(dimension)
        self._seqs: Numbers = np.empty(0, dtype=np.int64)
        """Whose vector stands at each place of the index."""

    def add(self, seqs: Numbers, vectors: Vector) -> None:
        """Take in rows, one vector a line."""
        self._faiss.add(vectors)
        self._seqs = np.concatenate([self._seqs, seqs])

    def remove(self, seqs: Numbers) -> None:
        """Take out those of these rows that are in."""
        gone = np.isin(self._seqs, seqs)
        if gone.any():
            self._faiss.remove_ids(_selector(gone))
            self._seqs = self._seqs[~gone]

    def search(self, vector: Vector, allowed: Numbers, limit: int) -> list[tuple[int, float]]:
        """The `limit` nearest of the rows `allowed`, nearest first; of equals the first written.

        With cosine, -1..1.
        """
        passing = np.isin(self._seqs, allowed)
        count = min(limit, int(passing.sum()))
        if count < 1:
            return []
        parameters = faiss.SearchParameters()
        if not passing.all():
            parameters.sel = _selector(passing)
        scores, places = self._faiss.search(vector[None, :], count, params=parameters)
        seqs = self._seqs[places[0]]
        cosines = np.clip(scores[0], -1.0, 1.0)
        order = np.lexsort((seqs, -cosines))
        return [(int(seqs[place]), float(cosines[place])) for place in order]


def _selector(places: npt.NDArray[np.bool_]) -> faiss.IDSelectorBitmap:
    bits = np.packbits(places, bitorder="little")
    return faiss.IDSelectorBitmap(bits)  # type: ignore[call-arg,arg-type]  # it takes, and keeps, an array
