"""Indexes over memory's SQLite file: words in FTS5, vectors in an array, rows by filter.

FTS5 keeps which rows have which terms, and how often, but not the texts. Each scope has indexes of
its own, since a word is rare or common within one memory: other agents' memories must not change
the order of results. What stands in process memory follows the file by revisions, so that a search
reads only the changes since the last one.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from memory.facts.table import (
    LENGTH_PART,
    MAX_QUERY_WORDS,
    SATURATION,
    Counted,
    Sql,
    Vector,
    stored_payload,
)
from memory.text import terms as terms_of

CHUNK = 4_096
"""Rows read at once, to bound the memory for filling an index."""

ROOM = 256
"""Rows that an index of vectors has room for at first; it doubles when they are full."""

PLACED = 4_000_000
"""Places of words in texts that stay in memory (96 MB): successive searches share words."""

FILTERS = 16
"""Filters whose rows are kept in memory: those used last."""

Numbers = npt.NDArray[np.int64]

Scores = npt.NDArray[np.float64]

NONE: Numbers = np.empty(0, dtype=np.int64)

_ENCODED = {code: code + 0xE000 for code in range(128) if not chr(code).isalnum()}
"""Characters at which FTS5 would cut a text, as letters: each term stays one word to it."""


class ScopeIndex:
    """A scope's vectors, the lengths of texts and the rows of recent filters, at a revision."""

    def __init__(
        self, connection: sqlite3.Connection, scope: int, space: str, dimension: int
    ) -> None:
        self._connection, self._scope = connection, scope
        self._space, self._dimension = space, dimension
        self._texts = Texts(connection, scope)
        self._filtered: OrderedDict[Sql, Members] = OrderedDict()
        self._vectors = dict[str, VectorIndex]()
        """By kind: a search is mostly for one."""
        self._seen = 0
        """The revision up to which vectors were read."""
        self._placed = dict[str, Placed]()
        """Words that were asked for, at the revision `_placed_at`."""
        self._weighed = dict[str, Weighed]()
        """Those of them that were asked for at that revision."""
        self._placed_at = self._held = 0

    def nearest(
        self, vectors: Sequence[Vector], test: Sql, limit: int, revision: int
    ) -> list[list[tuple[int, float]]]:
        """The `limit` nearest rows of each vector that pass `test`, with cosine."""
        passing = self.passing(test, revision)
        self._read_vectors(revision)
        found = [
            one.search(vectors, passing.among(kind, one.seqs), limit)
            for kind, one in self._vectors.items()
        ]
        return [[pair for kind in found for pair in kind[n]] for n in range(len(vectors))]

    def worded(
        self, words: WordIndex, terms: list[str], test: Sql, limit: int, revision: int
    ) -> list[tuple[int, float]]:
        """The `limit` best by words of the rows that pass `test`, with BM25."""
        weighed, texts = self._weigh(words, terms, revision), self._texts.measured
        found, scores = bm25(list(weighed.values()), texts)
        matching = self.passing(test, revision).among("words", texts.numbers)[found]
        return best(texts.numbers[found[matching]], scores[matching], limit)

    def counted(self, words: WordIndex, terms: list[str], revision: int) -> Counted:
        """How many rows have each of these terms, of the kind that has most."""
        weighed, rows = self._weigh(words, terms, revision), self._texts.measured.rows
        asked = {term: weighed[word] for term in terms if (word := encoded([term])) in weighed}
        most = {term: int(one.having.max()) for term, one in asked.items()}
        return Counted(int(rows.max(initial=0)), {term: n for term, n in most.items() if n})

    def _weigh(self, words: WordIndex, terms: list[str], revision: int) -> dict[str, Weighed]:
        """The first words of `terms`, as the index has them, weighed."""
        wanted = list(dict.fromkeys(encoded([term]) for term in terms if term))[:MAX_QUERY_WORDS]
        if revision != self._placed_at:
            self._follow_words(revision)
        if self._held > PLACED:
            self._placed, self._weighed, self._held = {}, {}, 0
        texts = self._texts.measured
        if new := [word for word in wanted if word not in self._placed]:
            read = placed(words.postings(self._scope, new), texts.numbers)
            self._placed |= zip(new, read, strict=True)
            self._held += sum(len(one.places) for one in read)
        if new := [word for word in wanted if word not in self._weighed]:
            known = weighed([self._placed[word] for word in new], texts)
            self._weighed |= zip(new, known, strict=True)
        return {word: self._weighed[word] for word in wanted}

    def _follow_words(self, revision: int) -> None:
        """Bring the texts and the words in memory up to `revision`.

        Common words stand in many texts: to read those that have them costs more than to read the
        words of the few texts that were written.
        """
        standing = self._texts.numbers
        texts = self._texts.caught_up(revision).numbers
        if self._placed:
            query = "SELECT seq, terms FROM memories WHERE scope = ? AND rev > ? AND length > 0"
            rows = self._connection.execute(query, (self._scope, self._placed_at))
            written = rows.fetchmany(CHUNK)
            stands = len(written) < CHUNK and np.array_equal(texts[: len(standing)], standing)
            said = {seq: text.split(" ") for seq, text in written}
            self._placed = replaced(self._placed, said, texts) if stands else {}
            self._held = sum(len(one.places) for one in self._placed.values())
        self._weighed, self._placed_at = {}, revision

    def passing(self, test: Sql, revision: int) -> Members:
        """The rows that pass `test`."""
        members = self._filtered.pop(test, None)
        members = members or Members(self._connection, self._scope, test)
        self._filtered[test] = members
        if len(self._filtered) > FILTERS:
            self._filtered.popitem(last=False)
        return members.caught_up(revision)

    def _read_vectors(self, revision: int) -> None:
        if revision == self._seen:
            return
        for index in self._vectors.values():
            index.remove(changed(self._connection, self._scope, self._seen))
        last = self._seen
        while rows := self._connection.execute(
            "SELECT rev, seq, vector, kind FROM memories JOIN vectors USING (seq)"
            " WHERE scope = ? AND rev > ? AND space = ? ORDER BY rev LIMIT ?",
            (self._scope, last, self._space, CHUNK),
        ).fetchall():
            last = rows[-1][0]
            for kind in {row[3] for row in rows}:
                of_kind = [row for row in rows if row[3] == kind]
                vectors = np.frombuffer(b"".join(row[2] for row in of_kind), dtype=np.float32)
                seqs = np.array([row[1] for row in of_kind], dtype=np.int64)
                index = self._vectors.setdefault(kind, VectorIndex(self._dimension))
                index.add(seqs, vectors.reshape(-1, self._dimension))
        self._seen = revision


class Members:
    """The rows of a scope that pass a test, ascending."""

    def __init__(self, connection: sqlite3.Connection, scope: int, test: Sql) -> None:
        self._connection, self._scope, self._test = connection, scope, test
        self._seen = 0
        self.numbers = NONE
        self._among = dict[str, npt.NDArray[np.bool_]]()

    def among(self, name: str, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Which of `numbers` pass; `name` says which these are, at the present revision."""
        if name not in self._among:
            self._among[name] = within(numbers, self.numbers)
        return self._among[name]

    def caught_up(self, revision: int) -> Self:
        """Read the changes up to `revision`; return itself."""
        if revision != self._seen:
            gone = changed(self._connection, self._scope, self._seen) if self._seen else NONE
            self._take(~within(self.numbers, gone))
            self._seen, self._among = revision, {}
        return self

    def _take(self, kept: npt.NDArray[np.bool_]) -> None:
        """Keep some of the rows; add rows that pass the test and were written since."""
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
    """The rows of a scope that have words, ascending, with lengths and kinds (1: a fact)."""

    def __init__(self, connection: sqlite3.Connection, scope: int) -> None:
        super().__init__(connection, scope, Sql("length > 0"))
        self.lengths = NONE
        self.measured = measured(NONE, NONE, NONE)

    def _take(self, kept: npt.NDArray[np.bool_]) -> None:
        standing, written = (
            (self.numbers, self.lengths, self.measured.kinds),
            self._lists("seq length kind='fact'", self._seen),
        )
        numbers, lengths, kinds = (
            np.concatenate([old[kept], listed(new)])
            for old, new in zip(standing, written, strict=True)
        )
        order = np.argsort(numbers, kind="stable")
        self.numbers, self.lengths = numbers[order], lengths[order]
        self.measured = measured(self.numbers, self.lengths, kinds[order])


def changed(connection: sqlite3.Connection, scope: int, since: int) -> Numbers:
    """The rows of a scope that were written or removed after the revision `since`, ascending."""
    numbers = connection.execute(
        "SELECT json_group_array(seq) FROM"
        " (SELECT seq FROM memories WHERE scope = ?1 AND rev > ?2"
        " UNION SELECT seq FROM removed WHERE scope = ?1 AND rev > ?2)",
        (scope, since),
    ).fetchone()
    return np.sort(listed(numbers[0]))


class VectorIndex:
    """Exact nearest neighbours by cosine, among the allowed rows."""

    def __init__(self, dimension: int) -> None:
        # Both have room for more rows than there are, so that adding one copies nothing.
        self._seqs: Numbers = np.empty(ROOM, dtype=np.int64)
        self._vectors = np.empty((ROOM, dimension), dtype=np.float32)
        self._count = 0

    def add(self, seqs: Numbers, vectors: Vector) -> None:
        """Add rows; `vectors` has one line per row."""
        start, self._count = self._count, self._count + len(seqs)
        if self._count > len(self._seqs):
            room, old = max(self._count, 2 * len(self._seqs)), (self._seqs, self._vectors)
            # Not `np.resize`, which fills the room: memory that nobody writes to is not taken.
            self._seqs = np.empty(room, dtype=np.int64)
            self._vectors = np.empty((room, vectors.shape[1]), dtype=np.float32)
            self._seqs[:start], self._vectors[:start] = old[0][:start], old[1][:start]
        self._seqs[start : self._count] = seqs
        self._vectors[start : self._count] = vectors

    def remove(self, seqs: Numbers) -> None:
        """Remove these rows, as far as they are in the index."""
        for place in np.flatnonzero(within(self._seqs[: self._count], np.sort(seqs)))[::-1]:
            self._count -= 1  # the last row takes the place
            self._seqs[place] = self._seqs[self._count]
            self._vectors[place] = self._vectors[self._count]

    @property
    def seqs(self) -> Numbers:
        """The rows, in the order of their vectors."""
        return self._seqs[: self._count]

    def search(
        self, vectors: Sequence[Vector], passing: npt.NDArray[np.bool_], limit: int
    ) -> list[list[tuple[int, float]]]:
        """For each vector the `limit` nearest of the `passing` rows, nearest first, with cosine.

        A cosine is -1..1. Ties go to the row written first.
        """
        if not passing.any():
            return [[] for _ in vectors]
        some = slice(None) if passing.all() else passing
        seqs, rows = self.seqs, self._vectors[: self._count]
        # Not a product of matrices, which starts BLAS's threads: a recall has few vectors.
        cosines_of = (np.vecdot(rows, vector)[some].clip(-1.0, 1.0) for vector in vectors)
        return [best(seqs[some], cosines, limit) for cosines in cosines_of]


class WordIndex:
    """The word indexes of one file, one per scope."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def make(self, scope: int) -> None:
        """Make the index of a new scope, and the view that lists its postings."""
        self._connection.execute(
            f"CREATE VIRTUAL TABLE words_{scope} USING fts5(text, content='', tokenize='ascii')"
        )
        self._connection.execute(
            f"CREATE VIRTUAL TABLE vocabulary_{scope} USING fts5vocab(words_{scope}, instance)"
        )

    def add(self, scope: int, seq: int, text: str | None) -> None:
        """Add the words of a row, if any, as `encoded` joins them."""
        if text:
            insert = f"INSERT INTO words_{scope} (rowid, text) VALUES (?, ?)"
            self._connection.execute(insert, (seq, text))

    def remove(self, scope: int, seq: int, text: str | None) -> None:
        """Remove the words of a row: exactly the words that were added."""
        if text:
            delete = f"INSERT INTO words_{scope} (words_{scope}, rowid, text)"
            self._connection.execute(f"{delete} VALUES ('delete', ?, ?)", (seq, text))

    def postings(self, scope: int, words: Sequence[str]) -> list[Numbers]:
        """For each word of the index the numbers of the rows that have it, once per occurrence."""
        found = self._connection.execute(
            f"SELECT (SELECT json_group_array(doc) FROM vocabulary_{scope} WHERE term = value)"
            " FROM json_each(?)",
            (json.dumps(words),),
        )
        return [listed(numbers) for (numbers,) in found.fetchall()]

    def analyse_again(self) -> None:
        """Rebuild the indexes. A row that no word may find stays out of them."""
        run, last = self._connection.execute, 0
        for (scope,) in run("SELECT number FROM scopes").fetchall():
            self.drop(scope)
            self.make(scope)
        while found := run(
            "SELECT seq, scope, payload FROM memories WHERE seq > ? AND terms IS NOT NULL"
            " ORDER BY seq LIMIT ?",
            (last, CHUNK),
        ).fetchall():
            for seq, scope, payload in found:
                last, text = seq, analysed(json.loads(payload))
                update = "UPDATE memories SET terms = ?, length = ? WHERE seq = ?"
                run(update, (text, word_count(text), seq))
                self.add(scope, seq, text)

    def drop(self, scope: int) -> None:
        """Remove the index of a scope."""
        for table in (f"vocabulary_{scope}", f"words_{scope}"):
            self._connection.execute(f"DROP TABLE IF EXISTS {table}")

    def scrub(self, scope: int) -> None:
        """Rewrite the index: until then it still holds removed words."""
        self._connection.execute(f"INSERT INTO words_{scope} (words_{scope}) VALUES ('optimize')")


def encoded(terms: Sequence[str]) -> str:
    """Terms as one text for the index."""
    return " ".join(map(_encoded, filter(None, terms)))


@lru_cache(maxsize=16_384)
def _encoded(term: str) -> str:
    return term.translate(_ENCODED).lower()


def within(numbers: Numbers, others: Numbers) -> npt.NDArray[np.bool_]:
    """Which of `numbers` are among `others`, which ascend: a tenth of the time of `np.isin`."""
    if not len(others):
        return np.zeros(len(numbers), dtype=np.bool_)
    found: npt.NDArray[np.bool_] = others.take(others.searchsorted(numbers), mode="clip") == numbers
    return found


def analysed(payload: Mapping[str, Any]) -> str:
    """The index terms of a row, as one text for the index."""
    return encoded(terms_of(str(payload["data"])))


def taken_apart(payload: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """(the payload to store, its index terms; None for a row that no word may find)."""
    kept = stored_payload(payload)
    if "terms" not in payload:
        return kept, analysed(kept)
    given: Sequence[str] = payload["terms"]
    return kept, encoded(given) if given else None


def word_count(text: str | None) -> int:
    """The number of words in a row's index text."""
    return len(text.split(" ")) if text else 0


def listed(numbers: str) -> Numbers:
    """A JSON list of whole numbers as an array: SQLite returns that faster than rows."""
    inside = numbers[1:-1]
    return np.fromstring(inside, dtype=np.int64, sep=",") if inside else np.empty(0, np.int64)


class Placed(NamedTuple):
    """A word: where in all texts those stand that have it, and how often each has it."""

    places: Numbers
    counts: Numbers


class Weighed(NamedTuple):
    """A word: where in all texts those stand that have it, and what it adds to each one's score."""

    places: Numbers
    parts: Scores
    having: Numbers
    """How many texts of each kind have it."""


class Measured(NamedTuple):
    """The texts that words are weighed among, by ascending number; of each kind, from 0, `rows`."""

    numbers: Numbers
    kinds: Numbers
    rows: Numbers
    damping: Scores
    """How much a word counts for less in a longer text."""


def measured(numbers: Numbers, lengths: Numbers, kinds: Numbers) -> Measured:
    """Measure texts; `lengths` in words."""
    rows = np.bincount(kinds, minlength=1)
    mean = np.bincount(kinds, weights=lengths, minlength=1) / np.maximum(rows, 1)
    damping = SATURATION * (1 - LENGTH_PART + LENGTH_PART * lengths / mean[kinds])
    return Measured(numbers, kinds, rows, damping)


def weighed(words: Sequence[Placed], texts: Measured) -> Iterable[Weighed]:
    """Weigh words."""
    # All words at once: a query has a dozen, and each call of numpy costs as much as a short text.
    places, counts = (np.concatenate(one) for one in zip(*words, strict=True))
    lengths = [len(one.places) for one in words]
    numbers = np.repeat(np.arange(len(words)), lengths)
    of, width = texts.kinds[places], len(texts.rows)
    having = np.bincount(numbers * width + of, minlength=len(words) * width)
    having = having.reshape(len(words), width)
    rarity, damping = _rarity(texts.rows, having)[numbers, of], texts.damping[places]
    parts = rarity * counts * (SATURATION + 1) / (counts + damping)
    each = np.split(parts, np.cumsum(lengths)[:-1])
    return map(Weighed, (one.places for one in words), each, having)


def bm25(words: Sequence[Weighed], texts: Measured) -> tuple[Numbers, Scores]:
    """Where those of `texts` stand that have a weighed word of a query, and the score of each."""
    if not (len(texts.kinds) and words):
        return NONE, np.zeros(0)
    having = np.stack([one.having for one in words])
    whole = _rarity(np.array(len(texts.kinds)), having.sum(axis=1)).sum()
    balance: Scores = whole / _rarity(texts.rows, having).sum(axis=0)
    places, parts = (np.concatenate(one) for one in zip(*(word[:2] for word in words), strict=True))
    scores = np.bincount(places, weights=parts)
    found = np.flatnonzero(scores > 0)  # of truths: of numbers it takes ten times as long
    return found, balance[texts.kinds[found]] * scores[found]


def placed(postings: Sequence[Numbers], texts: Numbers) -> list[Placed]:
    """Words as they stand in texts, whose numbers ascend.

    `postings`: of each the numbers of its texts, ascending, once an occurrence.
    """
    numbers = np.concatenate([NONE, *postings])
    words = np.repeat(np.arange(len(postings)), [len(one) for one in postings])
    places = np.searchsorted(texts, numbers)
    known = places < len(texts)
    known[known] = texts[places[known]] == numbers[known]
    words, places = words[known], places[known]
    new = np.flatnonzero(np.diff(words * len(texts) + places)) + 1
    first = np.concatenate([[0], new])[: len(places)]
    counts = np.diff(np.concatenate([first, [len(places)]]))
    ends = np.searchsorted(words[first], np.arange(1, len(postings)))
    return [*map(Placed, np.split(places[first], ends), np.split(counts, ends))]


def replaced(
    words: Mapping[str, Placed], said: Mapping[int, Sequence[str]], texts: Numbers
) -> dict[str, Placed]:
    """The words after some of the texts were written: what each `said`, by its number."""
    places = texts.searchsorted(np.array([*said], dtype=np.int64))
    written, found = np.zeros(len(texts), dtype=np.bool_), defaultdict[str, dict[int, int]](dict)
    written[places] = True
    for place, text in zip(places.tolist(), said.values(), strict=True):
        for word, count in Counter(text).items():
            found[word][place] = count
    after = dict[str, Placed]()
    for word, one in words.items():
        gone, new = written[one.places], found.get(word, {})
        if new or gone.any():
            added = (np.array([*some], dtype=np.int64) for some in (new, new.values()))
            one = Placed(
                *(np.concatenate([old[~gone], more]) for old, more in zip(one, added, strict=True))
            )
        after[word] = one
    return after


def _rarity(rows: Numbers, having: Numbers) -> Scores:
    """The inverse document frequency of a word that `having` of `rows` texts have."""
    found: Scores = np.log(1 + (rows - having + 0.5) / (having + 0.5))
    return found


def _reached(scores: npt.NDArray[np.floating[Any]], limit: int) -> float:
    """A score that the `limit` best reach, and few others; no order of all is needed for it."""
    if not 0 < limit < len(scores):
        return -math.inf
    width = max(1, len(scores) // (4 * limit))
    highest = scores[: len(scores) // width * width].reshape(-1, width).max(axis=1)
    return float(np.partition(highest, -limit)[-limit])


def best(numbers: Numbers, scores: Scores, limit: int) -> list[tuple[int, float]]:
    """The `limit` best numbers with their scores, best first; ties go to the lower number."""
    near = scores >= _reached(scores, limit)
    numbers, scores = numbers[near], scores[near]
    order = np.lexsort((numbers, -scores))[: max(limit, 0)]
    return [(int(numbers[place]), float(scores[place])) for place in order]
