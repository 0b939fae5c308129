"""The tables of memories in PostgreSQL, and how they come to be as this version needs them.

What is looked up or filtered often is a column computed from the payload, so that it cannot drift
from it. Texts are compared by code point ("C"), whatever the language of the database. Vectors
stand by themselves: counting an access then writes neither a vector nor an index anew.
"""

from __future__ import annotations

import psycopg

from memory import analysis
from memory.errors import FolderError, NewerError
from memory.postgres.pool import Connection
from memory.postgres.schema import lock_key
from memory.postgres.text import ADD_WORDS, COUNT_WORDS, as_kept

CHUNK = 1_000
"""Rows read at once when words are analysed anew."""

STATEMENTS = (
    "CREATE EXTENSION IF NOT EXISTS vector",
    """
    CREATE TABLE memory_scopes (
        number INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        key TEXT COLLATE "C" NOT NULL UNIQUE,
        user_id TEXT COLLATE "C",
        agent_id TEXT COLLATE "C",
        rows BIGINT NOT NULL DEFAULT 0,
        length BIGINT NOT NULL DEFAULT 0,
        indexed TEXT COLLATE "C"
    ) WITH (fillfactor = 50);
    COMMENT ON COLUMN memory_scopes.rows IS 'rows that have terms';
    COMMENT ON COLUMN memory_scopes.length IS 'terms of all of them';
    COMMENT ON COLUMN memory_scopes.indexed IS 'the embedder whose vectors have an HNSW index';
    CREATE TABLE memories (
        seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        scope INTEGER NOT NULL,
        id TEXT COLLATE "C" NOT NULL UNIQUE,
        space TEXT COLLATE "C",
        access_count INTEGER NOT NULL DEFAULT 0,
        last_access TEXT COLLATE "C",
        payload JSONB NOT NULL,
        terms TEXT[] COLLATE "C",
        kind TEXT COLLATE "C" GENERATED ALWAYS AS (coalesce(payload ->> 'kind', 'fact')) STORED,
        user_id TEXT COLLATE "C" GENERATED ALWAYS AS (payload ->> 'user_id') STORED,
        agent_id TEXT COLLATE "C" GENERATED ALWAYS AS (payload ->> 'agent_id') STORED,
        op TEXT COLLATE "C" GENERATED ALWAYS AS (payload ->> 'op') STORED,
        identity TEXT COLLATE "C" GENERATED ALWAYS AS (payload ->> 'identity') STORED,
        session TEXT COLLATE "C" GENERATED ALWAYS AS (payload ->> 'session') STORED,
        speaker TEXT COLLATE "C" GENERATED ALWAYS AS (payload ->> 'speaker') STORED,
        valid_from TEXT COLLATE "C" GENERATED ALWAYS AS (payload ->> 'valid_from') STORED,
        invalid_at TEXT COLLATE "C" GENERATED ALWAYS AS (payload ->> 'invalid_at') STORED,
        trust FLOAT8 GENERATED ALWAYS AS ((payload ->> 'trust')::float8) STORED,
        importance FLOAT8 GENERATED ALWAYS AS ((payload ->> 'importance')::float8) STORED
    ) WITH (fillfactor = 85);
    CREATE UNIQUE INDEX memories_op ON memories (scope, kind, op);
    CREATE INDEX memories_identity ON memories (scope, identity) WHERE identity IS NOT NULL;
    CREATE INDEX memories_found ON memories (scope, kind, invalid_at) INCLUDE (trust, seq);
    CREATE INDEX memories_space ON memories (scope, space);
    COMMENT ON COLUMN memories.space IS 'the embedder of its vector';
    CREATE INDEX memories_session ON memories (scope, session, valid_from)
        WHERE session IS NOT NULL;
    CREATE TABLE memory_vectors (
        seq BIGINT PRIMARY KEY REFERENCES memories ON DELETE CASCADE,
        scope INTEGER NOT NULL,
        space TEXT COLLATE "C" NOT NULL,
        embedding VECTOR NOT NULL
    ) WITH (toast_tuple_target = 8160);
    CREATE INDEX memory_vectors_space ON memory_vectors (scope, space);
    CREATE TABLE memory_terms (
        scope INTEGER NOT NULL,
        term TEXT COLLATE "C" NOT NULL,
        seq BIGINT NOT NULL,
        count INTEGER NOT NULL,
        length INTEGER NOT NULL,
        PRIMARY KEY (scope, term, seq) INCLUDE (count, length)
    );
    CREATE TABLE memory_aliases (
        op TEXT COLLATE "C" NOT NULL,
        seq BIGINT NOT NULL REFERENCES memories ON DELETE CASCADE,
        PRIMARY KEY (op, seq)
    );
    CREATE INDEX memory_aliases_seq ON memory_aliases (seq);
    CREATE TABLE memory_analysis (
        one BOOLEAN PRIMARY KEY DEFAULT true CHECK (one), version INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE memory_history (
        number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        memory_id TEXT,
        old_memory TEXT,
        new_memory TEXT,
        event TEXT,
        created_at TEXT COLLATE "C",
        updated_at TEXT COLLATE "C",
        is_deleted INTEGER,
        actor_id TEXT,
        role TEXT
    );
    CREATE INDEX memory_history_of ON memory_history (memory_id);
    CREATE TABLE memory_messages (
        number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        session_scope TEXT,
        role TEXT,
        content TEXT,
        name TEXT,
        created_at TEXT
    );
    CREATE INDEX memory_messages_of ON memory_messages (session_scope)
    """,
    """
    CREATE TABLE memory_kinds (
        scope INTEGER NOT NULL,
        kind TEXT COLLATE "C" NOT NULL,
        rows BIGINT NOT NULL,
        length BIGINT NOT NULL,
        PRIMARY KEY (scope, kind)
    ) WITH (fillfactor = 50);
    COMMENT ON COLUMN memory_kinds.rows IS 'rows that have terms';
    COMMENT ON COLUMN memory_kinds.length IS 'terms of all of them';
    ALTER TABLE memory_terms ADD COLUMN kind TEXT COLLATE "C";
    UPDATE memory_terms AS t SET kind = m.kind FROM memories AS m WHERE m.seq = t.seq;
    ALTER TABLE memory_terms ALTER COLUMN kind SET NOT NULL, DROP CONSTRAINT memory_terms_pkey,
        ADD PRIMARY KEY (scope, term, seq) INCLUDE (kind, count, length);
    ALTER TABLE memory_scopes DROP COLUMN rows, DROP COLUMN length;
    INSERT INTO memory_kinds (scope, kind, rows, length)
        SELECT scope, kind, count(*), sum(cardinality(terms))
        FROM memories WHERE cardinality(terms) > 0 GROUP BY scope, kind
    """,
)
"""What makes the tables, in order; in later versions more stands at the end.

What stands here stays word for word, and shares no text with what today's program does: it meets
the tables as they were then.
"""

_APPLIED = "memory_migrations"


def bring_up_to_date(connection: Connection, name: str) -> None:
    """Make what is not made yet, in the connection's transaction; `name` is the database's.

    Raises:
        FolderError: it has no pgvector, or its user may not make it what is needed.
        NewerError: it was made by a newer version.
    """
    if _current(connection, name):
        return
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key("schema"),))
    connection.execute(f"CREATE TABLE IF NOT EXISTS {_APPLIED} (v INTEGER PRIMARY KEY)")
    done = _applied(connection)
    try:
        for version, statement in enumerate(STATEMENTS[done:], start=done):
            connection.execute(statement)
            connection.execute(f"INSERT INTO {_APPLIED} VALUES (%s)", (version,))
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.InsufficientPrivilege) as error:
        raise FolderError(
            f"the database {name} cannot be used ({error.diag.message_primary}): install pgvector "
            "on its server, and let this user create tables and the extension vector"
        ) from error
    if _analysed(connection) != analysis.ANALYSIS_VERSION:
        _analyse_again(connection)


def _current(connection: Connection, name: str) -> bool:
    missing = connection.execute("SELECT to_regclass(%s) IS NULL", (_APPLIED,)).fetchone()
    if missing == (True,):
        return False
    done = _applied(connection)
    if done > len(STATEMENTS):
        raise NewerError(
            f"the database {name} was made by a newer Circadian (memories {done}, this one reads "
            f"{len(STATEMENTS)}); update Circadian"
        )
    return done == len(STATEMENTS) and _analysed(connection) == analysis.ANALYSIS_VERSION


def _applied(connection: Connection) -> int:
    (count,) = connection.execute(f"SELECT count(*) FROM {_APPLIED}").fetchone() or (0,)
    return int(count)


def _analysed(connection: Connection) -> int | None:
    row = connection.execute("SELECT version FROM memory_analysis").fetchone()
    return row[0] if row else None


def _analyse_again(connection: Connection) -> None:
    """Make the word index anew. A row that is in none on purpose stays out."""
    connection.execute("LOCK TABLE memories IN SHARE ROW EXCLUSIVE MODE")
    connection.execute("DELETE FROM memory_terms")
    last = 0
    while found := connection.execute(
        "SELECT seq, payload ->> 'data' FROM memories WHERE seq > %s AND terms IS NOT NULL"
        " ORDER BY seq LIMIT %s",
        (last, CHUNK),
    ).fetchall():
        connection.cursor().executemany(
            "UPDATE memories SET terms = %s WHERE seq = %s",
            [(as_kept(analysis.terms(text)), seq) for seq, text in found],
        )
        connection.execute(ADD_WORDS, ([seq for seq, _ in found],))
        last = found[-1][0]
    connection.execute("DELETE FROM memory_kinds")
    connection.execute(COUNT_WORDS)
    connection.execute(
        "INSERT INTO memory_analysis (version) VALUES (%s)"
        " ON CONFLICT (one) DO UPDATE SET version = EXCLUDED.version",
        (analysis.ANALYSIS_VERSION,),
    )
