"""The table of memories in an SQLite file, with words in FTS5 and vectors in an array.

SQLite is the truth. The vectors of a scope are held in memory once it is searched, and follow
what any process writes.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from memory.facts.sqlite import schema
from memory.facts.sqlite.indexes import ScopeIndex, WordIndex, encoded
from memory.facts.sqlite.schema import SqliteRows
from memory.facts.table import (
    ROW,
    Counted,
    Dialect,
    Filters,
    Listing,
    MemoryTable,
    Row,
    Sql,
    Vector,
    Waiting,
    checked_vector,
    order_by,
    split,
    where,
)
from memory.storage.sqlite import (
    PATIENCE,
    UNREAD,
    MentionIndex,
    clear_errors,
    compact,
    use_wal,
)
from memory.text import TextPrefilter

SCOPES_IN_MEMORY = 200
"""Most agents whose indexes stay in memory, the last searched; others are loaded again."""

PAGE_SIZE = 8_192
"""Bytes, of a new file: five vectors of 384 numbers fit; half that size would waste a quarter."""

_DIALECT = Dialect(
    column="{name}",
    value="?",
    among="IN (SELECT value FROM json_each(?))",
    as_value=lambda value: value,
    # SQLite's JSON ends a text at a NUL: such a text would match its beginning.
    as_list=lambda values: json.dumps([value for value in values if "\0" not in str(value)]),
)


class SqliteTable(MemoryTable):
    """The table in one file, for one embedder."""

    dialect = _DIALECT

    def __init__(self, path: Path, *, model: str, dimension: int) -> None:
        self._file = SqliteFile(path)
        self.lock = self._file.lock
        self._connection = self._file.connection
        self._space, self._dimension = f"{model} {dimension}", dimension
        self._words = WordIndex(self._connection)
        self._rows = SqliteRows(self._connection, self._words, self._space)
        facts = ("memories", "id", "payload", "{row}kind = 'fact'")
        self._mentions = MentionIndex(self._connection, *facts)
        self._indexes: OrderedDict[int, ScopeIndex] = OrderedDict()
        try:
            self._prepare()
        except BaseException:
            self._file.close()
            raise

    def _prepare(self) -> None:
        with self._file.reading():
            current = schema.is_current(self._connection) and self._mentions.is_made()
        if not current:
            with self._file.transaction():
                schema.bring_up_to_date(self._connection, self._words)
                if not self._mentions.is_made():
                    self._mentions.make()

    def transaction(self) -> AbstractContextManager[None]:
        """Make the writes inside atomic; an error rolls them back. Joins an open transaction."""
        return self._file.transaction()

    def insert(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any]) -> None:
        """Add a row, unless its scope has a row of its kind and `op`."""
        with self._file.transaction():
            self._rows.add(row_id, self._bytes(vector), payload)
            self._mentions.catch_up(UNREAD)

    def alias(self, row_id: str, op: str) -> None:
        """Record that the operation `op` led to this row, too."""
        with self._file.transaction():
            self._rows.alias(row_id, op)

    def update(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any] | None) -> None:
        """Replace one row's vector, payload or both; None keeps the present one."""
        with self._file.transaction():
            self._rows.change(row_id, self._bytes(vector), payload)
            self._mentions.catch_up(UNREAD)

    def set_vectors(self, vectors: Mapping[str, Vector]) -> None:
        """Set vectors of the embedder in use, by row id; missing rows are skipped."""
        given = {
            row_id: checked_vector(vector, self._dimension) for row_id, vector in vectors.items()
        }
        with self._file.transaction():
            for row_id, vector in given.items():
                self._rows.embed(row_id, vector.tobytes())

    def delete(self, filters: Filters) -> int:
        """Remove the matching rows, keeping only their numbers; return how many there were."""
        with self._file.transaction():
            return self._rows.remove(self._where(filters))

    def touch(self, row_ids: Sequence[str], at: datetime) -> None:
        """Count an access of each row, at `at`. Leaves every index as it is."""
        with self._file.transaction():
            self._connection.execute(
                "UPDATE memories SET access_count = access_count + 1, last_access = ?"
                " WHERE id IN (SELECT value FROM json_each(?))",
                (at.isoformat(), json.dumps(list(row_ids))),
            )

    def select(
        self, filters: Filters, limit: int | None = None, wanted: TextPrefilter | None = None
    ) -> list[Row]:
        """As the base class's."""
        if wanted is None:
            return super().select(filters, limit)
        with self._file.reading():
            return self._sifted(self._where(filters), limit, wanted)

    def listed(self, wanted: Listing) -> tuple[list[Row], int]:
        """A page of a list of rows, and the number of rows on all pages."""
        text, values = self._where(wanted.filters)
        for term in map(encoded, zip(wanted.terms)):
            text, values = f"{text} AND instr(' ' || terms || ' ', ?)", (*values, f" {term} ")
        if wanted.names:
            named = "EXISTS (SELECT 1 FROM json_each(payload, '$.entities') WHERE value IN names)"
            text = f"{text} AND (speaker IN names OR {named})"
        # One pass counts and sorts: to test each row again for the count costs more.
        query = (
            "WITH names AS (SELECT value FROM json_each(?))"
            f" SELECT seq FROM memories WHERE {text} ORDER BY {order_by(wanted)}"
        )
        end = None if wanted.limit is None else wanted.offset + wanted.limit
        with self._file.reading():
            given = (json.dumps(list(wanted.names)), *values)
            found = [seq for (seq,) in self._connection.execute(query, given)]
            numbers = found[wanted.offset : end]
            rows = self.numbered(numbers)
        return [rows[seq] for seq in numbers], len(found)

    def made(self, filters: Filters, ops: Sequence[str]) -> dict[str, Row]:
        """The matching rows that these operations made, by operation; aliases count."""
        listed = json.dumps(list(ops))
        with self._file.reading():
            aliases = self._connection.execute(
                "SELECT op, seq FROM aliases WHERE op IN (SELECT value FROM json_each(?))",
                (listed,),
            ).fetchall()
            numbers = json.dumps([seq for _, seq in aliases])
            text, values = self._where(filters)
            other = Sql(f"seq IN (SELECT value FROM json_each(?)) AND ({text})", (numbers, *values))
            others = {row.seq: row for row in self._read(other)}
            own = Sql(f"op IN (SELECT value FROM json_each(?)) AND ({text})", (listed, *values))
            rows = {row.payload["op"]: row for row in self._read(own)}
        return {op: others[seq] for op, seq in aliases if seq in others} | rows

    def vector(self, row_id: str) -> Vector | None:
        """A row's vector; None without a row, or without a vector of the embedder in use."""
        found = self._value(
            "SELECT max(vector) FROM vectors JOIN memories USING (seq) WHERE id = ? AND space = ?",
            row_id,
            self._space,
        )
        return None if found is None else np.frombuffer(found, dtype=np.float32)

    def nearest(self, vector: Vector, filters: Filters, limit: int) -> list[tuple[Row, float]]:
        """The nearest matching rows, nearest first, with cosine (-1..1)."""
        checked_vector(vector, self._dimension)
        return self._found(filters, limit, lambda one, *at: one.nearest(vector, *at))

    def keywords(
        self, terms: Sequence[str], filters: Filters, limit: int
    ) -> list[tuple[Row, float]]:
        """The matching rows with any of these index terms, best first, with BM25 (> 0)."""
        return self._found(filters, limit, lambda one, *at: one.worded(self._words, [*terms], *at))

    def _found(
        self, filters: Filters, limit: int, search: Callable[..., list[tuple[int, float]]]
    ) -> list[tuple[Row, float]]:
        """The rows that `search` finds in the indexes of the scopes, best first."""
        scope, test = _split(filters)
        with self._file.reading():
            at, numbers = self._revision(), self._scopes(scope)
            found = [pair for one in numbers for pair in search(self._index(one), test, limit, at)]
            return self._ranked(found, limit)

    def counted(self, terms: Sequence[str], scope: Filters) -> Counted:
        """How many rows of a scope have each of these terms, of the kind that has most."""
        with self._file.reading():
            at = self._revision()
            found = [
                self._index(number).counted(self._words, list(terms), at)
                for number in self._scopes(split(scope)[0])
            ]
        having = Counter[str]()
        for part in found:
            having.update(part.having)
        return Counted(sum(one.rows for one in found), having)

    def unembedded(self, filters: Filters, limit: int) -> list[Waiting]:
        """Matching rows without a vector of the embedder in use, newest first."""
        with self._file.reading():
            rows = [
                row
                for where in self._waiting(filters)
                for row in self._connection.execute(
                    "SELECT seq, id, coalesce(json_extract(payload, '$.embed'),"
                    " json_extract(payload, '$.data')) FROM memories"
                    f" WHERE {where.text} ORDER BY seq DESC LIMIT ?",
                    (*where.values, max(limit, 0)),
                )
            ]
        return [Waiting(row[1], str(row[2])) for row in sorted(rows, reverse=True)[: max(limit, 0)]]

    def count_unembedded(self, filters: Filters) -> int:
        """The number of matching rows without a vector of the embedder in use."""
        with self._file.reading():
            return sum(
                int(self._value(f"SELECT count(*) FROM memories WHERE {where.text}", *where.values))
                for where in self._waiting(filters)
            )

    def scrub(self) -> None:
        """Remove the text of deleted and changed rows from the disk. Slow."""
        with self.lock:
            with self._file.transaction():
                for number in self._scopes({}):
                    self._words.scrub(number)
                self._mentions.clear()
            self._file.compact()
            with self._file.transaction():
                self._mentions.catch_up()

    def close(self) -> None:
        """Close the table. Every write was committed."""
        self._file.close()

    def _waiting(self, filters: Filters) -> Iterator[Sql]:
        """Tests for unembedded rows, one per scope and embedder not in use (None: no vector)."""
        scope, (text, values) = _split(filters)
        for number in self._scopes(scope):
            for space in (None, *self._other_spaces(number)):
                yield Sql(f"scope = ? AND space IS ? AND ({text})", (number, space, *values))

    def _other_spaces(self, number: int) -> Iterator[str]:
        """The other embedders of a scope's vectors, one by one: for DISTINCT, SQLite reads all."""
        space = self._value("SELECT min(space) FROM memories WHERE scope = ?", number)
        while space is not None:
            if space != self._space:
                yield space
            query = "SELECT min(space) FROM memories WHERE scope = ? AND space > ?"
            space = self._value(query, number, space)

    def _where(self, filters: Filters) -> Sql:
        """`filters` as a test of rows, by the scope's number where they name a scope."""
        scope, (text, values) = _split(filters)
        if not scope:
            return Sql(text, values)
        tests = " AND ".join(f"{name} IS ?" for name in scope)
        numbers = f"scope IN (SELECT number FROM scopes WHERE {tests})"
        return Sql(f"{numbers} AND {text}", (*scope.values(), *values))

    def _scopes(self, scope: Mapping[str, object]) -> list[int]:
        tests = " AND ".join(f"{name} IS ?" for name in scope) or "1"
        found = self._connection.execute(
            f"SELECT number FROM scopes WHERE {tests} ORDER BY number", list(scope.values())
        )
        return [number for (number,) in found.fetchall()]

    def _index(self, number: int) -> ScopeIndex:
        if self._file.writing:
            # Not kept: the rows that it reads may yet be rolled back.
            return ScopeIndex(self._connection, number, self._space, self._dimension)
        index = self._indexes.pop(number, None)
        index = index or ScopeIndex(self._connection, number, self._space, self._dimension)
        self._indexes[number] = index
        if len(self._indexes) > SCOPES_IN_MEMORY:
            self._indexes.popitem(last=False)
        return index

    def _revision(self) -> int:
        return int(self._value("SELECT rev FROM clock"))

    def _ranked(self, found: list[tuple[int, float]], limit: int) -> list[tuple[Row, float]]:
        best = sorted(found, key=lambda pair: (-pair[1], pair[0]))[: max(limit, 0)]
        rows = self.numbered(seq for seq, _ in best)
        return [(rows[seq], score) for seq, score in best if seq in rows]

    def _sifted(self, where: Sql, limit: int | None, wanted: TextPrefilter) -> list[Row]:
        """The rows that pass and whose text is wanted, by `seq`."""
        text, values = where
        if (having := self._mentions.having(wanted)) is not None:
            text = f"seq IN (SELECT value FROM json_each(?)) AND ({text})"
            values = (json.dumps([*having]), *values)
        query = f"SELECT seq, {self._mentions.text} FROM memories WHERE {text} ORDER BY seq"
        texts = self._connection.execute(query, values)
        rows = self.numbered(islice((n for n, text in texts if wanted.within(text)), limit))
        return [rows[seq] for seq in sorted(rows)]

    def _asked(self, filters: Filters, statement: str, *values: object) -> list[Any]:
        text, given = self._where(filters)
        with self._file.reading():
            query = statement.replace("{where}", text)
            return self._connection.execute(query, (*given, *values)).fetchall()

    def _read(self, where: Sql) -> list[Row]:
        query = f"SELECT {ROW} FROM memories AS m WHERE {where.text} ORDER BY m.seq"
        return [self._row(*row) for row in self._connection.execute(query, where.values)]

    def _row(self, seq: int, id_: str, payload: str, *counted: Any) -> Row:
        return super()._row(seq, id_, orjson.loads(payload), *counted)

    def _value(self, query: str, *values: object) -> Any:
        with self._file.reading():
            return self._connection.execute(query, values).fetchone()[0]

    def _bytes(self, vector: Vector | None) -> bytes | None:
        return None if vector is None else checked_vector(vector, self._dimension).tobytes()


def _split(filters: Filters) -> tuple[dict[str, str | None], Sql]:
    """(the ids of a scope, the test of a row). Raises ValueError."""
    scope, tests = split(filters)
    return scope, where(tests, _DIALECT)


class SqliteFile:
    """An SQLite file with one connection: its lock, transactions and errors. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self.lock = threading.RLock()
        """Held during every transaction; hold it to make several atomic within this process."""
        self.writing = False
        """A write transaction is open; its rows may yet be rolled back."""
        self._path = path
        with clear_errors(self._path):
            self.connection = sqlite3.connect(
                path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self.connection.close()
                raise

    def _prepare(self) -> None:
        """WAL lets others read while one writes; FULL makes a commit survive a power cut."""
        self.connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        use_wal(self.connection)
        self.connection.execute("PRAGMA synchronous = FULL")
        # Deleted content is overwritten at once; `scrub` then finds less.
        self.connection.execute("PRAGMA secure_delete = ON")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make the writes inside atomic; an error rolls them back. Joins an open transaction."""
        with self._transaction("BEGIN IMMEDIATE"):
            outer, self.writing = self.writing, True
            try:
                yield
            finally:
                self.writing = outer

    def reading(self) -> AbstractContextManager[None]:
        """Let all reads inside see the file as of one moment."""
        return self._transaction("BEGIN")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self.lock, clear_errors(self._path):
            if self.connection.in_transaction:
                yield
                return
            self.connection.execute(begin)
            try:
                yield
                self.connection.execute("COMMIT")
            finally:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    def compact(self) -> None:
        """Rewrite the file without any deleted content."""
        with self.lock, clear_errors(self._path):
            compact(self.connection)

    def close(self) -> None:
        """Close the connection. Every write was committed."""
        with self.lock:
            self.connection.close()
