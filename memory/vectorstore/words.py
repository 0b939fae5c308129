"""The word index: full text over the facts, with ranking by BM25.

Each scope has an index of its own, for a word is rare or common within one memory: what other
agents keep must not change the order of what this one finds.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

from memory.vectorstore.filters import where_clause

MAX_QUERY_WORDS = 64
"""Words of a query that are looked up: a pasted page is not a query."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS scopes (number INTEGER PRIMARY KEY, user_id TEXT, agent_id TEXT);
"""

_WORD = re.compile(r"[^\W_]+")


class Words(NamedTuple):
    """The text of one fact, and whose it is."""

    seq: int
    text: str | None
    user_id: str | None
    agent_id: str | None


class WordIndex:
    """The indexes in one facts file. Its calls belong to the caller's transaction and lock."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, words: Words) -> None:
        """Take in the text of a fact."""
        table = self._table(words)
        self._connection.execute(
            f"INSERT INTO {table} (rowid, text) VALUES (?, ?)", (words.seq, words.text)
        )

    def remove(self, words: Words) -> None:
        """Take out the text of a fact: exactly what was taken in."""
        table = self._table(words)
        self._connection.execute(
            f"INSERT INTO {table} ({table}, rowid, text) VALUES ('delete', ?, ?)",
            (words.seq, words.text),
        )

    def search(
        self, query: str, filters: Mapping[str, object], limit: int
    ) -> list[tuple[int, float]]:
        """Numbers (seq) of the facts that match and share words with `query`, best first.

        With BM25, which is above 0.
        """
        match = match_expression(query)
        if not match or limit < 1:
            return []
        scope = {key: filters[key] for key in ("user_id", "agent_id") if key in filters}
        where, values = where_clause(scope)
        numbers = self._connection.execute(f"SELECT number FROM scopes WHERE {where}", values)
        found = [
            one
            for (number,) in numbers.fetchall()
            for one in self._ranked(f"words_{number}", match, filters, limit)
        ]
        return sorted(found, key=lambda one: (-one[1], one[0]))[:limit]

    def _ranked(
        self, table: str, match: str, filters: Mapping[str, object], limit: int
    ) -> list[tuple[int, float]]:
        where, values = where_clause(filters)
        # The plus keeps SQLite from asking FTS5 once for every fact of the scope.
        return self._connection.execute(
            f"SELECT rowid, -bm25({table}) AS score FROM {table} WHERE {table} MATCH ?"
            f" AND +rowid IN (SELECT seq FROM facts WHERE {where})"
            " ORDER BY score DESC, rowid LIMIT ?",
            [match, *values, limit],
        ).fetchall()

    def _table(self, words: Words) -> str:
        """The scope's index, made when its first fact comes."""
        scope = (words.user_id, words.agent_id)
        found = self._connection.execute(
            "SELECT number FROM scopes WHERE user_id IS ? AND agent_id IS ?", scope
        ).fetchone()
        if found:
            return f"words_{found[0]}"
        number = self._connection.execute(
            "INSERT INTO scopes (user_id, agent_id) VALUES (?, ?) RETURNING number", scope
        ).fetchone()[0]
        self._connection.execute(
            f"CREATE VIRTUAL TABLE words_{number} USING"
            " fts5(text, content='', tokenize='porter unicode61')"
        )
        return f"words_{number}"


def match_expression(query: str) -> str:
    """The FTS5 expression "any of the words of `query`". Quoted: a word is never syntax."""
    words = dict.fromkeys(_WORD.findall(query.casefold()))
    return " OR ".join(f'"{word}"' for word in list(words)[:MAX_QUERY_WORDS])
