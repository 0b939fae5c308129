"""The table of memories in an SQLite file, with words in FTS5 and vectors in an array.

SQLite is the truth; every index over it can be rebuilt. Fields that are often filtered are columns
computed from the payload, so that they cannot drift from it. Every change of a row takes the next
revision, so that an index in memory can ask for the changes since the last revision it saw: the
vectors of a scope are held in memory once it is searched, and follow what any process writes.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from memory.errors import MemoryStoreError
from memory.facts.sqlite.indexes import (
    NONE,
    ScopeIndex,
    WordIndex,
    encoded,
    taken_apart,
    word_count,
)
from memory.facts.table import (
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
from memory.storage.sqlite import SqliteFile, drop_mentions
from memory.text import ANALYSIS_VERSION

SCOPES_IN_MEMORY = 200
"""Most agents whose indexes stay in memory, the last searched; others are loaded again."""

_DIALECT = Dialect(
    # CROSS: there are few aliases; SQLite would read the rows of the scope first.
    aliases="aliases AS a CROSS JOIN memories AS m USING (seq)",
    column="{name}",
    value="?",
    among="IN (SELECT value FROM json_each(?))",
    as_value=lambda value: value,
    # SQLite's JSON ends a text at a NUL: such a text would match its beginning.
    as_list=lambda values: json.dumps([value for value in values if "\0" not in str(value)]),
)


def _listing(field: str) -> str:
    """A test whether a list in the payload has one of the values given."""
    return f"EXISTS (SELECT 1 FROM json_each(payload, '$.{field}') WHERE value {_DIALECT.among})"


class SqliteTable(MemoryTable):
    """The table in one file, for one embedder."""

    dialect = _DIALECT

    def __init__(self, path: Path, *, model: str, dimension: int) -> None:
        self._file = SqliteFile(path)
        self.lock = self._file.lock
        self._connection = self._file.connection
        self._space, self._dimension = f"{model} {dimension}", dimension
        self._words = WordIndex(self._connection)
        self._indexes: OrderedDict[int, ScopeIndex] = OrderedDict()
        try:
            self._prepare()
        except BaseException:
            self._file.close()
            raise
        self.file_number = int(self._connection.execute("PRAGMA application_id").fetchone()[0])

    def _prepare(self) -> None:
        with self.reading():
            current = is_current(self._connection)
        if not current:
            with self._file.transaction():
                bring_up_to_date(self._connection, self._words)
        drop_mentions(self._connection, "memories")

    def transaction(self) -> AbstractContextManager[None]:
        """Make the writes inside atomic; an error rolls them back. Joins an open transaction."""
        return self._file.transaction()

    def reading(self) -> AbstractContextManager[None]:
        """Let all reads inside see the file as of one moment."""
        return self._file.reading()

    def insert(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any]) -> None:
        """Add a row, unless its scope has a row of its kind and `op`."""
        given = self._bytes(vector)
        with self._file.transaction():
            kept, text = taken_apart(payload)
            scope = self._scope(kept)
            if self._is_alias(scope, kept):
                return
            space = self._space if given is not None else None
            added = self._connection.execute(
                "INSERT INTO memories (rev, scope, id, length, space, payload, terms)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (scope, kind, op) DO NOTHING RETURNING seq",
                (self._new_revision(), scope, row_id, word_count(text), space, _json(kept), text),
            ).fetchall()
            for (seq,) in added:
                self._words.add(scope, seq, text)
                if given is not None:
                    self._connection.execute("INSERT INTO vectors VALUES (?, ?)", (seq, given))

    def alias(self, row_id: str, op: str) -> None:
        """Record that the operation `op` led to this row, too."""
        with self._file.transaction():
            self._connection.execute(
                "INSERT OR IGNORE INTO aliases SELECT ?, seq FROM memories WHERE id = ?",
                (op, row_id),
            )

    def update(self, row_id: str, vector: Vector | None, payload: Mapping[str, Any] | None) -> None:
        """Replace one row's vector, payload or both. A new text drops the old text's vector."""
        given = self._bytes(vector)
        with self._file.transaction():
            row = self._connection.execute(
                "SELECT seq, scope, payload, terms FROM memories WHERE id = ?", (row_id,)
            ).fetchone()
            if row is None:
                return
            seq, scope, old, words = row
            if payload is not None:
                self._rewrite(seq, scope, old, words, payload)
            if given is not None:
                self._embed(row_id, given)

    def _rewrite(
        self, seq: int, scope: int, old: str, words: str | None, payload: Mapping[str, Any]
    ) -> None:
        kept, text = taken_apart(payload)
        if words != text:
            self._words.remove(scope, seq, words)
            self._words.add(scope, seq, text)
        self._connection.execute(
            "UPDATE memories SET rev = ?, length = ?, payload = ?, terms = ? WHERE seq = ?",
            (self._new_revision(), word_count(text), _json(kept), text, seq),
        )
        if embedded_text(kept) != embedded_text(json.loads(old)):
            self._connection.execute("DELETE FROM vectors WHERE seq = ?", (seq,))
            self._connection.execute("UPDATE memories SET space = NULL WHERE seq = ?", (seq,))

    def set_vectors(self, vectors: Mapping[str, Vector]) -> None:
        """Set vectors of the embedder in use, by row id; missing rows are skipped."""
        given = {id_: checked_vector(one, self._dimension) for id_, one in vectors.items()}
        with self._file.transaction():
            for row_id, vector in given.items():
                self._embed(row_id, vector.tobytes())

    def _embed(self, row_id: str, vector: bytes) -> None:
        found = self._connection.execute(
            "UPDATE memories SET rev = ?, space = ? WHERE id = ? RETURNING seq",
            (self._new_revision(), self._space, row_id),
        ).fetchall()
        for (seq,) in found:
            self._connection.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", (seq, vector))

    def delete(self, filters: Filters) -> int:
        """Remove the matching rows, keeping only their numbers; return how many there were."""
        with self._file.transaction():
            where = self._where(filters)
            gone = self._connection.execute(
                f"DELETE FROM memories WHERE {where.text} RETURNING seq, scope, terms", where.values
            ).fetchall()
            for seq, scope, text in gone:
                self._words.remove(scope, seq, text)
                self._connection.execute("DELETE FROM vectors WHERE seq = ?", (seq,))
                self._connection.execute("DELETE FROM aliases WHERE seq = ?", (seq,))
                self._connection.execute(
                    "INSERT INTO removed VALUES (?, ?, ?)", (scope, self._new_revision(), seq)
                )
        return len(gone)

    def touch(self, row_ids: Sequence[str], at: datetime) -> None:
        """Count an access of each row, at `at`. Leaves every index as it is."""
        with self._file.transaction():
            self._connection.execute(
                "UPDATE memories SET access_count = access_count + 1, last_access = ?"
                " WHERE id IN (SELECT value FROM json_each(?))",
                (at.isoformat(), json.dumps(list(row_ids))),
            )

    def listed(self, wanted: Listing) -> tuple[list[Row], int]:
        """A page of a list of rows, and the number of rows on all pages."""
        end = None if wanted.limit is None else wanted.offset + wanted.limit
        with self.reading():
            where = self._where_listed(wanted)
            if wanted.order == "written" and where == self._where(wanted.filters):
                (scope, test), at = _split(wanted.filters), self._revision()
                some = [self._index(one).passing(test, at).numbers for one in self._scopes(scope)]
                found = np.sort(np.concatenate([NONE, *some]))[:: -1 if wanted.descending else 1]
            else:
                # One pass counts and sorts: to test each row again for the count costs more.
                query = f"SELECT seq FROM memories WHERE {where.text} ORDER BY {order_by(wanted)}"
                found = np.array(self._connection.execute(query, where.values).fetchall(), int)
            numbers = found.ravel()[wanted.offset : end].tolist()
            rows = self.numbered(numbers)
        return [rows[seq] for seq in numbers], len(found)

    def _where_listed(self, wanted: Listing) -> Sql:
        text, values = self._where(wanted.filters)
        for term in map(encoded, zip(wanted.terms)):
            text, values = f"{text} AND instr(' ' || terms || ' ', ?)", (*values, f" {term} ")
        named = f"(speaker {_DIALECT.among} OR {_listing('entities')})"
        cites = f"({_listing('source_entries')} OR {_listing('source_events')})"
        has, lacks = ([one] if one else [] for one in (wanted.has, wanted.lacks))
        for said, test, given in (
            (wanted.names, named, 2 * [json.dumps([*wanted.names])]),
            (wanted.citing, cites, 2 * [json.dumps([*wanted.citing])]),
            (has, "json_type(payload, '$.' || ?) IS NOT NULL", has),
            (lacks, "json_type(payload, '$.' || ?) IS NULL", lacks),
        ):
            if said:
                text, values = f"{text} AND {test}", (*values, *given)
        return Sql(text, values)

    def vector(self, row_id: str) -> Vector | None:
        """A row's vector; None without a row, or without a vector of the embedder in use."""
        found = self._value(
            "SELECT max(vector) FROM vectors JOIN memories USING (seq) WHERE id = ? AND space = ?",
            row_id,
            self._space,
        )
        return None if found is None else np.frombuffer(found, dtype=np.float32)

    def nearest(
        self, vectors: Sequence[Vector], filters: Filters, limit: int
    ) -> list[list[tuple[Row, float]]]:
        """The nearest matching rows of each vector, nearest first, with cosine (-1..1)."""
        for vector in vectors:
            checked_vector(vector, self._dimension)
        scope, test = _split(filters)
        with self.reading():
            at, numbers = self._revision(), self._scopes(scope)
            searched = [self._index(one).nearest(vectors, test, limit, at) for one in numbers]
            return [
                self._ranked([pair for found in searched for pair in found[place]], limit)
                for place in range(len(vectors))
            ]

    def keywords(
        self, terms: Sequence[str], filters: Filters, limit: int
    ) -> list[tuple[Row, float]]:
        """The matching rows with any of these index terms, best first, with BM25 (> 0)."""
        scope, test = _split(filters)
        with self.reading():
            at, asked = self._revision(), [*terms]
            indexes = [self._index(one) for one in self._scopes(scope)]
            searched = (one.worded(self._words, asked, test, limit, at) for one in indexes)
            return self._ranked([pair for found in searched for pair in found], limit)

    def _ranked(self, found: list[tuple[int, float]], limit: int) -> list[tuple[Row, float]]:
        best = sorted(found, key=lambda pair: (-pair[1], pair[0]))[: max(limit, 0)]
        rows = self.numbered(seq for seq, _ in best)
        return [(rows[seq], score) for seq, score in best if seq in rows]

    def counted(self, terms: Sequence[str], scope: Filters) -> Counted:
        """How many rows of a scope have each of these terms, of the kind that has most."""
        with self.reading():
            at = self._revision()
            found = [
                self._index(number).counted(self._words, list(terms), at)
                for number in self._scopes(split(scope)[0])
            ]
        having = Counter[str]()
        for part in found:
            having.update(part.having)
        return Counted(sum(one.rows for one in found), having)

    def unembedded(self, filters: Filters, limit: int) -> list[Waiting]:
        """Matching rows without a vector of the embedder in use, newest first."""
        with self.reading():
            rows = [
                row
                for where in self._waiting(filters)
                for row in self._connection.execute(
                    "SELECT seq, id, coalesce(json_extract(payload, '$.embed'),"
                    " json_extract(payload, '$.data')) FROM memories"
                    f" WHERE {where.text} ORDER BY seq DESC LIMIT ?",
                    (*where.values, max(limit, 0)),
                )
            ]
        return [Waiting(row[1], str(row[2])) for row in sorted(rows, reverse=True)[: max(limit, 0)]]

    def count_unembedded(self, filters: Filters) -> int:
        """The number of matching rows without a vector of the embedder in use."""
        with self.reading():
            return sum(
                int(self._value(f"SELECT count(*) FROM memories WHERE {where.text}", *where.values))
                for where in self._waiting(filters)
            )

    def scrub(self) -> None:
        """Remove the text of deleted and changed rows from the disk. Slow."""
        with self.lock:
            with self._file.transaction():
                for number in self._scopes({}):
                    self._words.scrub(number)
            self._file.compact()

    def close(self) -> None:
        """Close the table. Every write was committed."""
        self._file.close()

    def _waiting(self, filters: Filters) -> Iterator[Sql]:
        """Tests for unembedded rows, one per scope and embedder not in use (None: no vector)."""
        scope, (text, values) = _split(filters)
        for number in self._scopes(scope):
            for space in (None, *self._other_spaces(number)):
                yield Sql(f"scope = ? AND space IS ? AND ({text})", (number, space, *values))

    def _other_spaces(self, number: int) -> Iterator[str]:
        """The other embedders of a scope's vectors, one by one: DISTINCT would read all."""
        space = self._value("SELECT min(space) FROM memories WHERE scope = ?", number)
        while space is not None:
            if space != self._space:
                yield space
            query = "SELECT min(space) FROM memories WHERE scope = ? AND space > ?"
            space = self._value(query, number, space)

    def _where(self, filters: Filters) -> Sql:
        """`filters` as a test of rows, by the scope's number where they name a scope."""
        scope, (text, values) = _split(filters)
        if not scope:
            return Sql(text, values)
        tests = " AND ".join(f"{name} IS ?" for name in scope)
        numbers = f"scope IN (SELECT number FROM scopes WHERE {tests})"
        return Sql(f"{numbers} AND {text}", (*scope.values(), *values))

    def _scopes(self, scope: Mapping[str, object]) -> list[int]:
        tests = " AND ".join(f"{name} IS ?" for name in scope) or "1"
        found = self._connection.execute(
            f"SELECT number FROM scopes WHERE {tests} ORDER BY number", list(scope.values())
        )
        return [number for (number,) in found.fetchall()]

    def _index(self, number: int) -> ScopeIndex:
        # Within a write no index is kept: its rows may yet be rolled back.
        index = None if self._file.writing else self._indexes.pop(number, None)
        index = index or ScopeIndex(self._connection, number, self._space, self._dimension)
        if not self._file.writing:
            self._indexes[number] = index
        if len(self._indexes) > SCOPES_IN_MEMORY:
            self._indexes.popitem(last=False)
        return index

    def _revision(self) -> int:
        return int(self._value("SELECT rev FROM clock"))

    def _is_alias(self, scope: int, payload: Mapping[str, Any]) -> bool:
        # CROSS keeps SQLite from reading the scope's rows first: there are many, and few aliases.
        found = self._connection.execute(
            "SELECT 1 FROM aliases CROSS JOIN memories USING (seq)"
            " WHERE aliases.op = ? AND scope = ? AND kind = ?",
            (payload.get("op"), scope, payload.get("kind", "fact")),
        )
        return found.fetchone() is not None

    def _new_revision(self) -> int:
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

    def _asked(self, filters: Filters, statement: str, *values: object) -> list[Any]:
        text, given = self._where(filters)
        with self.reading():
            query = statement.replace("{where}", text)
            given = (*given, *values) * statement.count("{where}")
            return self._connection.execute(query, given).fetchall()

    def _row(self, seq: int, id_: str, payload: str, *counted: Any) -> Row:
        return super()._row(seq, id_, orjson.loads(payload), *counted)

    def _value(self, query: str, *values: object) -> Any:
        with self.reading():
            return self._connection.execute(query, values).fetchone()[0]

    def _bytes(self, vector: Vector | None) -> bytes | None:
        return None if vector is None else checked_vector(vector, self._dimension).tobytes()


def _split(filters: Filters) -> tuple[dict[str, str | None], Sql]:
    """(the ids of a scope, the test of a row). Raises ValueError."""
    scope, tests = split(filters)
    return scope, where(tests, _DIALECT)


def _json(payload: Mapping[str, Any]) -> str:
    return json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


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
    tables = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if version < FIRST_VERSION and tables is not None:
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
        words.analyse_again()
        connection.execute("UPDATE clock SET analysis = ?", (ANALYSIS_VERSION,))
    if not version:
        connection.execute(f"PRAGMA application_id = {secrets.randbits(31) | 1}")
    connection.execute(f"PRAGMA user_version = {FIRST_VERSION + len(UPGRADES)}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _analysis(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT analysis FROM clock").fetchone()[0])
