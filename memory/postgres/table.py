"""The table of memories in PostgreSQL, with words in an inverted index and vectors in pgvector."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import numpy as np
from psycopg_pool import ConnectionPool

from memory.postgres.entry import entry_of
from memory.postgres.filters import where
from memory.postgres.memories import bring_up_to_date
from memory.postgres.nearest import Nearest
from memory.postgres.pool import Connection
from memory.postgres.rows import Rows
from memory.postgres.storable import storable
from memory.postgres.text import RANKED, as_asked
from memory.postgres.write import Ids, Transactions, scope_key
from memory.vectorstore.filters import Condition, Filters, Sql, condition_of, fixed, without
from memory.vectorstore.payload import embedded_text
from memory.vectorstore.table import Place, Row, Vector, Waiting

_SCOPE = ("user_id", "agent_id")
_ROW = "m.seq, m.id, m.payload, m.access_count, m.last_access"

_WAITING = "(m.space IS NULL OR m.space < %s OR m.space > %s)"
"""Three tests that an index answers, in place of one that it cannot."""


class PostgresTable:
    """The protocol `MemoryTable` on one database, for one embedder. See there.

    The pool is its owner's to close. Threads read side by side; those of one process write one
    after the other. A transaction holds each scope that it names until its end, against other
    processes too.
    """

    def __init__(self, pool: ConnectionPool[Connection], *, model: str, dimension: int) -> None:
        self.lock = threading.RLock()
        """Held through every write; hold it to make several calls one, as seen from here."""
        self.transactions = Transactions(pool)
        self._nearest = Nearest(self.transactions, f"{model} {dimension}", dimension)
        self._numbers: dict[Ids, int] = {}
        with self.transactions.connection() as connection, connection.transaction():
            bring_up_to_date(connection, pool.name)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All writes of this thread inside are one; an error rolls them back. Joins an open one."""
        with self._writing():
            yield

    def insert(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any]) -> None:
        """Add a row. One whose `op` stands in its scope and kind already is left as it is."""
        entry, given = entry_of(payload), self._text(vector)
        with self._writing() as rows:
            rows.add(row_id, given, entry)

    def alias(self, row_id: str, op: str) -> None:
        """Let `op` be known as having made this row, too."""
        with self._writing() as rows:
            rows.alias(row_id, op)

    def update(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any] | None) -> None:
        """Replace one row's vector, payload or both; None keeps what stands."""
        entry, given = None if payload is None else entry_of(payload), self._text(vector)
        with self._writing() as rows:
            rows.change(row_id, given, entry)

    def set_vectors(self, vectors: Mapping[str, Vector]) -> None:
        """Give rows their vectors, by id, as made by the embedder in use; a row gone is skipped."""
        given = {row_id: self._nearest.text(vector) for row_id, vector in vectors.items()}
        with self._writing() as rows:
            rows.embed(given)

    def delete(self, filters: Filters) -> int:
        """Remove the rows that match, leaving of each no more than its number; how many."""
        with self._writing() as rows, self.transactions.connection() as connection:
            return rows.remove(self._where(connection, filters))

    def touch(self, row_ids: Sequence[str], at: datetime) -> None:
        """Count an access of each row, the last one `at`. Changes nothing that is indexed."""
        with self._writing() as rows:
            rows.touch(row_ids, at)

    def select(self, filters: Filters, limit: int | None = None) -> list[Row]:
        """The rows that match, oldest first."""
        with self.transactions.connection() as connection:
            text, values = self._where(connection, filters)
            rows = connection.execute(
                f"SELECT {_ROW} FROM memories AS m WHERE {text} ORDER BY m.seq LIMIT %s",
                (*values, limit),
            )
            return [Row(*row) for row in rows]

    def made(self, filters: Filters, ops: Sequence[str]) -> dict[str, Row]:
        """The rows that match and that these operations made, by operation; aliases count."""
        with self.transactions.connection() as connection:
            text, values = self._where(connection, filters)
            rows = connection.execute(
                f"SELECT a.op, {_ROW}, false AS own FROM memory_aliases AS a JOIN memories AS m"
                f" USING (seq) WHERE a.op = ANY(%s) AND {text}"
                f" UNION ALL SELECT m.op, {_ROW}, true FROM memories AS m"
                f" WHERE m.op = ANY(%s) AND {text} ORDER BY own, seq",
                (list(ops), *values, list(ops), *values),
            )
            return {op: Row(*row) for op, *row, _ in rows}

    def count(self, filters: Filters) -> int:
        """How many rows match."""
        return self._count(filters, Sql("true"))

    def numbered(self, numbers: Iterable[int]) -> dict[int, Row]:
        """Rows by `seq`; those that are gone are left out."""
        with self.transactions.connection() as connection:
            rows = connection.execute(
                f"SELECT {_ROW} FROM memories AS m WHERE m.seq = ANY(%s::bigint[])",
                (list(numbers),),
            )
            return {row[0]: Row(*row) for row in rows}

    def vector(self, row_id: str) -> Vector | None:
        """The vector of a row, None where there is no row or none of the embedder in use."""
        with self.transactions.connection() as connection:
            row = connection.execute(
                "SELECT v.embedding::real[] FROM memory_vectors AS v JOIN memories AS m USING (seq)"
                " WHERE m.id = %s AND v.space = %s",
                (row_id, self._nearest.space),
            ).fetchone()
        return None if row is None else np.array(row[0], dtype=np.float32)

    def nearest(self, vector: Vector, filters: Filters, limit: int) -> list[tuple[Row, float]]:
        """The nearest of the rows that match, nearest first, with cosine (-1..1)."""
        with self.transactions.connection() as connection:
            scopes = self._scopes(connection, _split(filters)[1])
            test = self._where(connection, filters)
            found = self._nearest.search(connection, vector, test, scopes, max(limit, 0))
            rows = self.numbered(seq for seq, _ in found)
        return [(rows[seq], min(max(score, -1.0), 1.0)) for seq, score in found if seq in rows]

    def keywords(
        self, terms: Sequence[str], filters: Filters, limit: int
    ) -> list[tuple[Row, float]]:
        """The rows that match and have any of the index terms, best first, with BM25 (> 0)."""
        with self.transactions.connection() as connection:
            if write := self.transactions.current:
                write.settle()
            scopes, asked = self._scopes(connection, _split(filters)[1]), as_asked(terms)
            text, values = self._where(connection, filters)
            rows = connection.execute(
                f"{RANKED} SELECT {_ROW}, score FROM ranked JOIN memories AS m USING (seq)"
                f" WHERE {text} ORDER BY score DESC, m.seq LIMIT %s",
                (scopes, asked, asked, scopes, *values, max(limit, 0)),
            )
            return [(Row(*row), score) for *row, score in rows]

    def timeline(self, filters: Filters, sessions: Sequence[str]) -> list[Place]:
        """The episodes of these sessions, session by session, in the order of their time."""
        with self.transactions.connection() as connection:
            text, values = self._where(connection, filters)
            rows = connection.execute(
                "SELECT m.session, m.seq FROM memories AS m WHERE m.kind = 'episode'"
                f" AND m.session = ANY(%s) AND {text}"
                " ORDER BY m.session, m.valid_from NULLS FIRST, m.seq",
                (storable(list(sessions)), *values),
            )
            return [Place(*row) for row in rows]

    def unembedded(self, filters: Filters, limit: int) -> list[Waiting]:
        """Rows that match and have no vector of the embedder in use, newest first."""
        with self.transactions.connection() as connection:
            text, values = self._where(connection, filters)
            rows = connection.execute(
                f"SELECT m.id, m.payload FROM memories AS m WHERE {text} AND {_WAITING}"
                " ORDER BY m.seq DESC LIMIT %s",
                (*values, self._nearest.space, self._nearest.space, max(limit, 0)),
            )
            return [Waiting(row_id, embedded_text(payload)) for row_id, payload in rows]

    def count_unembedded(self, filters: Filters) -> int:
        """How many there are."""
        space = self._nearest.space
        return self._count(filters, Sql(_WAITING, (space, space)))

    def scrub(self) -> None:
        """Leave nothing in the tables' files of what was removed or changed. Slow; others wait.

        The server's log of writes and its backups are its operator's.
        """
        with self.lock, self.transactions.outside() as connection:
            # ANALYZE: what the planner knows of a table are values that were common in it.
            tables = "memories, memory_terms, memory_aliases, memory_vectors"
            connection.execute(f"VACUUM (FULL, ANALYZE) {tables}")

    def close(self) -> None:
        """Wait for a write in hand. The pool stays open: it is not this table's."""
        with self.lock:
            return

    @contextmanager
    def _writing(self) -> Iterator[Rows]:
        with self.lock:
            joined = self.transactions.current is not None
            with self.transactions.open() as write:
                yield Rows(write, self._nearest.space)
            if not joined:
                self._nearest.build_indexes(write.embedded)

    def _text(self, vector: Vector | None) -> str | None:
        return None if vector is None else self._nearest.text(vector)

    def _count(self, filters: Filters, test: Sql) -> int:
        with self.transactions.connection() as connection:
            text, values = self._where(connection, filters)
            row = connection.execute(
                f"SELECT count(*) FROM memories AS m WHERE {text} AND {test.text}",
                (*values, *test.values),
            ).fetchone()
        return int(row[0]) if row else 0

    def _where(self, connection: Connection, filters: Filters) -> Sql:
        """`filters` as a test of the rows `m`. Raises ValueError."""
        condition, scoped = _split(filters)
        text, values = where(condition)
        if not scoped:
            return Sql(f"({text})", values)
        scopes = self._scopes(connection, scoped)
        if len(scopes) == 1:
            return Sql(f"m.scope = %s AND ({text})", (scopes[0], *values))
        return Sql(f"m.scope = ANY(%s::int[]) AND ({text})", (scopes, *values))

    def _scopes(self, connection: Connection, scoped: Mapping[str, str | None]) -> list[int]:
        """The numbers of the scopes with these ids. A transaction takes the one that it names."""
        if len(scoped) < len(_SCOPE):
            tests = " AND ".join(f"{field} IS NOT DISTINCT FROM %s::text" for field in scoped)
            rows = connection.execute(
                f"SELECT number FROM memory_scopes WHERE {tests or 'true'}",
                [storable(value) for value in scoped.values()],
            )
            return [number for (number,) in rows]
        ids = (scoped["user_id"], scoped["agent_id"])
        if write := self.transactions.current:
            return [write.hold(ids)]
        if ids not in self._numbers:
            found = connection.execute(
                "SELECT number FROM memory_scopes WHERE key = %s", (scope_key(ids),)
            ).fetchone()
            if found is None:
                return []
            self._numbers[ids] = found[0]
        return [self._numbers[ids]]


def _split(filters: Filters) -> tuple[Condition, dict[str, str | None]]:
    """What is asked of a row, and of its scope. Raises ValueError."""
    condition = condition_of(filters)
    scoped = {
        field: value
        for field, value in fixed(condition).items()
        if field in _SCOPE and (value is None or isinstance(value, str))
    }
    return without(condition, scoped), scoped
