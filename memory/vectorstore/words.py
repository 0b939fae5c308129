"""The word index: which rows have which words, how often. FTS5 keeps it; `bm25` ranks by it.

Each scope has an index of its own, for a word is rare or common within one memory: what other
agents keep must not change the order of what this one finds. The texts themselves are not kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import numpy as np

from memory.vectorstore.bm25 import Numbers

MAX_QUERY_WORDS = 64
"""Words of a query that are looked up: a pasted page is not a query."""

_ENCODED = {code: code + 0xE000 for code in range(128) if not chr(code).isalnum()}
"""What FTS5 would cut a text at, as letters: a term is one word to it, whatever it is made of."""


class WordIndex:
    """The indexes in one file. Its calls belong to the caller's transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def make(self, scope: int) -> None:
        """Make the index of a new scope, and the view that lists what is in it."""
        self._connection.execute(
            f"CREATE VIRTUAL TABLE words_{scope} USING fts5(text, content='', tokenize='ascii')"
        )
        self._connection.execute(
            f"CREATE VIRTUAL TABLE vocabulary_{scope} USING fts5vocab(words_{scope}, instance)"
        )

    def add(self, scope: int, seq: int, text: str) -> None:
        """Take in the words of a row, as `encoded` joins them."""
        self._connection.execute(
            f"INSERT INTO words_{scope} (rowid, text) VALUES (?, ?)", (seq, text)
        )

    def remove(self, scope: int, seq: int, text: str) -> None:
        """Take out the words of a row: exactly what was taken in."""
        self._connection.execute(
            f"INSERT INTO words_{scope} (words_{scope}, rowid, text) VALUES ('delete', ?, ?)",
            (seq, text),
        )

    def postings(self, scope: int, terms: Sequence[str]) -> list[Numbers]:
        """For each term the numbers of the rows that have it, once for each time."""
        wanted = list(dict.fromkeys(encoded([term]) for term in terms if term))
        query = f"SELECT json_group_array(doc) FROM vocabulary_{scope} WHERE term = ?"
        return [
            listed(self._connection.execute(query, (term,)).fetchone()[0])
            for term in wanted[:MAX_QUERY_WORDS]
        ]

    def drop(self, scope: int) -> None:
        """Remove the index of a scope."""
        for table in (f"vocabulary_{scope}", f"words_{scope}"):
            self._connection.execute(f"DROP TABLE IF EXISTS {table}")

    def scrub(self, scope: int) -> None:
        """Write the index anew: words that were taken out stand in it until then."""
        self._connection.execute(f"INSERT INTO words_{scope} (words_{scope}) VALUES ('optimize')")


def encoded(terms: Sequence[str]) -> str:
    """Terms as the index takes them in."""
    return " ".join(term.translate(_ENCODED).lower() for term in terms if term)


def listed(numbers: str) -> Numbers:
    """A JSON list of whole numbers as an array: SQLite makes it faster than it gives rows."""
    inside = numbers[1:-1]
    return np.fromstring(inside, dtype=np.int64, sep=",") if inside else np.empty(0, np.int64)
