"""The table of memories in PostgreSQL, with words in an inverted index and vectors in pgvector."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import numpy as np
from psycopg_pool import ConnectionPool

from memory.facts.postgres.rows import (
    RANKED,
    Ids,
    PostgresRows,
    Transactions,
    as_asked,
    as_kept,
    content_of,
    scope_key,
)
from memory.facts.postgres.schema import bring_up_to_date
from memory.facts.table import (
    ROW,
    SCOPE,
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
    embedded_text,
    order_by,
    split,
    where,
)
from memory.storage.postgres import Connection, storable

_NEAREST = f"""
SELECT {ROW}, -(v.embedding <#> %s::vector) AS score
FROM memories AS m JOIN memory_vectors AS v USING (seq)
WHERE v.space = %s AND v.scope = ANY(%s::int[]) AND {{where}} ORDER BY score DESC, v.seq LIMIT %s
"""
"""Every vector is compared. They have length 1, so that the inner product is the cosine."""

_COUNTED = """
SELECT NULL AS term, coalesce(max(those), 0)::bigint
FROM (SELECT sum(rows) AS those FROM memory_kinds WHERE scope = ANY(%s) GROUP BY kind) AS by_kind
UNION ALL SELECT term, max(those) FROM (
    SELECT term, count(*) AS those FROM memory_terms
    WHERE scope = ANY(%s) AND term = ANY(%s) GROUP BY kind, term
) AS by_kind GROUP BY term
"""
"""Over kinds the most rows, and the most rows with each term."""

_WAITING = "(m.space IS NULL OR m.space < %s OR m.space > %s)"
"""Three tests that an index can answer, in place of `<>`, which it cannot."""

_DIALECT = Dialect(
    column="m.{name}",
    value="%s::{type}",
    among="= ANY(%s::{type}[])",
    as_value=storable,
    as_list=lambda values: storable(list(values)),
)


def _listing(field: str) -> str:
    """A test whether a list in the payload has one of the values given."""
    return f"jsonb_exists_any(m.payload -> '{field}', %s::text[])"


class PostgresTable(MemoryTable):
    """The table in one database, for one embedder.

    The pool's owner closes it. Threads read in parallel; within one process they write one after
    the other. A transaction locks each scope that it touches until its end, across processes.
    """

    dialect = _DIALECT

    def __init__(self, pool: ConnectionPool[Connection], *, model: str, dimension: int) -> None:
        self.lock = threading.RLock()
        """Held during every write; hold it to make several calls atomic within this process."""
        self.transactions = Transactions(pool)
        self._space, self._dimension = f"{model} {dimension}", dimension
        self._numbers: dict[Ids, int] = {}
        with self.transactions.connection() as connection, connection.transaction():
            bring_up_to_date(connection, pool.name)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make this thread's writes inside atomic; an error rolls them back. Joins an open one."""
        with self._writing():
            yield

    def insert(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any]) -> None:
        """Add a row, unless its scope has a row of its kind and `op`."""
        content, given = content_of(payload), None if vector is None else self._text(vector)
        with self._writing() as rows:
            rows.add(row_id, given, content)

    def alias(self, row_id: str, op: str) -> None:
        """Record that the operation `op` led to this row, too."""
        with self._writing() as rows:
            rows.alias(row_id, op)

    def update(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any] | None) -> None:
        """Replace one row's vector, payload or both; None keeps the present one."""
        content = None if payload is None else content_of(payload)
        given = None if vector is None else self._text(vector)
        with self._writing() as rows:
            rows.change(row_id, given, content)

    def set_vectors(self, vectors: Mapping[str, Vector]) -> None:
        """Set vectors of the embedder in use, by row id; missing rows are skipped."""
        given = {row_id: self._text(vector) for row_id, vector in vectors.items()}
        with self._writing() as rows:
            rows.embed(given)

    def delete(self, filters: Filters) -> int:
        """Remove the matching rows, keeping only their numbers; return how many there were."""
        with self._writing() as rows, self.transactions.connection() as connection:
            return rows.remove(self._where(connection, filters))

    def touch(self, row_ids: Sequence[str], at: datetime) -> None:
        """Count an access of each row, at `at`. Leaves every index as it is."""
        with self._writing() as rows:
            rows.touch(row_ids, at)

    def listed(self, wanted: Listing) -> tuple[list[Row], int]:
        """A page of a list of rows, and the number of rows on all pages."""
        with self.transactions.connection() as connection:
            text, values = self._where(connection, wanted.filters)
            if wanted.terms:
                text, values = f"{text} AND m.terms @> %s::text[]", (*values, as_kept(wanted.terms))
            if wanted.names:
                names = [storable(name) for name in wanted.names]
                text = f"{text} AND (m.speaker = ANY(%s::text[]) OR {_listing('entities')})"
                values = (*values, names, names)
            if wanted.citing:
                cited = [storable(one) for one in wanted.citing]
                text = f"{text} AND ({_listing('source_entries')} OR {_listing('source_events')})"
                values = (*values, cited, cited)
            for field, test in ((wanted.has, ""), (wanted.lacks, "NOT ")):
                if field:
                    text, values = f"{text} AND {test}jsonb_exists(m.payload, %s)", (*values, field)
            query = f"FROM memories AS m WHERE {text}"
            [(total,)] = connection.execute(f"SELECT count(*) {query}", values)
            rows = connection.execute(
                f"SELECT {ROW} {query} ORDER BY {order_by(wanted)} LIMIT %s OFFSET %s",
                (*values, wanted.limit, wanted.offset),
            )
            return [Row(*row) for row in rows], total

    def made(self, filters: Filters, ops: Sequence[str]) -> dict[str, Row]:
        """The matching rows that these operations made, by operation; aliases count."""
        with self.transactions.connection() as connection:
            text, values = self._where(connection, filters)
            rows = connection.execute(
                f"SELECT a.op, {ROW}, false AS own FROM memory_aliases AS a JOIN memories AS m"
                f" USING (seq) WHERE a.op = ANY(%s) AND {text}"
                f" UNION ALL SELECT m.op, {ROW}, true FROM memories AS m"
                f" WHERE m.op = ANY(%s) AND {text} ORDER BY own, seq",
                (list(ops), *values, list(ops), *values),
            )
            return {op: Row(*row) for op, *row, _ in rows}

    def vector(self, row_id: str) -> Vector | None:
        """A row's vector; None without a row, or without a vector of the embedder in use."""
        with self.transactions.connection() as connection:
            row = connection.execute(
                "SELECT v.embedding::real[] FROM memory_vectors AS v JOIN memories AS m USING (seq)"
                " WHERE m.id = %s AND v.space = %s",
                (row_id, self._space),
            ).fetchone()
        return None if row is None else np.array(row[0], dtype=np.float32)

    def nearest(self, vector: Vector, filters: Filters, limit: int) -> list[tuple[Row, float]]:
        """The nearest matching rows, nearest first, with cosine (-1..1)."""
        query = self._text(vector)
        with self.transactions.connection() as connection:
            scopes = self._scopes(connection, split(filters)[0])
            test = self._where(connection, filters)
            rows = connection.execute(
                _NEAREST.format(where=test.text),
                (query, self._space, scopes, *test.values, max(limit, 0)),
            )
            found = rows.fetchall()
        return [(Row(*row), min(max(score, -1.0), 1.0)) for *row, score in found]

    def keywords(
        self, terms: Sequence[str], filters: Filters, limit: int
    ) -> list[tuple[Row, float]]:
        """The matching rows with any of these index terms, best first, with BM25 (> 0)."""
        with self.transactions.connection() as connection:
            if write := self.transactions.current:
                write.settle()
            scopes, asked = self._scopes(connection, split(filters)[0]), as_asked(terms)
            text, values = self._where(connection, filters)
            rows = connection.execute(
                f"{RANKED} SELECT {ROW}, score FROM ranked JOIN memories AS m USING (seq)"
                f" WHERE {text} ORDER BY score DESC, m.seq LIMIT %s",
                (scopes, asked, asked, scopes, *values, max(limit, 0)),
            )
            return [(Row(*row), score) for *row, score in rows]

    def counted(self, terms: Sequence[str], scope: Filters) -> Counted:
        """How many rows of a scope have each of these terms, of the kind that has most."""
        asked = {kept: term for term in terms for kept in as_asked([term])}
        with self.transactions.connection() as connection:
            if write := self.transactions.current:
                write.settle()
            scopes = self._scopes(connection, split(scope)[0])
            counts = dict(connection.execute(_COUNTED, (scopes, scopes, list(asked))).fetchall())
        return Counted(counts.pop(None), {asked[term]: count for term, count in counts.items()})

    def unembedded(self, filters: Filters, limit: int) -> list[Waiting]:
        """Matching rows without a vector of the embedder in use, newest first."""
        query = (
            f"SELECT m.id, m.payload FROM memories AS m WHERE {{where}} AND {_WAITING}"
            " ORDER BY m.seq DESC LIMIT %s"
        )
        space = self._space
        rows = self._asked(filters, query, space, space, max(limit, 0))
        return [Waiting(row_id, embedded_text(payload)) for row_id, payload in rows]

    def count_unembedded(self, filters: Filters) -> int:
        """The number of matching rows without a vector of the embedder in use."""
        query = f"SELECT count(*) FROM memories AS m WHERE {{where}} AND {_WAITING}"
        [(number,)] = self._asked(filters, query, self._space, self._space)
        return int(number)

    def scrub(self) -> None:
        """Remove deleted and changed content from the tables' files. Slow; others wait.

        The server's log of writes and its backups are the operator's business.
        """
        with self.lock, self.transactions.outside() as connection:
            # ANALYZE: the planner's statistics hold values that were common in a table.
            tables = "memories, memory_terms, memory_aliases, memory_vectors"
            connection.execute(f"VACUUM (FULL, ANALYZE) {tables}")
            # What Mem0 kept of changes in earlier states of this version: it has texts.
            connection.execute("TRUNCATE memory_history")

    def close(self) -> None:
        """Wait for a write in progress. The pool stays open: it belongs to its owner."""
        with self.lock:
            return

    @contextmanager
    def _writing(self) -> Iterator[PostgresRows]:
        with self.lock, self.transactions.open() as write:
            yield PostgresRows(write, self._space)

    def _text(self, vector: Vector) -> str:
        """A vector as a text for PostgreSQL. Raises MemoryStoreError if it does not fit."""
        return str(checked_vector(vector, self._dimension).tolist())

    def _asked(self, filters: Filters, statement: str, *values: object) -> list[Any]:
        with self.transactions.connection() as connection:
            text, given = self._where(connection, filters)
            query = statement.replace("{where}", text)
            return connection.execute(query, (*given, *values)).fetchall()

    def _where(self, connection: Connection, filters: Filters) -> Sql:
        """`filters` as a test of the rows `m`. Raises ValueError."""
        scope, tests = split(filters)
        text, values = where(tests, _DIALECT)
        if not scope:
            return Sql(text, values)
        scopes = self._scopes(connection, scope)
        if len(scopes) == 1:
            return Sql(f"m.scope = %s AND {text}", (scopes[0], *values))
        return Sql(f"m.scope = ANY(%s::int[]) AND {text}", (scopes, *values))

    def _scopes(self, connection: Connection, scope: Mapping[str, str | None]) -> list[int]:
        """The numbers of the scopes with these ids. A transaction locks a fully named one."""
        if len(scope) < len(SCOPE):
            tests = " AND ".join(f"{name} IS NOT DISTINCT FROM %s::text" for name in scope)
            rows = connection.execute(
                f"SELECT number FROM memory_scopes WHERE {tests or 'true'}",
                [storable(value) for value in scope.values()],
            )
            return [number for (number,) in rows]
        ids = (scope["user_id"], scope["agent_id"])
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
