"""The table of memories in PostgreSQL, with words in an inverted index and vectors in pgvector.

Mem0's history of changes is a table beside it, written in the same transactions.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import uuid4

import numpy as np
from psycopg import sql
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from memory.errors import MemoryStoreError
from memory.facts.postgres.rows import RANKED, PostgresRows, as_asked, as_kept, content_of
from memory.facts.postgres.schema import bring_up_to_date
from memory.facts.postgres.transactions import Ids, Transactions, scope_key
from memory.facts.table import (
    SCOPE,
    Counted,
    Dialect,
    Filters,
    Listing,
    Row,
    SessionPlace,
    Sql,
    Vector,
    Waiting,
    beside_columns,
    checked_vector,
    embedded_text,
    order_by,
    split,
    where,
)
from memory.storage.postgres import Connection, lock_key, storable
from memory.text import TextPrefilter

WORTH_INDEXING = 20_000
"""Rows of a scope up to which a search compares every vector."""

LOOK_EVERY = 500
"""One written row in so many leads to the check whether its scope needs an index."""

SEARCH_BREADTH = 200
"""`hnsw.ef_search`: how many candidates the index keeps while it searches."""

BUILD_MEMORY = "256MB"
"""An index that does not fit takes three times as long to build."""

_LOG = logging.getLogger(__name__)

_ROW = "m.seq, m.id, m.payload, m.access_count, m.last_access"

_EXACT = f"""
SELECT {_ROW}, -(v.embedding <#> %s::vector) AS score
FROM memories AS m JOIN memory_vectors AS v USING (seq)
WHERE v.space = %s AND v.scope = ANY(%s::int[]) AND {{where}} ORDER BY score DESC, v.seq LIMIT %s
"""

_INDEXED = f"""
SELECT {_ROW}, -(v.embedding::vector({{dimension}}) <#> %s::vector({{dimension}})) AS score
FROM memory_vectors AS v JOIN memories AS m USING (seq)
WHERE v.scope = {{scope}} AND v.space = {{space}} AND {{where}}
ORDER BY v.embedding::vector({{dimension}}) <#> %s::vector({{dimension}}) LIMIT %s
"""

_COUNTED = """
SELECT NULL AS term, coalesce(max(those), 0)::bigint
FROM (SELECT sum(rows) AS those FROM memory_kinds WHERE scope = ANY(%s) GROUP BY kind) AS by_kind
UNION ALL SELECT term, max(those) FROM (
    SELECT term, count(*) AS those FROM memory_terms
    WHERE scope = ANY(%s) AND term = ANY(%s) GROUP BY kind, term
) AS by_kind GROUP BY term
"""
"""Over kinds the most rows, and the most rows with each term."""

Found = list[tuple[Any, ...]]
"""The columns of rows, and the score."""


class Nearest:
    """The vectors of one embedder, of length 1, so that the inner product is the cosine.

    Not by cosine distance: an index by that leaves out zero vectors.
    """

    def __init__(self, transactions: Transactions, space: str, dimension: int) -> None:
        self._transactions = transactions
        self.space, self._dimension = space, dimension

    def text(self, vector: Vector) -> str:
        """A vector as a text for PostgreSQL. Raises MemoryStoreError if it does not fit."""
        return str(checked_vector(vector, self._dimension).tolist())

    def search(
        self, connection: Connection, vector: Vector, where: Sql, scopes: list[int], limit: int
    ) -> Found:
        """The `limit` nearest of the rows `m` that pass `where`, with cosine, nearest first.

        `scopes`: the numbers of all scopes with such rows.
        """
        query = self.text(vector)
        if len(scopes) == 1 and self._is_large(connection, scopes[0], where):
            found = self._by_index(connection, query, where, scopes[0], limit)
            if len(found) == limit:
                return found
        rows = connection.execute(
            _EXACT.format(where=where.text), (query, self.space, scopes, *where.values, limit)
        )
        return rows.fetchall()

    def _is_large(self, connection: Connection, scope: int, where: Sql) -> bool:
        """Whether the scope has an index, and too many matching rows to do without it."""
        indexed = connection.execute(
            "SELECT FROM memory_scopes WHERE number = %s AND indexed = %s", (scope, self.space)
        )
        if indexed.fetchone() is None:
            return False
        more = connection.execute(
            f"SELECT FROM memories AS m WHERE {where.text} OFFSET %s LIMIT 1",
            (*where.values, WORTH_INDEXING),
        )
        return more.fetchone() is not None

    def _by_index(
        self, connection: Connection, query: str, where: Sql, scope: int, limit: int
    ) -> Found:
        # Literals and not parameters: the planner must see that the partial index applies.
        space = sql.Literal(self.space).as_string(connection).replace("%", "%%")
        statement = sql.SQL(_INDEXED).format(
            dimension=sql.Literal(self._dimension),
            scope=sql.Literal(scope),
            space=sql.SQL(space),
            where=sql.SQL(where.text),
        )
        # Nothing is written; the rollback restores the settings.
        with connection.transaction(force_rollback=True):
            connection.execute(
                "SELECT set_config('hnsw.iterative_scan', 'strict_order', true),"
                " set_config('hnsw.ef_search', %s, true), set_config('enable_sort', 'off', true)",
                (str(SEARCH_BREADTH),),
            )
            rows = connection.execute(statement, (query, *where.values, query, limit)).fetchall()
        return sorted(rows, key=lambda row: (-row[-1], row[0]))

    def build_indexes(self, embedded: Iterable[tuple[int, int]]) -> None:
        """Build the indexes that are worth it after these rows (`seq`, scope) were written.

        A failure is logged; later writes try again.
        """
        for scope in sorted({scope for seq, scope in embedded if seq % LOOK_EVERY == 0}):
            try:
                with self._transactions.outside() as connection:
                    self._build(connection, scope)
            except MemoryStoreError as error:
                _LOG.warning("an index of vectors was not made, searches are slower: %s", error)

    def _build(self, connection: Connection, scope: int) -> None:
        vectors = connection.execute(
            "SELECT FROM memory_scopes JOIN memory_vectors ON scope = number"
            " WHERE number = %s AND space = %s AND indexed IS DISTINCT FROM space"
            " OFFSET %s LIMIT 1",
            (scope, self.space, WORTH_INDEXING),
        )
        if vectors.fetchone() is None:
            return
        key = lock_key("index", str(scope))
        if connection.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone() == (True,):
            try:
                for statement in self._making(scope):
                    connection.execute(statement)
            finally:
                connection.execute("RESET maintenance_work_mem")
                connection.execute("SELECT pg_advisory_unlock(%s)", (key,))

    def _making(self, scope: int) -> Iterable[sql.Composed]:
        """CONCURRENTLY: others can write meanwhile. A half-built index is removed first."""
        statements = (
            "SET maintenance_work_mem = {memory}",
            "DROP INDEX CONCURRENTLY IF EXISTS {index}",
            "CREATE INDEX CONCURRENTLY {index} ON memory_vectors USING hnsw"
            " ((embedding::vector({dimension})) vector_ip_ops)"
            " WHERE scope = {scope} AND space = {space}",
            "UPDATE memory_scopes SET indexed = {space} WHERE number = {scope}",
        )
        for statement in statements:
            yield sql.SQL(statement).format(
                memory=sql.Literal(BUILD_MEMORY),
                index=sql.Identifier(f"memory_vectors_{scope}"),
                dimension=sql.Literal(self._dimension),
                scope=sql.Literal(scope),
                space=sql.Literal(self.space),
            )


_WAITING = "(m.space IS NULL OR m.space < %s OR m.space > %s)"
"""Three tests that an index can answer, in place of `<>`, which it cannot."""

_DIALECT = Dialect(
    column="m.{name}",
    value="%s::{type}",
    among="= ANY(%s::{type}[])",
    as_value=storable,
    as_list=lambda values: storable(list(values)),
)


class PostgresTable:
    """The protocol `MemoryTable` on one database, for one embedder. See there.

    The pool's owner closes it. Threads read in parallel; within one process they write one after
    the other. A transaction locks each scope that it touches until its end, across processes.
    """

    def __init__(self, pool: ConnectionPool[Connection], *, model: str, dimension: int) -> None:
        self.lock = threading.RLock()
        """Held during every write; hold it to make several calls atomic within this process."""
        self.transactions = Transactions(pool)
        self._nearest = Nearest(self.transactions, f"{model} {dimension}", dimension)
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
        content, given = content_of(payload), self._text(vector)
        with self._writing() as rows:
            rows.add(row_id, given, content)

    def alias(self, row_id: str, op: str) -> None:
        """Record that the operation `op` led to this row, too."""
        with self._writing() as rows:
            rows.alias(row_id, op)

    def update(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any] | None) -> None:
        """Replace one row's vector, payload or both; None keeps the present one."""
        content, given = None if payload is None else content_of(payload), self._text(vector)
        with self._writing() as rows:
            rows.change(row_id, given, content)

    def set_vectors(self, vectors: Mapping[str, Vector]) -> None:
        """Set vectors of the embedder in use, by row id; missing rows are skipped."""
        given = {row_id: self._nearest.text(vector) for row_id, vector in vectors.items()}
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

    def select(
        self, filters: Filters, limit: int | None = None, wanted: TextPrefilter | None = None
    ) -> list[Row]:
        """The matching rows, oldest first, `wanted` or not."""
        with self.transactions.connection() as connection:
            text, values = self._where(connection, filters)
            rows = connection.execute(
                f"SELECT {_ROW} FROM memories AS m WHERE {text} ORDER BY m.seq LIMIT %s",
                (*values, limit),
            )
            return [Row(*row) for row in rows]

    def listed(self, wanted: Listing) -> tuple[list[Row], int]:
        """A page of a list of rows, and the number of rows on all pages."""
        with self.transactions.connection() as connection:
            text, values = self._where(connection, wanted.filters)
            if wanted.terms:
                text, values = f"{text} AND m.terms @> %s::text[]", (*values, as_kept(wanted.terms))
            if wanted.names:
                names = [storable(name) for name in wanted.names]
                named = "jsonb_exists_any(m.payload -> 'entities', %s::text[])"
                text = f"{text} AND (m.speaker = ANY(%s::text[]) OR {named})"
                values = (*values, names, names)
            query = f"FROM memories AS m WHERE {text}"
            [(total,)] = connection.execute(f"SELECT count(*) {query}", values)
            rows = connection.execute(
                f"SELECT {_ROW} {query} ORDER BY {order_by(wanted)} LIMIT %s OFFSET %s",
                (*values, wanted.limit, wanted.offset),
            )
            return [Row(*row) for row in rows], total

    def made(self, filters: Filters, ops: Sequence[str]) -> dict[str, Row]:
        """The matching rows that these operations made, by operation; aliases count."""
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
        """The number of matching rows."""
        return self._count(filters, Sql("true"))

    def numbered(self, numbers: Iterable[int]) -> dict[int, Row]:
        """Rows by `seq`; missing ones are left out."""
        with self.transactions.connection() as connection:
            rows = connection.execute(
                f"SELECT {_ROW} FROM memories AS m WHERE m.seq = ANY(%s::bigint[])",
                (list(numbers),),
            )
            return {row[0]: Row(*row) for row in rows}

    def vector(self, row_id: str) -> Vector | None:
        """A row's vector; None without a row, or without a vector of the embedder in use."""
        with self.transactions.connection() as connection:
            row = connection.execute(
                "SELECT v.embedding::real[] FROM memory_vectors AS v JOIN memories AS m USING (seq)"
                " WHERE m.id = %s AND v.space = %s",
                (row_id, self._nearest.space),
            ).fetchone()
        return None if row is None else np.array(row[0], dtype=np.float32)

    def nearest(self, vector: Vector, filters: Filters, limit: int) -> list[tuple[Row, float]]:
        """The nearest matching rows, nearest first, with cosine (-1..1)."""
        with self.transactions.connection() as connection:
            scopes = self._scopes(connection, split(filters)[0])
            test = self._where(connection, filters)
            found = self._nearest.search(connection, vector, test, scopes, max(limit, 0))
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
                f"{RANKED} SELECT {_ROW}, score FROM ranked JOIN memories AS m USING (seq)"
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

    def timeline(self, filters: Filters, sessions: Sequence[str]) -> list[SessionPlace]:
        """The episodes of these sessions, session by session, in the order of their time."""
        with self.transactions.connection() as connection:
            text, values = self._where(connection, filters)
            rows = connection.execute(
                "SELECT m.session, m.seq FROM memories AS m WHERE m.kind = 'episode'"
                f" AND m.session = ANY(%s) AND {text}"
                " ORDER BY m.session, m.valid_from NULLS FIRST, m.seq",
                (storable(list(sessions)), *values),
            )
            return [SessionPlace(*row) for row in rows]

    def beside(self, filters: Filters, numbers: Collection[int], aside: int) -> set[int]:
        """The `seq` of the `aside` episodes before and after each of these in its session."""
        with self.transactions.connection() as connection:
            text, values = self._where(connection, filters)
            rows = connection.execute(
                f"SELECT {beside_columns(aside)} FROM memories AS m"
                f" WHERE m.seq = ANY(%s) AND {text}",
                (list(numbers), *values),
            )
            return {seq for row in rows for seq in row if seq is not None}

    def unembedded(self, filters: Filters, limit: int) -> list[Waiting]:
        """Matching rows without a vector of the embedder in use, newest first."""
        with self.transactions.connection() as connection:
            text, values = self._where(connection, filters)
            rows = connection.execute(
                f"SELECT m.id, m.payload FROM memories AS m WHERE {text} AND {_WAITING}"
                " ORDER BY m.seq DESC LIMIT %s",
                (*values, self._nearest.space, self._nearest.space, max(limit, 0)),
            )
            return [Waiting(row_id, embedded_text(payload)) for row_id, payload in rows]

    def count_unembedded(self, filters: Filters) -> int:
        """The number of matching rows without a vector of the embedder in use."""
        space = self._nearest.space
        return self._count(filters, Sql(_WAITING, (space, space)))

    def scrub(self) -> None:
        """Remove deleted and changed content from the tables' files. Slow; others wait.

        The server's log of writes and its backups are the operator's business.
        """
        with self.lock, self.transactions.outside() as connection:
            # ANALYZE: the planner's statistics hold values that were common in a table.
            tables = "memories, memory_terms, memory_aliases, memory_vectors"
            connection.execute(f"VACUUM (FULL, ANALYZE) {tables}")

    def close(self) -> None:
        """Wait for a write in progress. The pool stays open: it belongs to its owner."""
        with self.lock:
            return

    @contextmanager
    def _writing(self) -> Iterator[PostgresRows]:
        with self.lock:
            joined = self.transactions.current is not None
            with self.transactions.open() as write:
                yield PostgresRows(write, self._nearest.space)
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


_CHANGE = (
    "memory_id",
    "old_memory",
    "new_memory",
    "event",
    "created_at",
    "updated_at",
    "is_deleted",
    "actor_id",
    "role",
)


class PostgresHistory:
    """The protocol `History` in the database of `table`, within its transactions.

    Several threads and processes may use it. Raises MemoryStoreError.
    """

    def __init__(self, table: PostgresTable) -> None:
        self._table = table

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Do nothing: changes belong to the table's transaction."""
        yield

    def add_history(
        self,
        memory_id: str,
        old_memory: str | None,
        new_memory: str | None,
        event: str,
        **details: Any,
    ) -> None:
        """Add one change. A deletion removes all changes of the memory: they hold its text."""
        if event == "DELETE":
            self._execute("DELETE FROM memory_history WHERE memory_id = %s", [(memory_id,)])
            return
        ids = {"memory_id": memory_id, "old_memory": old_memory, "new_memory": new_memory}
        row = {**ids, "event": event, "is_deleted": 0, **details}
        self._execute(
            f"INSERT INTO memory_history (id, {', '.join(_CHANGE)})"
            f" VALUES (%s{', %s' * len(_CHANGE)})",
            [(str(uuid4()), *(storable(row.get(name)) for name in _CHANGE))],
        )

    def get_history(self, memory_id: str) -> list[dict[str, Any]]:
        """The changes of one memory, oldest first, with `id` and those names."""
        rows = self._rows(
            f"SELECT id, {', '.join(_CHANGE)} FROM memory_history WHERE memory_id = %s"
            " ORDER BY created_at NULLS FIRST, updated_at NULLS FIRST, number",
            memory_id,
        )
        return [{**row, "is_deleted": bool(row["is_deleted"])} for row in rows]

    def scrub(self) -> None:
        """Remove deleted content from the table's files."""
        with self._table.lock, self._table.transactions.outside() as connection:
            connection.execute("VACUUM (FULL, ANALYZE) memory_history")

    def close(self) -> None:
        """Nothing to close: the connections are the table's."""

    def _execute(self, statement: str, values: Sequence[Sequence[object]]) -> None:
        with self._table.transactions.connection() as connection:
            connection.cursor().executemany(statement, values)

    def _rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        with self._table.transactions.connection() as connection:
            return connection.cursor(row_factory=dict_row).execute(query, values).fetchall()
