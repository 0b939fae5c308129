"""The facts table: SQLite is the truth of semantic memory; every index over it can be rebuilt.

A row is what Mem0 gives its vector store: an id, a vector and a payload. Scope, operation id and
validity are columns computed from the payload, so that they cannot drift from it. Every change
takes the next revision: whoever keeps an index asks for what came after the last one it saw.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from memory.sqlite.wal import use_wal
from memory.vectorstore import words as word_index
from memory.vectorstore.filters import where_clause
from memory.vectorstore.words import WordIndex, Words

BUSY_TIMEOUT = 30.0
"""Seconds to wait for another process's write."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    rev INTEGER NOT NULL,
    id TEXT NOT NULL UNIQUE,
    vector BLOB NOT NULL,
    payload TEXT NOT NULL,
    text TEXT AS (json_extract(payload, '$.data')),
    user_id TEXT AS (json_extract(payload, '$.user_id')),
    agent_id TEXT AS (json_extract(payload, '$.agent_id')),
    op TEXT AS (json_extract(payload, '$.op')),
    invalid_at TEXT AS (json_extract(payload, '$.invalid_at'))
);
CREATE UNIQUE INDEX IF NOT EXISTS facts_op ON facts (user_id, agent_id, op);
CREATE INDEX IF NOT EXISTS facts_scope ON facts (user_id, agent_id, invalid_at);
CREATE UNIQUE INDEX IF NOT EXISTS facts_rev ON facts (rev);
CREATE TABLE IF NOT EXISTS removed (rev INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS clock (one INTEGER PRIMARY KEY CHECK (one = 1), rev INTEGER NOT NULL);
INSERT OR IGNORE INTO clock VALUES (1, 0);
"""

_WORDS = "seq, text, user_id, agent_id"


class Row(NamedTuple):
    """One fact as it stands: its place in the table, Mem0's id and Mem0's payload."""

    seq: int
    id: str
    payload: dict[str, Any]


class Change(NamedTuple):
    """A fact written or removed (vector None) at a revision."""

    rev: int
    seq: int
    vector: bytes | None


class FactsDb:
    """One facts file. Thread-safe; several processes may open it. Raises sqlite3.Error."""

    def __init__(self, path: Path) -> None:
        self.lock = threading.RLock()
        """Held through every call; hold it to make several calls one."""
        self._connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
        )
        self._words = WordIndex(self._connection)
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        """WAL lets others read while one writes; FULL makes a commit survive a power cut."""
        use_wal(self._connection)
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} {word_index.SCHEMA} COMMIT;")

    def close(self) -> None:
        """Close the file. Nothing is lost: every write was committed."""
        with self.lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All writes inside are one; an error rolls them back. Joins one that is open."""
        with self.lock:
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    @property
    def writing(self) -> bool:
        """Whether a transaction of this connection is open: reads would see what may yet go."""
        return self._connection.in_transaction

    def insert(self, fact_id: str, vector: bytes, payload: Mapping[str, Any]) -> None:
        """Add a fact. One whose operation id stands in its scope already is left as it is."""
        with self.transaction():
            added = self._connection.execute(
                "INSERT INTO facts (rev, id, vector, payload) VALUES (?, ?, ?, ?)"
                f" ON CONFLICT (user_id, agent_id, op) DO NOTHING RETURNING {_WORDS}",
                (self._next_revision(), fact_id, vector, json.dumps(payload)),
            ).fetchall()
            for one in added:
                self._words.add(Words(*one))

    def update(self, fact_id: str, vector: bytes | None, payload: Mapping[str, Any] | None) -> None:
        """Replace a fact's vector, payload or both; None keeps the one that stands."""
        kept = json.dumps(payload) if payload is not None else None
        with self.transaction():
            for one in self._words_of(fact_id):
                self._words.remove(one)
            self._connection.execute(
                "UPDATE facts SET rev = ?, vector = coalesce(?, vector),"
                " payload = coalesce(?, payload) WHERE id = ?",
                (self._next_revision(), vector, kept, fact_id),
            )
            for one in self._words_of(fact_id):
                self._words.add(one)

    def delete(self, filters: Mapping[str, object]) -> None:
        """Remove the facts that match, leaving of each no more than its number."""
        where, values = where_clause(filters)
        with self.transaction():
            gone = self._connection.execute(
                f"DELETE FROM facts WHERE {where} RETURNING {_WORDS}", values
            ).fetchall()
            for one in gone:
                self._words.remove(Words(*one))
                self._connection.execute(
                    "INSERT INTO removed VALUES (?, ?)", (self._next_revision(), one[0])
                )

    def _words_of(self, fact_id: str) -> list[Words]:
        rows = self._connection.execute(f"SELECT {_WORDS} FROM facts WHERE id = ?", (fact_id,))
        return [Words(*one) for one in rows.fetchall()]

    def _next_revision(self) -> int:
        row = self._connection.execute("UPDATE clock SET rev = rev + 1 RETURNING rev").fetchone()
        return int(row[0])

    def select(self, filters: Mapping[str, object], limit: int | None = None) -> list[Row]:
        """The facts that match, oldest first; all of them without a limit."""
        where, values = where_clause(filters)
        query = f"SELECT seq, id, payload FROM facts WHERE {where} ORDER BY seq LIMIT ?"
        with self.lock:
            rows = self._connection.execute(query, [*values, -1 if limit is None else limit])
            return [_row(one) for one in rows]

    def count(self, filters: Mapping[str, object]) -> int:
        """How many facts match."""
        where, values = where_clause(filters)
        query = f"SELECT count(*) FROM facts WHERE {where}"
        with self.lock:
            return int(self._connection.execute(query, values).fetchone()[0])

    def matching(self, filters: Mapping[str, object]) -> list[int]:
        """The numbers (seq) of the facts that match."""
        where, values = where_clause(filters)
        query = f"SELECT seq FROM facts WHERE {where}"
        with self.lock:
            return [seq for (seq,) in self._connection.execute(query, values)]

    def numbered(self, numbers: Iterable[int]) -> dict[int, Row]:
        """Facts by their numbers."""
        with self.lock:
            rows = self._connection.execute(
                "SELECT seq, id, payload FROM facts WHERE seq IN (SELECT value FROM json_each(?))",
                (json.dumps(list(numbers)),),
            )
            return {one[0]: _row(one) for one in rows}

    def vector(self, fact_id: str) -> bytes | None:
        """The vector of a fact, or None where there is no such fact."""
        with self.lock:
            row = self._connection.execute(
                "SELECT vector FROM facts WHERE id = ?", (fact_id,)
            ).fetchone()
        return bytes(row[0]) if row else None

    def changes(self, since: int, limit: int) -> list[Change]:
        """What was written or removed after revision `since`, in order, at most `limit`."""
        with self.lock:
            rows = self._connection.execute(
                "SELECT rev, seq, vector FROM facts WHERE rev > ?1"
                " UNION ALL SELECT rev, seq, NULL FROM removed WHERE rev > ?1"
                " ORDER BY rev LIMIT ?2",
                (since, limit),
            )
            return [Change(*one) for one in rows]

    def keywords(
        self, query: str, filters: Mapping[str, object], limit: int
    ) -> list[tuple[Row, float]]:
        """The facts that match and share words with `query`, best first, with BM25 (> 0)."""
        with self.lock:
            found = self._words.search(query, filters, limit)
            rows = self.numbered(seq for seq, _ in found)
        return [(rows[seq], score) for seq, score in found]


def _row(columns: Sequence[Any]) -> Row:
    return Row(columns[0], columns[1], json.loads(columns[2]))
