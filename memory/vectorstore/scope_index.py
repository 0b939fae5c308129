"""What is kept in memory of one scope, so that a search reads only what changed since the last."""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from memory.vectorstore.bm25 import Numbers, best, bm25
from memory.vectorstore.filters import Condition
from memory.vectorstore.sqlite_filters import where
from memory.vectorstore.table import Vector
from memory.vectorstore.words import WordIndex, listed

if TYPE_CHECKING:
    from memory.vectorstore.faiss_index import FaissIndex

CHUNK = 4_096
"""Vectors read at once: bounds the memory that filling an index takes."""
FILTERS = 16
"""Filters whose rows are kept in memory, the newest ones used."""

NONE: Numbers = np.empty(0, dtype=np.int64)


class ScopeIndex:
    """The vectors, the lengths of texts and the rows behind a filter, as of a revision.

    Its calls belong to the caller's lock and transaction, and `revision` is the file's in that.
    """

    def __init__(
        self, connection: sqlite3.Connection, scope: int, space: str, dimension: int
    ) -> None:
        self._connection, self._scope = connection, scope
        self._space, self._dimension = space, dimension
        self._texts = Texts(connection, scope)
        self._filtered: OrderedDict[Condition, Members] = OrderedDict()
        self._vectors: FaissIndex | None = None
        self._seen = 0
        """The revision that the vectors are of."""

    def nearest(
        self, vector: Vector, condition: Condition, limit: int, revision: int
    ) -> list[tuple[int, float]]:
        """The `limit` nearest of the rows that match, with cosine."""
        allowed = self._passing(condition, revision)
        return self._index(revision).search(vector, allowed, limit)

    def worded(
        self,
        words: WordIndex,
        terms: list[str],
        condition: Condition,
        limit: int,
        revision: int,
    ) -> list[tuple[int, float]]:
        """The `limit` best by words of the rows that match, with BM25."""
        texts = self._texts.caught_up(revision)
        postings = words.postings(self._scope, terms)
        scores = bm25(postings, texts.numbers, texts.lengths, texts.kinds)
        found = np.flatnonzero(scores)
        matching = np.isin(texts.numbers[found], self._passing(condition, revision))
        found = found[matching]
        return best(texts.numbers[found], scores[found], limit)

    def _passing(self, condition: Condition, revision: int) -> Numbers:
        """The rows that match, ascending."""
        members = self._filtered.pop(condition, None)
        members = members or Members(self._connection, self._scope, *where(condition))
        self._filtered[condition] = members
        if len(self._filtered) > FILTERS:
            self._filtered.popitem(last=False)
        return members.caught_up(revision).numbers

    def _index(self, revision: int) -> FaissIndex:
        """The vectors, filled when first asked for."""
        if self._vectors is None:
            from memory.vectorstore.faiss_index import FaissIndex

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

    def __init__(
        self,
        connection: sqlite3.Connection,
        scope: int,
        test: str,
        values: tuple[object, ...] = (),
    ) -> None:
        self._connection, self._scope = connection, scope
        self._test, self._values = test, values
        self._seen = 0
        self.numbers = NONE

    def caught_up(self, revision: int) -> Self:
        """Itself, as of `revision`."""
        if revision != self._seen:
            gone = changed(self._connection, self._scope, self._seen) if self._seen else NONE
            self._take(~np.isin(self.numbers, gone))
            self._seen = revision
        return self

    def _take(self, kept: npt.NDArray[np.bool_]) -> None:
        """Keep some of the rows, and take in those that pass and were written since."""
        (numbers,) = self._lists("seq", self._seen)
        self.numbers = np.sort(np.concatenate([self.numbers[kept], listed(numbers)]))

    def _lists(self, columns: str, since: int) -> list[str]:
        """Columns of the rows that pass and were written after a revision, each a JSON list."""
        lists = ", ".join(f"json_group_array({column})" for column in columns.split())
        # At first all rows are read, and an index that has all that the test needs serves best.
        written = f"rev > {since} AND" if since else ""
        found: tuple[str, ...] = self._connection.execute(
            f"SELECT {lists} FROM memories WHERE scope = ? AND {written} ({self._test})",
            (self._scope, *self._values),
        ).fetchone()
        return list(found)


class Texts(Members):
    """The rows of a scope that have words, ascending, with their lengths and kinds."""

    def __init__(self, connection: sqlite3.Connection, scope: int) -> None:
        super().__init__(connection, scope, "length > 0")
        self.lengths = self.kinds = NONE
        self._kinds: dict[str, int] = {}
        """The number of each kind that was ever there."""

    def _take(self, kept: npt.NDArray[np.bool_]) -> None:
        numbers, lengths, kinds = self._written()
        numbers = np.concatenate([self.numbers[kept], numbers])
        order = np.argsort(numbers, kind="stable")
        self.numbers = numbers[order]
        self.lengths = np.concatenate([self.lengths[kept], lengths])[order]
        self.kinds = np.concatenate([self.kinds[kept], kinds])[order]

    def _written(self) -> tuple[Numbers, Numbers, Numbers]:
        """Those written since: the numbers of the rows, their lengths and kinds."""
        seqs, lengths, kinds = self._lists("seq length kind", self._seen)
        numbered = [self._kinds.setdefault(kind, len(self._kinds)) for kind in json.loads(kinds)]
        return listed(seqs), listed(lengths), np.array(numbered, dtype=np.int64)


def changed(connection: sqlite3.Connection, scope: int, since: int) -> Numbers:
    """The rows of a scope that were written or removed after a revision."""
    numbers = connection.execute(
        "SELECT json_group_array(seq) FROM"
        " (SELECT seq FROM memories WHERE scope = ?1 AND rev > ?2"
        " UNION SELECT seq FROM removed WHERE scope = ?1 AND rev > ?2)",
        (scope, since),
    ).fetchone()
    return listed(numbers[0])
