"""The tables of memory's SQLite file, and the upgrades to the form that this version uses.

SQLite is the truth; every index over it can be rebuilt. Fields that are often filtered are columns
computed from the payload, so that they cannot drift from it. Every change of a row takes the next
revision, so that an index in memory can ask for the changes since the last revision it saw.
"""

from __future__ import annotations

import json
import sqlite3

from memory.analysis import ANALYSIS_VERSION
from memory.errors import MemoryStoreError
from memory.vectorstore.indexes import WordIndex
from memory.vectorstore.rows import analysed, word_count

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

    Raises:
        MemoryStoreError: a newer version made the file, or one before the first release.
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
