"""Writing rows to SQLite: the table, its vectors and its word index change together.

Everything here belongs to the caller's transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from memory.analysis import terms
from memory.vectorstore.indexes import WordIndex, encoded
from memory.vectorstore.payload import embedded_text
from memory.vectorstore.table import NUMBERS, TEXTS, Sql


class SqliteRows:
    """The rows of one file. Vectors are the bytes of their numbers.

    Raises ValueError for a payload that a column cannot hold.
    """

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
        """Replace a row's payload, which may move the row to another scope."""
        here = self._scope(kept)
        (standing,) = self._connection.execute(
            "SELECT terms FROM memories WHERE seq = ?", (seq,)
        ).fetchone()
        if (scope, standing) != (here, text):
            self._remove_words(scope, seq, standing)
            self._add_words(here, seq, text)
        if scope != here:
            self._gone(scope, seq)
        self._connection.execute(
            "UPDATE memories SET rev = ?, scope = ?, length = ?, payload = ?, terms = ?"
            " WHERE seq = ?",
            (self._revision(), here, word_count(text), _json(kept), text, seq),
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
            self._gone(scope, seq)
        return len(gone)

    def _add_words(self, scope: int, seq: int, text: str | None) -> None:
        if text:
            self._words.add(scope, seq, text)

    def _remove_words(self, scope: int, seq: int, text: str | None) -> None:
        if text:
            self._words.remove(scope, seq, text)

    def _gone(self, scope: int, seq: int) -> None:
        self._connection.execute(
            "INSERT INTO removed VALUES (?, ?, ?)", (scope, self._revision(), seq)
        )

    def _is_alias(self, scope: int, payload: Mapping[str, Any]) -> bool:
        # CROSS keeps SQLite from reading the scope's rows first: there are many, and few aliases.
        found = self._connection.execute(
            "SELECT 1 FROM aliases CROSS JOIN memories USING (seq)"
            " WHERE aliases.op = ? AND scope = ? AND kind = ?",
            (payload.get("op"), scope, payload.get("kind", "fact")),
        )
        return found.fetchone() is not None

    def _revision(self) -> int:
        """Take the next revision."""
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
    kept = {key: value for key, value in payload.items() if key != "terms"}
    for field in (TEXTS | NUMBERS) & kept.keys():
        fits = str if field in TEXTS else int | float
        value = kept[field]
        if value is not None and (not isinstance(value, fits) or isinstance(value, bool)):
            raise ValueError(f"the field {field} of a memory cannot be {value!r}")
    if "terms" not in payload:
        return kept, analysed(kept)
    given: Sequence[str] = payload["terms"]
    return kept, encoded(given) if given else None


def word_count(text: str | None) -> int:
    """The number of words in a row's index text."""
    return len(text.split(" ")) if text else 0


def _json(payload: Mapping[str, Any]) -> str:
    return json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
