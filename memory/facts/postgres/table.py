"""The table of memories in PostgreSQL, with words in an inverted index and vectors in pgvector.

Fields that are often filtered are columns computed from the payload, so that they cannot drift from
it. Texts compare by code point ("C"), whatever the language of the database. Vectors have their own
table, so that counting an access rewrites neither a vector nor an index.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any

import numpy as np
import psycopg
from psycopg_pool import ConnectionPool

from memory.errors import FolderError, NewerError
from memory.facts.postgres.rows import (
    ADD_WORDS,
    COUNT_WORDS,
    DELETE,
    EMBED,
    INSERT,
    RANKED,
    REMOVE_WORDS,
    UNEMBED,
    Ids,
    RowContent,
    Transactions,
    Write,
    as_asked,
    as_kept,
    content_of,
    scope_key,
)
from memory.facts.table import (
    ROW,
    SCOPE,
    Counted,
    Dialect,
    Filters,
    Listing,
    MemoryTable,
    Row,
    Sql,
    Vector,
    Waiting,
    checked_vector,
    embedded_text,
    order_by,
    split,
    where,
)
from memory.storage.postgres import Connection, lock_key, storable
from memory.text import analysis

_NEAREST = f"""
SELECT {ROW}, -(v.embedding <#> %s::vector) AS score
FROM memories AS m JOIN memory_vectors AS v USING (seq)
WHERE v.space = %s AND v.scope = ANY(%s::int[]) AND {{where}} ORDER BY score DESC, v.seq LIMIT %s
"""
"""Every vector is compared. They have length 1, so that the inner product is the cosine."""

_COUNTED = """
SELECT NULL AS term, coalesce(max(those), 0)::bigint
FROM (SELECT sum(rows) AS those FROM memory_kinds WHERE scope = ANY(%s) GROUP BY kind) AS by_kind
UNION ALL SELECT term, max(those) FROM (
    SELECT term, count(*) AS those FROM memory_terms
    WHERE scope = ANY(%s) AND term = ANY(%s) GROUP BY kind, term
) AS by_kind GROUP BY term
"""
"""Over kinds the most rows, and the most rows with each term."""

_WAITING = "(m.space IS NULL OR m.space < %s OR m.space > %s)"
"""Three tests in place of `<>`, which no index can answer."""

_DIALECT = Dialect(
    aliases="memory_aliases AS a JOIN memories AS m USING (seq)",
    column="m.{name}",
    value="%s::{type}",
    among="= ANY(%s::{type}[])",
    as_value=storable,
    as_list=lambda values: storable(list(values)),
)


def _listing(field: str) -> str:
    """A test whether a list in the payload has one of the values given."""
    # Not jsonb_exists_any, which walks through all values for each row.
    values = f"SELECT one FROM jsonb_array_elements_text(m.payload -> '{field}') AS one"
    return f"EXISTS ({values} WHERE one IN (SELECT unnest(%b::text[])))"


class PostgresTable(MemoryTable):
    """The table in one database, for one embedder.

    The pool's owner closes it. Threads read in parallel; within one process they write one after
    the other. A transaction locks each scope that it touches until its end, across processes.
    """

    dialect = _DIALECT

    def __init__(self, pool: ConnectionPool[Connection], *, model: str, dimension: int) -> None:
        self.lock = threading.RLock()
        """Held during every write; hold it to make several calls atomic within this process."""
        self.transactions = Transactions(pool)
        self._space, self._dimension = f"{model} {dimension}", dimension
        self._numbers: dict[Ids, int] = {}
        with self.transactions.connection() as connection, connection.transaction():
            bring_up_to_date(connection, pool.name)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make this thread's writes inside atomic; an error rolls them back. Joins an open one."""
        with self._writing():
            yield

    def reading(self) -> AbstractContextManager[Connection]:
        """Let all reads inside use one connection."""
        return self.transactions.connection()

    def insert(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any]) -> None:
        """Add a row, unless its scope has a row of its kind and `op`."""
        content, given = content_of(payload), None if vector is None else self._text(vector)
        with self._writing() as write:
            scope = write.hold(content.ids)
            values = {
                "scope": scope,
                "id": row_id,
                "payload": content.payload,
                "terms": content.terms,
                "op": content.kept.get("op"),
                "kind": content.kind,
                "space": None if given is None else self._space,
                "vector": given,
            }
            if write.connection.execute(INSERT, values).fetchone() is not None:
                write.count_row(scope, content.kind, content.terms, 1)

    def alias(self, row_id: str, op: str) -> None:
        """Record that the operation `op` led to this row, too."""
        with self._writing() as write:
            write.connection.execute(
                "INSERT INTO memory_aliases SELECT %s, m.seq FROM memories AS m WHERE m.id = %s"
                " ON CONFLICT DO NOTHING",
                (op, row_id),
            )

    def update(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any] | None) -> None:
        """Replace one row's vector, payload or both. A new text drops the old text's vector."""
        content = None if payload is None else content_of(payload)
        given = None if vector is None else self._text(vector)
        with self._writing() as write:
            write.hold_those_of("m.id = %s", (row_id,))
            row = write.connection.execute(
                "SELECT m.seq, m.scope, m.kind, m.terms, m.payload FROM memories AS m"
                " WHERE m.id = %s",
                (row_id,),
            ).fetchone()
            if row is None:
                return
            if content is not None:
                _rewrite(write, row, content)
            if given is not None:
                write.connection.execute(EMBED, (self._space, [row_id], [given]))

    def set_vectors(self, vectors: Mapping[str, Vector]) -> None:
        """Set vectors of the embedder in use, by row id; missing rows are skipped."""
        given = {row_id: self._text(vector) for row_id, vector in vectors.items()}
        with self._writing() as write:
            write.hold_those_of("m.id = ANY(%s)", (list(given),))
            write.connection.execute(EMBED, (self._space, list(given), list(given.values())))

    def delete(self, filters: Filters) -> int:
        """Remove the matching rows, keeping only their numbers; return how many there were."""
        with self._writing() as write:
            where = self._where(write.connection, filters)
            write.hold_those_of(*where)
            statement = DELETE.format(where=where.text)
            gone = write.connection.execute(statement, where.values).fetchall()
            for scope, kind, _, rows, length in gone:
                write.count(scope, kind, -rows, -int(length))
        return sum(count for _, _, count, _, _ in gone)

    def touch(self, row_ids: Sequence[str], at: datetime) -> None:
        """Count an access of each row, at `at`. Leaves every index as it is."""
        with self._writing() as write:
            write.hold_those_of("m.id = ANY(%s)", (list(row_ids),))
            write.connection.execute(
                "UPDATE memories SET access_count = access_count + 1, last_access = %s"
                " WHERE id = ANY(%s)",
                (at.isoformat(), list(row_ids)),
            )

    def listed(self, wanted: Listing) -> tuple[list[Row], int]:
        """A page of a list of rows, and the number of rows on all pages."""
        with self.transactions.connection() as connection:
            text, values = self._where(connection, wanted.filters)
            if wanted.terms:
                text, values = f"{text} AND m.terms @> %s::text[]", (*values, as_kept(wanted.terms))
            if wanted.names:
                names = [storable(name) for name in wanted.names]
                text = f"{text} AND (m.speaker = ANY(%s::text[]) OR {_listing('entities')})"
                values = (*values, names, names)
            if wanted.citing:
                cited = [storable(one) for one in wanted.citing]
                text = f"{text} AND ({_listing('source_entries')} OR {_listing('source_events')})"
                values = (*values, cited, cited)
            for field, test in ((wanted.has, ""), (wanted.lacks, "NOT ")):
                if field:
                    text, values = f"{text} AND {test}jsonb_exists(m.payload, %s)", (*values, field)
            query = f"FROM memories AS m WHERE {text}"
            [(total,)] = connection.execute(f"SELECT count(*) {query}", values)
            rows = connection.execute(
                f"SELECT {ROW} {query} ORDER BY {order_by(wanted)} LIMIT %s OFFSET %s",
                (*values, wanted.limit, wanted.offset),
            )
            return [Row(*row) for row in rows], total

    def vector(self, row_id: str) -> Vector | None:
        """A row's vector; None without a row, or without a vector of the embedder in use."""
        with self.transactions.connection() as connection:
            row = connection.execute(
                "SELECT v.embedding::real[] FROM memory_vectors AS v JOIN memories AS m USING (seq)"
                " WHERE m.id = %s AND v.space = %s",
                (row_id, self._space),
            ).fetchone()
        return None if row is None else np.array(row[0], dtype=np.float32)

    def nearest(
        self, vectors: Sequence[Vector], filters: Filters, limit: int
    ) -> list[list[tuple[Row, float]]]:
        """The nearest matching rows of each vector, nearest first, with cosine (-1..1)."""
        given = [self._text(vector) for vector in vectors]
        with self.transactions.connection() as connection:
            scopes = self._scopes(connection, split(filters)[0])
            test = self._where(connection, filters)
            query, more = _NEAREST.format(where=test.text), (*test.values, max(limit, 0))
            found = [connection.execute(query, (one, self._space, scopes, *more)) for one in given]
            return [
                [(Row(*row), min(max(score, -1.0), 1.0)) for *row, score in rows] for rows in found
            ]

    def keywords(
        self, terms: Sequence[str], filters: Filters, limit: int
    ) -> list[tuple[Row, float]]:
        """The matching rows with any of these index terms, best first, with BM25 (> 0)."""
        with self.transactions.connection() as connection:
            if write := self.transactions.current:
                write.settle()
            scopes, asked = self._scopes(connection, split(filters)[0]), as_asked(terms)
            text, values = self._where(connection, filters)
            rows = connection.execute(
                f"{RANKED} SELECT {ROW}, score FROM ranked JOIN memories AS m USING (seq)"
                f" WHERE {text} ORDER BY score DESC, m.seq LIMIT %s",
                (scopes, asked, asked, scopes, *values, max(limit, 0)),
            )
            return [(Row(*row), score) for *row, score in rows]

    def counted(self, terms: Sequence[str], scope: Filters) -> Counted:
        """How many rows of a scope have each of these terms, of the kind that has most."""
        asked = {kept: term for term in terms for kept in as_asked([term])}
        with self.transactions.connection() as connection:
            if write := self.transactions.current:
                write.settle()
            scopes = self._scopes(connection, split(scope)[0])
            counts = dict(connection.execute(_COUNTED, (scopes, scopes, list(asked))).fetchall())
        return Counted(counts.pop(None), {asked[term]: count for term, count in counts.items()})

    def unembedded(self, filters: Filters, limit: int) -> list[Waiting]:
        """Matching rows without a vector of the embedder in use, newest first."""
        query = (
            f"SELECT m.id, m.payload FROM memories AS m WHERE {{where}} AND {_WAITING}"
            " ORDER BY m.seq DESC LIMIT %s"
        )
        space = self._space
        rows = self._asked(filters, query, space, space, max(limit, 0))
        return [Waiting(row_id, embedded_text(payload)) for row_id, payload in rows]

    def count_unembedded(self, filters: Filters) -> int:
        """The number of matching rows without a vector of the embedder in use."""
        query = f"SELECT count(*) FROM memories AS m WHERE {{where}} AND {_WAITING}"
        [(number,)] = self._asked(filters, query, self._space, self._space)
        return int(number)

    def scrub(self) -> None:
        """Remove deleted and changed content from the tables' files. Slow; others wait."""
        with self.lock, self.transactions.connection() as connection:
            # ANALYZE: the planner's statistics hold values that were common in a table.
            tables = "memories, memory_terms, memory_aliases, memory_vectors"
            connection.execute(f"VACUUM (FULL, ANALYZE) {tables}")
            # What Mem0 kept of changes in earlier states of this version: it has texts.
            connection.execute("DROP TABLE IF EXISTS memory_history")

    def close(self) -> None:
        """Wait for a write in progress. The pool stays open: it belongs to its owner."""
        with self.lock:
            return

    @contextmanager
    def _writing(self) -> Iterator[Write]:
        with self.lock, self.transactions.open() as write:
            yield write

    def _text(self, vector: Vector) -> str:
        """A vector as a text for PostgreSQL. Raises MemoryStoreError if it does not fit."""
        return str(checked_vector(vector, self._dimension).tolist())

    def _asked(self, filters: Filters, statement: str, *values: object) -> list[Any]:
        with self.transactions.connection() as connection:
            text, given = self._where(connection, filters)
            query = statement.replace("{where}", text)
            given = (*given, *values) * statement.count("{where}")
            return connection.execute(query, given).fetchall()

    def _where(self, connection: Connection, filters: Filters) -> Sql:
        """`filters` as a test of the rows `m`. Raises ValueError."""
        scope, tests = split(filters)
        text, values = where(tests, _DIALECT)
        if not scope:
            return Sql(text, values)
        scopes = self._scopes(connection, scope)
        if len(scopes) == 1:
            return Sql(f"m.scope = %s AND {text}", (scopes[0], *values))
        return Sql(f"m.scope = ANY(%s::int[]) AND {text}", (scopes, *values))

    def _scopes(self, connection: Connection, scope: Mapping[str, str | None]) -> list[int]:
        """The numbers of the scopes with these ids. A transaction locks a fully named one."""
        if len(scope) < len(SCOPE):
            tests = " AND ".join(f"{name} IS NOT DISTINCT FROM %s::text" for name in scope)
            rows = connection.execute(
                f"SELECT number FROM memory_scopes WHERE {tests or 'true'}",
                [storable(value) for value in scope.values()],
            )
            return [number for (number,) in rows]
        ids = (scope["user_id"], scope["agent_id"])
        if write := self.transactions.current:
            return [write.hold(ids)]
        if ids not in self._numbers:
            found = connection.execute(
                "SELECT number FROM memory_scopes WHERE key = %s", (scope_key(ids),)
            ).fetchone()
            if found is None:
                return []
            self._numbers[ids] = found[0]
        return [self._numbers[ids]]


def _rewrite(write: Write, row: tuple[Any, ...], content: RowContent) -> None:
    """Replace a standing row's payload, and its words and its vector where they are others."""
    seq, scope, kind, terms, old = row
    other_words = (kind, terms) != (content.kind, content.terms)
    if other_words:
        write.connection.execute(REMOVE_WORDS, ([seq],))
        write.count_row(scope, kind, terms, -1)
    write.connection.execute(
        "UPDATE memories SET payload = %s::jsonb, terms = %s WHERE seq = %s",
        (content.payload, content.terms, seq),
    )
    if other_words:
        write.connection.execute(ADD_WORDS, ([seq],))
        write.count_row(scope, content.kind, content.terms, 1)
    if embedded_text(content.kept) != embedded_text(old):
        write.connection.execute(UNEMBED, {"seq": seq})


# The form of the tables, and their upgrade.

CHUNK = 1_000
"""Rows read at once when words are analysed again."""

FIRST_FORM = """
    CREATE EXTENSION IF NOT EXISTS vector;
    CREATE TABLE memory_scopes (
        number INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        key TEXT COLLATE "C" NOT NULL UNIQUE,
        user_id TEXT COLLATE "C",
        agent_id TEXT COLLATE "C"
    ) WITH (fillfactor = 50);
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
    )
"""

FIRST_VERSION = 2
"""The number of the first form that was released; new databases begin with it."""

UPGRADES: tuple[str, ...] = ()
"""SQL that takes the tables from one version to the next, oldest first.

Released ones never change, and share no SQL with the rest of the program.
"""

_APPLIED = "memory_migrations"


def bring_up_to_date(connection: Connection, name: str) -> None:
    """Create or upgrade the tables, in the connection's transaction; `name` is the database's.

    Raises NewerError, and FolderError for a form from before the first release or a lack of rights.
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
