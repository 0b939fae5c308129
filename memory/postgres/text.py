"""The words of memories in PostgreSQL: an inverted index in a table, ranked by BM25. Pure.

As in SQLite, a query looks up exact index terms, and a word is rare or common within one kind of
one scope (`memory.vectorstore.table`). Not `tsvector`: it would have to be unpacked to count how
often a row has a word, which is many times slower (measured).
"""

from __future__ import annotations

from collections.abc import Sequence

from memory.postgres.storable import storable
from memory.vectorstore.table import LENGTH_PART, MAX_QUERY_WORDS, SATURATION

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
    FROM memory_kinds AS k CROSS JOIN unnest(%s::text[]) AS w (term)
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
"""The rows of these scopes with any of these terms, best first.

Parameters: scopes, terms, terms, scopes.
"""


def as_kept(terms: Sequence[str]) -> list[str]:
    """Terms as the index stores them."""
    return [storable(term.lower()[:LONGEST]) for term in terms if term]


def as_asked(terms: Sequence[str]) -> list[str]:
    """The distinct terms of a query, at most MAX_QUERY_WORDS."""
    return list(dict.fromkeys(as_kept(terms)))[:MAX_QUERY_WORDS]
