"""The tables of memories in PostgreSQL, and the upgrades to the form that this version uses.

Fields that are often filtered are columns computed from the payload, so that they cannot drift from
it. Texts compare by code point ("C"), whatever the language of the database. Vectors have their own
table, so that counting an access rewrites neither a vector nor an index.
"""

from __future__ import annotations

import psycopg

from memory.errors import FolderError, NewerError
from memory.facts.postgres.rows import ADD_WORDS, COUNT_WORDS, as_kept
from memory.storage.postgres import Connection, lock_key
from memory.text import analysis

CHUNK = 1_000
"""Rows read at once when words are analysed again."""

FIRST_FORM = """
    CREATE EXTENSION IF NOT EXISTS vector;
    CREATE TABLE memory_scopes (
        number INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        key TEXT COLLATE "C" NOT NULL UNIQUE,
        user_id TEXT COLLATE "C",
        agent_id TEXT COLLATE "C",
        indexed TEXT COLLATE "C"
    ) WITH (fillfactor = 50);
    COMMENT ON COLUMN memory_scopes.indexed IS 'of earlier states of this version: not read';
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
        kind TEXT COLLATE "C" NOT NULL,
        count INTEGER NOT NULL,
        length INTEGER NOT NULL,
        PRIMARY KEY (scope, term, seq) INCLUDE (kind, count, length)
    );
    CREATE TABLE memory_kinds (
        scope INTEGER NOT NULL,
        kind TEXT COLLATE "C" NOT NULL,
        rows BIGINT NOT NULL,
        length BIGINT NOT NULL,
        PRIMARY KEY (scope, kind)
    ) WITH (fillfactor = 50);
    COMMENT ON COLUMN memory_kinds.rows IS 'rows that have terms';
    COMMENT ON COLUMN memory_kinds.length IS 'terms of all of them';
    CREATE TABLE memory_aliases (
        op TEXT COLLATE "C" NOT NULL,
        seq BIGINT NOT NULL REFERENCES memories ON DELETE CASCADE,
        PRIMARY KEY (op, seq)
    );
    CREATE INDEX memory_aliases_seq ON memory_aliases (seq);
    CREATE TABLE memory_analysis (
        one BOOLEAN PRIMARY KEY DEFAULT true CHECK (one), version INTEGER NOT NULL
    );
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
    CREATE INDEX memory_history_of ON memory_history (memory_id)
"""

FIRST_VERSION = 2
"""The number of the first form that was released; new databases begin with it."""

UPGRADES: tuple[str, ...] = ()
"""SQL that takes the tables from one version to the next, oldest first.

Released ones never change, and share no SQL with the rest of the program: they meet the tables as
they were then.
"""

_APPLIED = "memory_migrations"


def bring_up_to_date(connection: Connection, name: str) -> None:
    """Create or upgrade the tables, in the connection's transaction; `name` is the database's.

    Raises:
        FolderError: it has no pgvector, its user may not create tables, or its tables are from
            before the first release.
        NewerError: it was made by a newer version.
    """
    if _current(connection, name):
        return
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key("schema"),))
    connection.execute(f"CREATE TABLE IF NOT EXISTS {_APPLIED} (v INTEGER PRIMARY KEY)")
    version = _version(connection)
    first = FIRST_VERSION if version is None else version + 1
    forms = (FIRST_FORM, *UPGRADES)
    try:
        for number, statement in enumerate(forms[first - FIRST_VERSION :], start=first):
            connection.execute(statement)
            connection.execute(f"INSERT INTO {_APPLIED} VALUES (%s)", (number,))
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.InsufficientPrivilege) as error:
        raise FolderError(
            f"the database {name} cannot be used ({error.diag.message_primary}): install pgvector "
            "on its server, and let this user create tables and the extension vector"
        ) from error
    if _analysed(connection) != analysis.ANALYSIS_VERSION:
        _analyse_again(connection)


def _current(connection: Connection, name: str) -> bool:
    missing = connection.execute("SELECT to_regclass(%s) IS NULL", (_APPLIED,)).fetchone()
    version = None if missing == (True,) else _version(connection)
    if version is None:
        return False
    latest = FIRST_VERSION + len(UPGRADES)
    if version > latest:
        raise NewerError(
            f"the database {name} was made by a newer Circadian (memories {version}, this one "
            f"reads {latest}); update Circadian"
        )
    if version < FIRST_VERSION:
        raise FolderError(
            f"the database {name} has a form from before the first release (memories {version}); "
            "this version cannot read it: begin a new database"
        )
    return version == latest and _analysed(connection) == analysis.ANALYSIS_VERSION


def _version(connection: Connection) -> int | None:
    """The last form that the tables were given; None for a new database."""
    row = connection.execute(f"SELECT max(v) FROM {_APPLIED}").fetchone()
    return None if row is None or row[0] is None else int(row[0])


def _analysed(connection: Connection) -> int | None:
    row = connection.execute("SELECT version FROM memory_analysis").fetchone()
    return row[0] if row else None


def _analyse_again(connection: Connection) -> None:
    """Rebuild the word index. A row that no word may find stays out of it."""
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
