"""The vectors of memories in PostgreSQL: the nearest, exactly or by an HNSW index.

Comparing every vector is exact and takes 1.2 ms of processor time per thousand rows (measured with
384 numbers). An HNSW index takes 5 to 12 ms for any number of rows, finds at least 98 of 100, and
costs 2 ms per write. So a large scope gets an index of its own, and small ones do without.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from psycopg import sql

from memory.errors import MemoryStoreError
from memory.postgres.pool import Connection
from memory.postgres.schema import lock_key
from memory.postgres.write import Transactions
from memory.vectorstore.table import Sql, Vector, checked_vector

WORTH_INDEXING = 20_000
"""Rows of a scope up to which a search compares every vector."""

LOOK_EVERY = 500
"""One written row in so many leads to the check whether its scope needs an index."""

SEARCH_BREADTH = 200
"""`hnsw.ef_search`: how many candidates the index keeps while it searches."""

BUILD_MEMORY = "256MB"
"""An index that does not fit takes three times as long to build."""

_LOG = logging.getLogger(__name__)

_EXACT = """
SELECT v.seq, -(v.embedding <#> %s::vector) AS score
FROM memories AS m JOIN memory_vectors AS v USING (seq)
WHERE v.space = %s AND v.scope = ANY(%s::int[]) AND {where} ORDER BY score DESC, v.seq LIMIT %s
"""

_INDEXED = """
SELECT v.seq, -(v.embedding::vector({dimension}) <#> %s::vector({dimension})) AS score
FROM memory_vectors AS v JOIN memories AS m USING (seq)
WHERE v.scope = {scope} AND v.space = {space} AND {where}
ORDER BY v.embedding::vector({dimension}) <#> %s::vector({dimension}) LIMIT %s
"""

Found = list[tuple[int, float]]


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
        """The `limit` nearest of the rows `m` that pass `where`: `seq` and cosine, nearest first.

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
        return sorted(rows, key=lambda row: (-row[1], row[0]))

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
