"""The tables of memory's SQLite file, and the upgrades to the form that this version uses.

SQLite is the truth; every index over it can be rebuilt. Fields that are often filtered are columns
computed from the payload, so that they cannot drift from it. Every change of a row takes the next
revision, so that an index in memory can ask for the changes since the last revision it saw.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from memory.errors import MemoryStoreError
from memory.facts.sqlite.indexes import WordIndex, encoded
from memory.facts.table import Sql, embedded_text, stored_payload
from memory.text import ANALYSIS_VERSION, terms


class SqliteRows:
    """The rows of one file. Vectors are the bytes of their numbers. Raises ValueError."""

    def __init__(self, connection: sqlite3.Connection, words: WordIndex, space: str) -> None:
        self._connection, self._words, self._space = connection, words, space

    def add(self, row_id: str, vector: bytes | None, payload: Mapping[str, Any]) -> None:
        """Add a row, unless its scope has a row of its kind and `op`."""
        kept, text = _taken_apart(payload)
        scope = self._scope(kept)
        if self._is_alias(scope, kept):
            return
        space = self._space if vector is not None else None
        added = self._connection.execute(
            "INSERT INTO memories (rev, scope, id, length, space, payload, terms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (scope, kind, op) DO NOTHING RETURNING seq",
            (self._revision(), scope, row_id, word_count(text), space, _json(kept), text),
        ).fetchall()
        for (seq,) in added:
            self._add_words(scope, seq, text)
            if vector is not None:
                self._connection.execute("INSERT INTO vectors VALUES (?, ?)", (seq, vector))

    def change(self, row_id: str, vector: bytes | None, payload: Mapping[str, Any] | None) -> None:
        """Replace a row's vector, payload or both. A new text drops the old text's vector."""
        row = self._connection.execute(
            "SELECT seq, scope, payload FROM memories WHERE id = ?", (row_id,)
        ).fetchone()
        if row is None:
            return
        seq, scope, old = row[0], row[1], json.loads(row[2])
        if payload is not None:
            kept, text = _taken_apart(payload)
            self._rewrite(seq, scope, kept, text)
            if vector is None and embedded_text(kept) != embedded_text(old):
                self._connection.execute("DELETE FROM vectors WHERE seq = ?", (seq,))
                self._connection.execute("UPDATE memories SET space = NULL WHERE seq = ?", (seq,))
        if vector is not None:
            self.embed(row_id, vector)

    def _rewrite(self, seq: int, scope: int, kept: Mapping[str, Any], text: str | None) -> None:
        (standing,) = self._connection.execute(
            "SELECT terms FROM memories WHERE seq = ?", (seq,)
        ).fetchone()
        if standing != text:
            self._remove_words(scope, seq, standing)
            self._add_words(scope, seq, text)
        self._connection.execute(
            "UPDATE memories SET rev = ?, length = ?, payload = ?, terms = ? WHERE seq = ?",
            (self._revision(), word_count(text), _json(kept), text, seq),
        )

    def embed(self, row_id: str, vector: bytes) -> None:
        """Set a row's vector, if the row exists."""
        found = self._connection.execute(
            "UPDATE memories SET rev = ?, space = ? WHERE id = ? RETURNING seq",
            (self._revision(), self._space, row_id),
        ).fetchall()
        for (seq,) in found:
            self._connection.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", (seq, vector))

    def alias(self, row_id: str, op: str) -> None:
        """Record that an operation led to a row, too."""
        self._connection.execute(
            "INSERT OR IGNORE INTO aliases SELECT ?, seq FROM memories WHERE id = ?", (op, row_id)
        )

    def remove(self, where: Sql) -> int:
        """Remove the matching rows, keeping only their numbers; return how many there were."""
        gone = self._connection.execute(
            f"DELETE FROM memories WHERE {where.text} RETURNING seq, scope, terms", where.values
        ).fetchall()
        for seq, scope, text in gone:
            self._remove_words(scope, seq, text)
            self._connection.execute("DELETE FROM vectors WHERE seq = ?", (seq,))
            self._connection.execute("DELETE FROM aliases WHERE seq = ?", (seq,))
            self._connection.execute(
                "INSERT INTO removed VALUES (?, ?, ?)", (scope, self._revision(), seq)
            )
        return len(gone)

    def _add_words(self, scope: int, seq: int, text: str | None) -> None:
        if text:
            self._words.add(scope, seq, text)

    def _remove_words(self, scope: int, seq: int, text: str | None) -> None:
        if text:
            self._words.remove(scope, seq, text)

    def _is_alias(self, scope: int, payload: Mapping[str, Any]) -> bool:
        # CROSS keeps SQLite from reading the scope's rows first: there are many, and few aliases.
        found = self._connection.execute(
            "SELECT 1 FROM aliases CROSS JOIN memories USING (seq)"
            " WHERE aliases.op = ? AND scope = ? AND kind = ?",
            (payload.get("op"), scope, payload.get("kind", "fact")),
        )
        return found.fetchone() is not None

    def _revision(self) -> int:
        row = self._connection.execute("UPDATE clock SET rev = rev + 1 RETURNING rev").fetchone()
        return int(row[0])

    def _scope(self, payload: Mapping[str, Any]) -> int:
        """The number of a payload's scope; its first row makes the scope and its word index."""
        ids = (payload.get("user_id"), payload.get("agent_id"))
        found = self._connection.execute(
            "SELECT number FROM scopes WHERE user_id IS ? AND agent_id IS ?", ids
        ).fetchone()
        if found:
            return int(found[0])
        made = self._connection.execute(
            "INSERT INTO scopes (user_id, agent_id) VALUES (?, ?) RETURNING number", ids
        ).fetchone()
        self._words.make(int(made[0]))
        return int(made[0])


def analysed(payload: Mapping[str, Any]) -> str:
    """The index terms of a row, as one text for the index."""
    return encoded(terms(str(payload["data"])))


def _taken_apart(payload: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """(the payload to store, its index terms; None for a row that no word may find)."""
    kept = stored_payload(payload)
    if "terms" not in payload:
        return kept, analysed(kept)
    given: Sequence[str] = payload["terms"]
    return kept, encoded(given) if given else None


def word_count(text: str | None) -> int:
    """The number of words in a row's index text."""
    return len(text.split(" ")) if text else 0


def _json(payload: Mapping[str, Any]) -> str:
    return json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


CHUNK = 1_000
"""Rows read at once when words are analysed again."""

FIRST_VERSION = 2
"""The version of the first form that was released; 0 is a new file."""

FIRST_FORM = """
CREATE TABLE memories (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    rev INTEGER NOT NULL,
    scope INTEGER NOT NULL,
    id TEXT NOT NULL UNIQUE,
    length INTEGER NOT NULL,
    space TEXT,
    access_count INTEGER NOT NULL DEFAULT 0,
    last_access TEXT,
    payload TEXT NOT NULL,
    terms TEXT,
    kind TEXT AS (coalesce(json_extract(payload, '$.kind'), 'fact')) STORED,
    user_id TEXT AS (json_extract(payload, '$.user_id')),
    agent_id TEXT AS (json_extract(payload, '$.agent_id')),
    op TEXT AS (json_extract(payload, '$.op')),
    identity TEXT AS (json_extract(payload, '$.identity')),
    session TEXT AS (json_extract(payload, '$.session')) STORED,
    speaker TEXT AS (json_extract(payload, '$.speaker')) STORED,
    valid_from TEXT AS (json_extract(payload, '$.valid_from')) STORED,
    invalid_at TEXT AS (json_extract(payload, '$.invalid_at')) STORED,
    trust REAL AS (json_extract(payload, '$.trust')) STORED,
    importance REAL AS (json_extract(payload, '$.importance')) STORED
);
CREATE UNIQUE INDEX memories_op ON memories (scope, kind, op);
CREATE INDEX memories_identity ON memories (scope, identity) WHERE identity IS NOT NULL;
CREATE INDEX memories_found ON memories (scope, kind, invalid_at, trust);
CREATE INDEX memories_session ON memories (scope, session, valid_from) WHERE session IS NOT NULL;
CREATE INDEX memories_space ON memories (scope, space);
CREATE INDEX memories_rev ON memories (scope, rev, length);
CREATE TABLE vectors (seq INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE aliases (op TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (op, seq)) WITHOUT ROWID;
CREATE INDEX aliases_seq ON aliases (seq);
CREATE TABLE removed (
    scope INTEGER NOT NULL, rev INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (scope, rev)
) WITHOUT ROWID;
CREATE TABLE scopes (number INTEGER PRIMARY KEY, user_id TEXT, agent_id TEXT);
CREATE INDEX scopes_ids ON scopes (user_id, agent_id);
CREATE TABLE clock (
    one INTEGER PRIMARY KEY CHECK (one = 1), rev INTEGER NOT NULL, analysis INTEGER NOT NULL
);
INSERT INTO clock VALUES (1, 0, 0);
"""

UPGRADES: tuple[str, ...] = ()
"""SQL that takes a file from one version to the next, oldest first; released ones never change."""


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether the file has the latest form, and its words are analysed as they are now.

    Raises MemoryStoreError: a newer version made the file, or one before the first release.
    """
    version, latest = _version(connection), FIRST_VERSION + len(UPGRADES)
    if version > latest:
        raise MemoryStoreError(
            f"the memory was made by a newer Circadian (schema {version}, this one reads "
            f"{latest}); update Circadian"
        )
    if version < FIRST_VERSION and not _is_empty(connection):
        raise MemoryStoreError(
            f"the memory has a form from before the first release (schema {version}); this "
            "version cannot read it: begin a new data folder"
        )
    return version == latest and _analysis(connection) == ANALYSIS_VERSION


def bring_up_to_date(connection: sqlite3.Connection, words: WordIndex) -> None:
    """Give the file the form that `is_current` asks for, in the caller's write transaction."""
    if is_current(connection):
        return  # Another process did it meanwhile.
    version = _version(connection)
    missing = UPGRADES[version - FIRST_VERSION :] if version else (FIRST_FORM, *UPGRADES)
    for script in missing:
        # Not `executescript`, which would commit the transaction.
        for statement in script.split(";\n"):
            connection.execute(statement)
    if _analysis(connection) != ANALYSIS_VERSION:
        _analyse_again(connection, words)
    connection.execute(f"PRAGMA user_version = {FIRST_VERSION + len(UPGRADES)}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None


def _analysis(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT analysis FROM clock").fetchone()[0])


def _analyse_again(connection: sqlite3.Connection, words: WordIndex) -> None:
    """Rebuild the word indexes. A row that no word may find stays out of them."""
    for scope in _scopes(connection):
        words.drop(scope)
        words.make(scope)
    last = 0
    while True:
        found = connection.execute(
            "SELECT seq, scope, payload FROM memories WHERE seq > ? AND terms IS NOT NULL"
            " ORDER BY seq LIMIT ?",
            (last, CHUNK),
        ).fetchall()
        for seq, scope, payload in found:
            last = seq
            text = analysed(json.loads(payload))
            connection.execute(
                "UPDATE memories SET terms = ?, length = ? WHERE seq = ?",
                (text, word_count(text), seq),
            )
            if text:
                words.add(scope, seq, text)
        if len(found) < CHUNK:
            break
    connection.execute("UPDATE clock SET analysis = ?", (ANALYSIS_VERSION,))


def _scopes(connection: sqlite3.Connection) -> list[int]:
    return [number for (number,) in connection.execute("SELECT number FROM scopes").fetchall()]
