"""The tables of memory's SQLite file, and how a file of an earlier form becomes one of this.

SQLite is the truth; every index over it can be rebuilt. What is looked up or filtered often is a
column computed from the payload, so that it cannot drift from it. Every change of a row takes the
next revision: whoever keeps an index asks for what came after the last one it saw.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any, cast

from memory.analysis import ANALYSIS_VERSION
from memory.errors import MemoryStoreError
from memory.records import FactDraft
from memory.vectorstore.payload import identity_of
from memory.vectorstore.rows import Rows, analysed, word_count
from memory.vectorstore.words import WordIndex

SCHEMA_VERSION = 2
"""The form that this version reads and writes; 0 is a new file, or one of the first form."""

CHUNK = 1_000
"""Rows read at once when a file is brought up to date."""

_SCHEMA = """
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
"""


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether the file is of this form, with words as they are analysed now.

    Raises MemoryStoreError for a file of a later form.
    """
    version = _version(connection)
    if version > SCHEMA_VERSION:
        raise MemoryStoreError(
            f"the memory was made by a newer Circadian (schema {version}, this one reads "
            f"{SCHEMA_VERSION}); update Circadian"
        )
    return version == SCHEMA_VERSION and _analysis(connection) == ANALYSIS_VERSION


def bring_up_to_date(
    connection: sqlite3.Connection, rows: Rows, words: WordIndex, size: int
) -> None:
    """Make the file what `is_current` asks for, within one write transaction of the caller.

    `size`: bytes of a vector of the embedder in use; all of the first form are of that embedder.
    """
    if is_current(connection):
        return  # Another process did it meanwhile.
    if _version(connection) == SCHEMA_VERSION:
        _analyse_again(connection, words)
        return
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if "facts" in names:
        _set_aside(connection, words)
    for statement in _SCHEMA.split(";\n"):
        connection.execute(statement)
    connection.execute("INSERT INTO clock VALUES (1, 0, ?)", (ANALYSIS_VERSION,))
    if "facts" in names:
        _take_over(connection, rows, size)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _analysis(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT analysis FROM clock").fetchone()[0])


def _set_aside(connection: sqlite3.Connection, words: WordIndex) -> None:
    """Leave of the first form the facts alone, under another name."""
    for scope in _scopes(connection):
        words.drop(scope)
    for table in ("scopes", "clock", "removed"):
        connection.execute(f"DROP TABLE {table}")
    connection.execute("ALTER TABLE facts RENAME TO first_facts")


def _take_over(connection: sqlite3.Connection, rows: Rows, size: int) -> None:
    """Write the facts of the first form in this one, in their order."""
    last = 0
    while True:
        found = connection.execute(
            "SELECT seq, id, vector, payload FROM first_facts WHERE seq > ? ORDER BY seq LIMIT ?",
            (last, CHUNK),
        ).fetchall()
        for seq, fact_id, vector, payload in found:
            last = seq
            kept = vector if len(vector) == size else None
            rows.add(fact_id, kept, _of_this_form(json.loads(payload)))
        if len(found) < CHUNK:
            break
    connection.execute("DROP TABLE first_facts")


def _of_this_form(payload: dict[str, Any]) -> dict[str, Any]:
    payload.pop("text_lemmatized", None)
    payload["kind"] = "fact"
    if {"source_entries", "source_events"} <= payload.keys():
        payload["identity"] = identity_of(cast(FactDraft, {**payload, "text": payload["data"]}))
    return payload


def _analyse_again(connection: sqlite3.Connection, words: WordIndex) -> None:
    """Make the word indexes anew. A row that is in none on purpose stays out."""
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
