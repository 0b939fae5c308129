"""Writing rows to PostgreSQL: transactions, one at a time per thread, and their statements.

A row, its vector and its words in the index change together, in the caller's transaction.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from psycopg_pool import ConnectionPool

from memory.facts.table import (
    LENGTH_PART,
    MAX_QUERY_WORDS,
    SATURATION,
    stored_payload,
)
from memory.storage.postgres import Connection, clear_errors, storable
from memory.text import terms as terms_of

Ids = tuple[str | None, str | None]
"""`user_id` and `agent_id`."""

_COUNT = """
INSERT INTO memory_kinds AS k (scope, kind, rows, length) VALUES (%s, %s, %s, %s)
ON CONFLICT (scope, kind)
DO UPDATE SET rows = k.rows + EXCLUDED.rows, length = k.length + EXCLUDED.length
"""


def scope_key(ids: Ids) -> str:
    """The unique key of a scope."""
    return json.dumps(storable(ids))


class Write:
    """A transaction, and the scopes that it locks until its end, so that none deadlocks.

    A scope is locked before anything in it is read or changed: what was read still holds.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._held: dict[Ids, int] = {}
        self._counted: dict[tuple[int, str], tuple[int, int]] = {}

    def hold(self, ids: Ids) -> int:
        """Lock a scope, which is created on first use; return its number."""
        if ids not in self._held:
            row = self.connection.execute(
                "INSERT INTO memory_scopes (key, user_id, agent_id) VALUES (%s, %s, %s)"
                " ON CONFLICT (key) DO UPDATE SET key = EXCLUDED.key RETURNING number",
                (scope_key(ids), *storable(ids)),
            ).fetchone()
            assert row is not None
            self._held[ids] = row[0]
        return self._held[ids]

    def hold_those_of(self, where: str, values: Sequence[object]) -> None:
        """Lock the scopes of the rows `m` that match, always in the same order."""
        self.connection.execute(
            "SELECT FROM memory_scopes WHERE number IN"
            f" (SELECT m.scope FROM memories AS m WHERE {where}) ORDER BY number FOR UPDATE",
            values,
        )

    def count(self, scope: int, kind: str, rows: int, length: int) -> None:
        """Add to the counts of a scope's kind: rows with terms, and terms in them."""
        before = self._counted.get((scope, kind), (0, 0))
        self._counted[scope, kind] = (before[0] + rows, before[1] + length)

    def count_row(self, scope: int, kind: str, terms: Sequence[str] | None, change: int) -> None:
        """Count a row with these terms in (1) or out (-1)."""
        if terms:
            self.count(scope, kind, change, change * len(terms))

    def settle(self) -> None:
        """Write the counts, once for all rows of the transaction."""
        for kind in sorted(self._counted):
            self.connection.execute(_COUNT, (*kind, *self._counted[kind]))
        self._counted = {}


class Transactions(threading.local):
    """The transactions of a pool's threads, one at a time per thread. Raises MemoryStoreError."""

    def __init__(self, pool: ConnectionPool[Connection]) -> None:
        self.pool = pool
        self.current: Write | None = None  # this thread's open transaction
        self._connection: Connection | None = None

    @contextmanager
    def open(self) -> Iterator[Write]:
        """Make the writes inside atomic. Joins an open transaction."""
        with clear_errors(self.pool.name):
            if self.current is not None:
                yield self.current
                return
            with self.connection() as connection, connection.transaction():
                self.current = Write(connection)
                try:
                    yield self.current
                    self.current.settle()
                finally:
                    self.current = None

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """This thread's connection, or one for all that is done inside: each is tried first."""
        if self._connection is not None:
            yield self._connection
            return
        with clear_errors(self.pool.name), self.pool.connection() as self._connection:
            try:
                yield self._connection
            finally:
                self._connection = None


LONGEST = 500
"""Characters of a term that count: an index entry may have 2,704 bytes."""

ADD_WORDS = """
INSERT INTO memory_terms (scope, term, seq, kind, count, length)
SELECT m.scope, word.term, m.seq, m.kind, count(*), cardinality(m.terms)
FROM memories AS m CROSS JOIN LATERAL unnest(m.terms) AS word (term)
WHERE m.seq = ANY(%s) GROUP BY m.seq, word.term
"""

REMOVE_WORDS = """
DELETE FROM memory_terms AS t USING memories AS m
WHERE m.seq = ANY(%s) AND t.scope = m.scope AND t.seq = m.seq AND t.term = ANY(m.terms)
"""

COUNT_WORDS = """
INSERT INTO memory_kinds (scope, kind, rows, length)
SELECT scope, kind, count(*), sum(cardinality(terms))
FROM memories WHERE cardinality(terms) > 0 GROUP BY scope, kind
"""
"""Fills the empty table of counts per kind."""

_RARITY = "ln(1 + (rows - those + 0.5::float8) / (those + 0.5::float8))"

RANKED = f"""
WITH hits AS MATERIALIZED (
    SELECT t.scope, t.kind, t.term, t.seq, t.count, t.length FROM memory_terms AS t
    WHERE t.scope = ANY(%s) AND t.term = ANY(%s)
), found AS (
    SELECT scope, kind, term, count(*) AS those FROM hits GROUP BY scope, kind, term
), words AS (
    SELECT k.scope, k.kind, w.term, k.rows, k.length::float8 / k.rows AS mean,
        coalesce(f.those, 0) AS those
    FROM memory_kinds AS k CROSS JOIN unnest(%b::text[]) AS w (term)
    LEFT JOIN found AS f USING (scope, kind, term)
    WHERE k.scope = ANY(%s) AND k.rows > 0
), rare AS (
    SELECT scope, kind, term, mean, {_RARITY} AS rarity,
        sum({_RARITY}) OVER (PARTITION BY scope, kind) AS weight
    FROM words
), whole AS (
    SELECT scope, sum({_RARITY}) AS weight FROM (
        SELECT scope, term, sum(rows)::float8 AS rows, sum(those)::float8 AS those
        FROM words GROUP BY scope, term
    ) AS of_all GROUP BY scope
), worth AS MATERIALIZED (
    SELECT scope, kind, term, {SATURATION * LENGTH_PART}::float8 / mean AS by_length,
        rarity * w.weight / r.weight * {SATURATION + 1}::float8 AS most
    FROM rare AS r JOIN whole AS w USING (scope)
), ranked AS (
    SELECT seq, sum(
        most * count / (count + {SATURATION * (1 - LENGTH_PART)}::float8 + by_length * length)
    ) AS score
    FROM hits JOIN worth USING (scope, kind, term) GROUP BY seq ORDER BY score DESC, seq
)
"""
"""The rows of scopes with any terms, best first. Parameters: scopes, terms, terms, scopes."""


def as_kept(terms: Sequence[str]) -> list[str]:
    """Terms as the index stores them."""
    return [storable(term.lower()[:LONGEST]) for term in terms if term]


def as_asked(terms: Sequence[str]) -> list[str]:
    """The distinct terms of a query, at most MAX_QUERY_WORDS."""
    return list(dict.fromkeys(as_kept(terms)))[:MAX_QUERY_WORDS]


INSERT = """
WITH added AS (
    INSERT INTO memories (scope, id, space, payload, terms)
    SELECT %(scope)s, %(id)s, %(space)s::text, %(payload)s::jsonb, %(terms)b::text[]
    WHERE NOT EXISTS (
        SELECT FROM memory_aliases AS a JOIN memories AS m USING (seq)
        WHERE a.op = %(op)s::text AND m.scope = %(scope)s AND m.kind = %(kind)s::text
    )
    ON CONFLICT (scope, kind, op) DO NOTHING RETURNING seq
), words AS (
    INSERT INTO memory_terms (scope, term, seq, kind, count, length)
    SELECT %(scope)s, term, seq, %(kind)s, count(*), cardinality(%(terms)b::text[])
    FROM added CROSS JOIN unnest(%(terms)b::text[]) AS word (term) GROUP BY seq, term
), vector AS (
    INSERT INTO memory_vectors (seq, scope, space, embedding)
    SELECT seq, %(scope)s, %(space)s, %(vector)s::vector FROM added
    WHERE %(vector)s::text IS NOT NULL
)
SELECT seq FROM added
"""
"""One statement: a round trip costs more than the work."""

EMBED = """
WITH embedded AS (
    UPDATE memories AS m SET space = %s
    FROM unnest(%b::text[], %b::text[]) AS given (id, embedding) WHERE m.id = given.id
    RETURNING m.seq, m.scope, m.space, given.embedding
)
INSERT INTO memory_vectors (seq, scope, space, embedding)
SELECT seq, scope, space, embedding::vector FROM embedded
ON CONFLICT (seq) DO UPDATE SET space = EXCLUDED.space, embedding = EXCLUDED.embedding
"""

UNEMBED = """
WITH gone AS (DELETE FROM memory_vectors WHERE seq = %(seq)s)
UPDATE memories SET space = NULL WHERE seq = %(seq)s
"""

DELETE = """
WITH gone AS (
    DELETE FROM memories AS m WHERE {where} RETURNING m.seq, m.scope, m.kind, m.terms
), words AS (
    DELETE FROM memory_terms AS t USING gone
    WHERE t.scope = gone.scope AND t.seq = gone.seq AND t.term = ANY(gone.terms)
)
SELECT scope, kind, count(*), count(*) FILTER (WHERE cardinality(terms) > 0),
    coalesce(sum(cardinality(terms)), 0)
FROM gone GROUP BY scope, kind
"""


class RowContent(NamedTuple):
    """A payload, split into the columns of its row."""

    ids: Ids
    kept: dict[str, Any]
    """The payload to store."""
    terms: list[str] | None
    """The index terms; None for a row that no word may find."""

    @property
    def kind(self) -> str:
        """The kind of the row, as its column computes it."""
        kind: str | None = self.kept.get("kind")
        return "fact" if kind is None else kind

    @property
    def payload(self) -> str:
        """The payload as JSON. Raises ValueError for values outside of JSON."""
        return json.dumps(self.kept, ensure_ascii=False, allow_nan=False)


def content_of(payload: Mapping[str, Any]) -> RowContent:
    """Split a payload. Raises ValueError for a value that its column cannot hold."""
    kept: dict[str, Any] = storable(stored_payload(payload))
    given = payload["terms"] if "terms" in payload else terms_of(str(kept["data"]))
    terms = None if "terms" in payload and not given else as_kept(given)
    return RowContent((kept.get("user_id"), kept.get("agent_id")), kept, terms)
