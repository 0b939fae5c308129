"""Indexes of one scope in memory: a search reads only what changed since the last one.

Importing this does not import FAISS; the first search by meaning does.
"""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from memory.vectorstore.bm25 import Numbers, best, bm25
from memory.vectorstore.filters import Sql
from memory.vectorstore.rows import WordIndex, listed
from memory.vectorstore.table import Vector

if TYPE_CHECKING:
    import faiss

CHUNK = 4_096
"""Vectors read at once, to bound the memory for filling an index."""
FILTERS = 16
"""Filters whose rows are kept in memory: those used last."""

NONE: Numbers = np.empty(0, dtype=np.int64)


class ScopeIndex:
    """The vectors, the lengths of texts and the rows of recent filters, as of a revision.

    Calls belong to the caller's lock and transaction; `revision` is the file's revision there.
    """

    def __init__(
        self, connection: sqlite3.Connection, scope: int, space: str, dimension: int
    ) -> None:
        self._connection, self._scope = connection, scope
        self._space, self._dimension = space, dimension
        self._texts = Texts(connection, scope)
        self._filtered: OrderedDict[Sql, Members] = OrderedDict()
        self._vectors: FaissIndex | None = None
        self._seen = 0
        """The revision up to which vectors were read."""

    def nearest(
        self, vector: Vector, test: Sql, limit: int, revision: int
    ) -> list[tuple[int, float]]:
        """The `limit` nearest rows that pass `test`, with cosine."""
        allowed = self._passing(test, revision)
        return self._index(revision).search(vector, allowed, limit)

    def worded(
        self,
        words: WordIndex,
        terms: list[str],
        test: Sql,
        limit: int,
        revision: int,
    ) -> list[tuple[int, float]]:
        """The `limit` best by words of the rows that pass `test`, with BM25."""
        texts = self._texts.caught_up(revision)
        postings = words.postings(self._scope, terms)
        scores = bm25(postings, texts.numbers, texts.lengths, texts.kinds)
        found = np.flatnonzero(scores)
        matching = np.isin(texts.numbers[found], self._passing(test, revision))
        found = found[matching]
        return best(texts.numbers[found], scores[found], limit)

    def _passing(self, test: Sql, revision: int) -> Numbers:
        """The rows that pass, ascending."""
        members = self._filtered.pop(test, None)
        members = members or Members(self._connection, self._scope, test)
        self._filtered[test] = members
        if len(self._filtered) > FILTERS:
            self._filtered.popitem(last=False)
        return members.caught_up(revision).numbers

    def _index(self, revision: int) -> FaissIndex:
        """The vectors, as of `revision`."""
        if self._vectors is None:
            self._vectors = FaissIndex(self._dimension)
        if revision != self._seen:
            if self._seen:
                self._vectors.remove(changed(self._connection, self._scope, self._seen))
            self._fill(self._vectors)
            self._seen = revision
        return self._vectors

    def _fill(self, index: FaissIndex) -> None:
        last = self._seen
        while True:
            rows = self._connection.execute(
                "SELECT rev, seq, vector FROM memories JOIN vectors USING (seq)"
                " WHERE scope = ? AND rev > ? AND space = ? ORDER BY rev LIMIT ?",
                (self._scope, last, self._space, CHUNK),
            ).fetchall()
            if rows:
                vectors = np.frombuffer(b"".join(row[2] for row in rows), dtype=np.float32)
                seqs = np.array([row[1] for row in rows], dtype=np.int64)
                index.add(seqs, vectors.reshape(-1, self._dimension))
                last = rows[-1][0]
            if len(rows) < CHUNK:
                return


class Members:
    """The rows of a scope that pass a test, ascending."""

    def __init__(self, connection: sqlite3.Connection, scope: int, test: Sql) -> None:
        self._connection, self._scope, self._test = connection, scope, test
        self._seen = 0
        self.numbers = NONE

    def caught_up(self, revision: int) -> Self:
        """Read the changes up to `revision`; return itself."""
        if revision != self._seen:
            gone = changed(self._connection, self._scope, self._seen) if self._seen else NONE
            self._take(~np.isin(self.numbers, gone))
            self._seen = revision
        return self

    def _take(self, kept: npt.NDArray[np.bool_]) -> None:
        """Keep some of the rows, and add those that pass and were written since."""
        (numbers,) = self._lists("seq", self._seen)
        self.numbers = np.sort(np.concatenate([self.numbers[kept], listed(numbers)]))

    def _lists(self, columns: str, since: int) -> list[str]:
        """Columns of the rows that pass and were written after a revision, each a JSON list."""
        lists = ", ".join(f"json_group_array({column})" for column in columns.split())
        # The first time all rows are read: without a revision SQLite can use a covering index.
        written = f"rev > {since} AND" if since else ""
        found: tuple[str, ...] = self._connection.execute(
            f"SELECT {lists} FROM memories WHERE scope = ? AND {written} ({self._test.text})",
            (self._scope, *self._test.values),
        ).fetchone()
        return list(found)


class Texts(Members):
    """The rows of a scope that have words, ascending, with their lengths and kinds."""

    def __init__(self, connection: sqlite3.Connection, scope: int) -> None:
        super().__init__(connection, scope, Sql("length > 0"))
        self.lengths = self.kinds = NONE
        self._kinds: dict[str, int] = {}
        """The number of each kind seen so far."""

    def _take(self, kept: npt.NDArray[np.bool_]) -> None:
        numbers, lengths, kinds = self._written()
        numbers = np.concatenate([self.numbers[kept], numbers])
        order = np.argsort(numbers, kind="stable")
        self.numbers = numbers[order]
        self.lengths = np.concatenate([self.lengths[kept], lengths])[order]
        self.kinds = np.concatenate([self.kinds[kept], kinds])[order]

    def _written(self) -> tuple[Numbers, Numbers, Numbers]:
        """Rows written since the last revision: numbers, lengths and kinds."""
        seqs, lengths, kinds = self._lists("seq length kind", self._seen)
        numbered = [self._kinds.setdefault(kind, len(self._kinds)) for kind in json.loads(kinds)]
        return listed(seqs), listed(lengths), np.array(numbered, dtype=np.int64)


def changed(connection: sqlite3.Connection, scope: int, since: int) -> Numbers:
    """The rows of a scope that were written or removed after the revision `since`."""
    numbers = connection.execute(
        "SELECT json_group_array(seq) FROM"
        " (SELECT seq FROM memories WHERE scope = ?1 AND rev > ?2"
        " UNION SELECT seq FROM removed WHERE scope = ?1 AND rev > ?2)",
        (scope, since),
    ).fetchone()
    return listed(numbers[0])


class FaissIndex:
    """Exact nearest neighbours by cosine, among the allowed rows."""

    def __init__(self, dimension: int) -> None:
        import faiss

        self._faiss = faiss.IndexFlatIP(dimension)
        self._seqs: Numbers = np.empty(0, dtype=np.int64)
        """The row of each vector, in the index's order."""

    def add(self, seqs: Numbers, vectors: Vector) -> None:
        """Add rows; `vectors` has one line per row."""
        self._faiss.add(vectors)
        self._seqs = np.concatenate([self._seqs, seqs])

    def remove(self, seqs: Numbers) -> None:
        """Remove these rows, as far as they are in the index."""
        gone = np.isin(self._seqs, seqs)
        if gone.any():
            self._faiss.remove_ids(_selector(gone))
            self._seqs = self._seqs[~gone]

    def search(self, vector: Vector, allowed: Numbers, limit: int) -> list[tuple[int, float]]:
        """The `limit` nearest of the `allowed` rows, nearest first, with cosine (-1..1).

        Ties go to the row written first.
        """
        import faiss

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
    import faiss

    bits = np.packbits(places, bitorder="little")
    return faiss.IDSelectorBitmap(bits)  # type: ignore[call-arg,arg-type]  # it takes, and keeps, an array
