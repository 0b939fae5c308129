"""The table of memories in an SQLite file, with words in FTS5 and vectors in FAISS.

SQLite is the truth. FAISS holds the vectors of a scope in memory once it is searched, and follows
what any process writes.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from memory.vectorstore import schema
from memory.vectorstore.filters import Condition, Filters, Sql, condition_of, fixed, without
from memory.vectorstore.rows import Rows
from memory.vectorstore.scope_index import ScopeIndex
from memory.vectorstore.sqlite_file import SqliteFile
from memory.vectorstore.sqlite_filters import where
from memory.vectorstore.table import Place, Row, Vector, Waiting
from memory.vectorstore.vectors import checked
from memory.vectorstore.words import WordIndex

SCOPES_IN_MEMORY = 200
"""Agents whose indexes are kept in memory: those searched last. Others are filled again."""

_ROW = "seq, id, payload, access_count, last_access"
_SCOPE = ("user_id", "agent_id")


class SqliteTable:
    """The protocol `MemoryTable` on one file, for one embedder. See there."""

    def __init__(self, path: Path, *, model: str, dimension: int) -> None:
        self._file = SqliteFile(path)
        self.lock = self._file.lock
        self._connection = self._file.connection
        self._connection.create_function("casefold", 1, str.casefold, deterministic=True)
        self._space, self._dimension = f"{model} {dimension}", dimension
        self._words = WordIndex(self._connection)
        self._rows = Rows(self._connection, self._words, self._space)
        self._indexes: OrderedDict[int, ScopeIndex] = OrderedDict()
        try:
            self._prepare()
        except BaseException:
            self._file.close()
            raise

    def _prepare(self) -> None:
        with self._file.reading():
            current = schema.is_current(self._connection)
        if not current:
            with self._file.transaction():
                size = self._dimension * np.dtype(np.float32).itemsize
                schema.bring_up_to_date(self._connection, self._rows, self._words, size)

    def transaction(self) -> AbstractContextManager[None]:
        """All writes inside are one; an error rolls them back. Joins one that is open."""
        return self._file.transaction()

    def insert(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any]) -> None:
        """Add a row. One whose `op` stands in its scope and kind already is left as it is."""
        with self._file.transaction():
            self._rows.add(row_id, self._bytes(vector), payload)

    def alias(self, row_id: str, op: str) -> None:
        """Let `op` be known as having made this row, too."""
        with self._file.transaction():
            self._rows.alias(row_id, op)

    def update(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any] | None) -> None:
        """Replace one row's vector, payload or both; None keeps what stands."""
        with self._file.transaction():
            self._rows.change(row_id, self._bytes(vector), payload)

    def set_vectors(self, vectors: Mapping[str, Vector]) -> None:
        """Give rows their vectors, by id, as made by the embedder in use; a row gone is skipped."""
        given = {row_id: checked(vector, self._dimension) for row_id, vector in vectors.items()}
        with self._file.transaction():
            for row_id, vector in given.items():
                self._rows.embed(row_id, vector.tobytes())

    def delete(self, filters: Filters) -> int:
        """Remove the rows that match, leaving of each no more than its number; how many."""
        with self._file.transaction():
            return self._rows.remove(self._where(filters))

    def touch(self, row_ids: Sequence[str], at: datetime) -> None:
        """Count an access of each row, the last one `at`. Changes nothing that is indexed."""
        with self._file.transaction():
            self._connection.execute(
                "UPDATE memories SET access_count = access_count + 1, last_access = ?"
                " WHERE id IN (SELECT value FROM json_each(?))",
                (at.isoformat(), json.dumps(list(row_ids))),
            )

    def select(self, filters: Filters, limit: int | None = None) -> list[Row]:
        """The rows that match, oldest first."""
        with self._file.reading():
            return self._read(self._where(filters), limit)

    def made(self, filters: Filters, ops: Sequence[str]) -> dict[str, Row]:
        """The rows that match and that these operations made, by operation; aliases count."""
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

    def count(self, filters: Filters) -> int:
        """How many rows match."""
        text, values = self._where(filters)
        return int(self._one(f"SELECT count(*) FROM memories WHERE {text}", *values))

    def numbered(self, numbers: Iterable[int]) -> dict[int, Row]:
        """Rows by `seq`; those that are gone are left out."""
        listed = json.dumps(list(numbers))
        with self._file.reading():
            rows = self._read(Sql("seq IN (SELECT value FROM json_each(?))", (listed,)))
        return {row.seq: row for row in rows}

    def vector(self, row_id: str) -> Vector | None:
        """The vector of a row, None where there is no row or none of the embedder in use."""
        found = self._one(
            "SELECT max(vector) FROM vectors JOIN memories USING (seq) WHERE id = ? AND space = ?",
            row_id,
            self._space,
        )
        return None if found is None else np.frombuffer(found, dtype=np.float32)

    def nearest(self, vector: Vector, filters: Filters, limit: int) -> list[tuple[Row, float]]:
        """The nearest of the rows that match, nearest first, with cosine (-1..1)."""
        checked(vector, self._dimension)
        condition, scoped = _split(filters)
        with self._file.reading():
            at = self._revision()
            found = [
                one
                for number in self._scopes(scoped)
                for one in self._index(number).nearest(vector, condition, limit, at)
            ]
            return self._ranked(found, limit)

    def keywords(
        self, terms: Sequence[str], filters: Filters, limit: int
    ) -> list[tuple[Row, float]]:
        """The rows that match and have any of the index terms, best first, with BM25 (> 0)."""
        condition, scoped = _split(filters)
        with self._file.reading():
            at = self._revision()
            found = [
                one
                for number in self._scopes(scoped)
                for one in self._index(number).worded(
                    self._words, list(terms), condition, limit, at
                )
            ]
            return self._ranked(found, limit)

    def timeline(self, filters: Filters, sessions: Sequence[str]) -> list[Place]:
        """The episodes of these sessions, session by session, in the order of their time."""
        text, values = self._where(filters)
        with self._file.reading():
            rows = self._connection.execute(
                f"SELECT session, seq FROM memories WHERE ({text}) AND kind = 'episode'"
                " AND session IN (SELECT value FROM json_each(?))"
                " ORDER BY session, valid_from, seq",
                (*values, json.dumps(list(sessions))),
            )
            return [Place(*row) for row in rows]

    def unembedded(self, filters: Filters, limit: int) -> list[Waiting]:
        """Rows that match and have no vector of the embedder in use, newest first."""
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
        """How many there are."""
        with self._file.reading():
            return sum(
                int(self._one(f"SELECT count(*) FROM memories WHERE {where.text}", *where.values))
                for where in self._waiting(filters)
            )

    def scrub(self) -> None:
        """Leave on the disk nothing of the text of rows that were removed or changed. Slow."""
        with self.lock:
            with self._file.transaction():
                for number in self._scopes({}):
                    self._words.scrub(number)
            self._file.compact()

    def close(self) -> None:
        """Close it. Nothing is lost: every write was committed."""
        self._file.close()

    def _waiting(self, filters: Filters) -> Iterator[Sql]:
        """What to look for: scope by scope, for each embedder but the one in use, and for none."""
        condition, scoped = _split(filters)
        text, values = where(condition)
        for number in self._scopes(scoped):
            for space in (None, *self._other_spaces(number)):
                yield Sql(f"scope = ? AND space IS ? AND ({text})", (number, space, *values))

    def _other_spaces(self, number: int) -> Iterator[str]:
        """Looked up one after the other: the index would be read as a whole to list them."""
        space = self._one("SELECT min(space) FROM memories WHERE scope = ?", number)
        while space is not None:
            if space != self._space:
                yield space
            query = "SELECT min(space) FROM memories WHERE scope = ? AND space > ?"
            space = self._one(query, number, space)

    def _where(self, filters: Filters) -> Sql:
        """`filters` for the table, by the number of the scope where they name one."""
        condition, scoped = _split(filters)
        text, values = where(condition)
        if not scoped:
            return Sql(text, values)
        tests = " AND ".join(f"{field} IS ?" for field in scoped)
        numbers = f"scope IN (SELECT number FROM scopes WHERE {tests})"
        return Sql(f"{numbers} AND ({text})", (*scoped.values(), *values))

    def _scopes(self, scoped: Mapping[str, object]) -> list[int]:
        """The numbers of the scopes that have these ids."""
        tests = " AND ".join(f"{field} IS ?" for field in scoped) or "1"
        found = self._connection.execute(
            f"SELECT number FROM scopes WHERE {tests} ORDER BY number", list(scoped.values())
        )
        return [number for (number,) in found.fetchall()]

    def _index(self, number: int) -> ScopeIndex:
        if self._file.writing:
            # Not kept: what it takes in may yet be rolled back.
            return ScopeIndex(self._connection, number, self._space, self._dimension)
        index = self._indexes.pop(number, None)
        index = index or ScopeIndex(self._connection, number, self._space, self._dimension)
        self._indexes[number] = index
        if len(self._indexes) > SCOPES_IN_MEMORY:
            self._indexes.popitem(last=False)
        return index

    def _revision(self) -> int:
        return int(self._one("SELECT rev FROM clock"))

    def _ranked(self, found: list[tuple[int, float]], limit: int) -> list[tuple[Row, float]]:
        best = sorted(found, key=lambda one: (-one[1], one[0]))[: max(limit, 0)]
        rows = self.numbered(seq for seq, _ in best)
        return [(rows[seq], score) for seq, score in best if seq in rows]

    def _read(self, where: Sql, limit: int | None = None) -> list[Row]:
        rows = self._connection.execute(
            f"SELECT {_ROW} FROM memories WHERE {where.text} ORDER BY seq LIMIT ?",
            (*where.values, -1 if limit is None else limit),
        )
        return [Row(seq, one, orjson.loads(payload), *rest) for seq, one, payload, *rest in rows]

    def _one(self, query: str, *values: object) -> Any:
        with self._file.reading():
            return self._connection.execute(query, values).fetchone()[0]

    def _bytes(self, vector: Vector | None) -> bytes | None:
        return None if vector is None else checked(vector, self._dimension).tobytes()


def _split(filters: Filters) -> tuple[Condition, dict[str, object]]:
    """What is asked of a row, and of its scope. Raises ValueError."""
    condition = condition_of(filters)
    scoped = {field: one for field, one in fixed(condition).items() if field in _SCOPE}
    return without(condition, scoped), dict(scoped)
