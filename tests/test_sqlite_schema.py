"""Files of an earlier form, of a later one, and with words as an earlier analysis cut them."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from memory.analysis import terms
from memory.errors import MemoryStoreError
from memory.vectorstore.sqlite import SqliteTable
from memory.vectorstore.vectors import unit
from tests.facts import ANA, DIMENSION, draft, memory_at, running, vector_of
from tests.tables import direction, near, payload, put, scope, worded

FIRST_FORM = """
CREATE TABLE facts (
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
CREATE UNIQUE INDEX facts_op ON facts (user_id, agent_id, op);
CREATE INDEX facts_scope ON facts (user_id, agent_id, invalid_at);
CREATE UNIQUE INDEX facts_rev ON facts (rev);
CREATE TABLE removed (rev INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
CREATE TABLE clock (one INTEGER PRIMARY KEY CHECK (one = 1), rev INTEGER NOT NULL);
CREATE TABLE scopes (number INTEGER PRIMARY KEY, user_id TEXT, agent_id TEXT);
CREATE VIRTUAL TABLE words_1 USING fts5(text, content='', tokenize='porter unicode61');
INSERT INTO scopes VALUES (1, 'ana', 'thread-1');
INSERT INTO removed VALUES (9999, 77);
"""


def first_form(path: Path, texts: list[str]) -> None:
    """A file as it was made before there were kinds and models, with a fact for each text."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(FIRST_FORM)
        for number, text in enumerate(texts, start=1):
            record = {k: v for k, v in draft(f"op-{number}", text).items() if k != "text"}
            kept = {
                **record,
                **dict.fromkeys(("invalid_at", "superseded_by")),
                **dict.fromkeys(("data", "text_lemmatized"), text),
                "user_id": "ana",
                "agent_id": "thread-1",
                "created_at": record["created"],
            }
            vector = unit(vector_of(text), DIMENSION).tobytes()
            row = (number, number, f"id-{number}", vector, json.dumps(kept))
            connection.execute(
                "INSERT INTO facts (seq, rev, id, vector, payload) VALUES (?, ?, ?, ?, ?)", row
            )
            connection.execute("INSERT INTO words_1 (rowid, text) VALUES (?, ?)", (number, text))
        connection.execute("INSERT INTO clock VALUES (1, ?)", (len(texts),))
        connection.commit()


async def test_facts_of_the_first_form_are_facts_still(tmp_path: Path) -> None:
    first_form(tmp_path / "facts.db", ["red fox", "blue whale \U0001f40b"])
    memory = memory_at(tmp_path)
    facts = await memory.all(ANA)
    assert [(fact["id"], fact["text"], fact["op"]) for fact in facts] == [
        ("id-1", "red fox", "op-1"),
        ("id-2", "blue whale \U0001f40b", "op-2"),
    ]
    assert (facts[0]["access_count"], facts[0]["last_access"]) == (0, None)
    [(near_one, score)] = await memory.search(ANA, "red fox", 1)
    assert (near_one, round(score, 3)) == (facts[0], 1.0)
    assert [one for one, _ in await memory.keywords(ANA, "whales", 5)] == [facts[1]]
    assert await memory.count_unembedded() == 0
    [same, new] = await memory.add(ANA, [draft("op-1", "x"), draft("op-3", "green owl")])
    assert (same, await memory.count(ANA)) == (facts[0], 3)
    again = draft("op-4", "Red  fox", source_entries=["entry_op-1"], source_events=["event_op-1"])
    assert await memory.add(ANA, [again]) == [facts[0]]
    memory.close()
    memory = memory_at(tmp_path)
    assert await memory.all(ANA) == [*facts, new]
    memory.close()


def test_vectors_of_the_first_form_are_the_embedders_in_use(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    first_form(path, ["red fox"])
    table = SqliteTable(path, model="another", dimension=DIMENSION + 1)
    assert table.count_unembedded({}) == 1
    assert worded(table, "ana", "fox") == []
    ids = {"user_id": "ana", "agent_id": "thread-1"}
    assert [row.id for row, _ in table.keywords(["fox"], {**ids, "kind": "fact"}, 5)] == ["id-1"]
    table.close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert not names & {"facts", "first_facts", "facts_op", "facts_rev", "facts_scope"}


OPEN = """
import sys, time
from pathlib import Path
from memory.vectorstore.sqlite import SqliteTable
print("ready", flush=True)
while not Path(sys.argv[2]).exists():
    time.sleep(0.001)
table = SqliteTable(Path(sys.argv[1]), model="words", dimension=64)
print(table.count({}), len(table.keywords(["fact"], {"user_id": "ana"}, 10_000)), flush=True)
"""


def ready(opener: subprocess.Popen[str]) -> None:
    """Wait until it would open the file."""
    assert opener.stdout is not None
    assert opener.stdout.readline() == "ready\n"


def test_processes_that_open_an_old_file_at_once_change_it_once(tmp_path: Path) -> None:
    path, go = tmp_path / "facts.db", tmp_path / "go"
    first_form(path, [f"fact {number}" for number in range(400)])
    with contextlib.ExitStack() as stack:
        openers = [stack.enter_context(running(OPEN, str(path), str(go))) for _ in range(3)]
        for one in openers:
            ready(one)
        go.touch()
        said = [one.communicate(timeout=60) for one in openers]
    assert [out for out, _ in said] == ["400 400\n"] * 3, said


def test_a_process_killed_while_it_changes_an_old_file_leaves_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    first_form(path, [f"fact {number}" for number in range(1_500)])
    for number, wait in enumerate((0.0, 0.02, 0.05, 0.1)):
        go = tmp_path / f"go{number}"
        with running(OPEN, str(path), str(go)) as opener:
            ready(opener)
            go.touch()
            time.sleep(wait)
    table = SqliteTable(path, model="words", dimension=DIMENSION)
    assert table.count({"kind": "fact"}) == table.count({}) == 1_500
    assert len(table.keywords(["fact"], {"user_id": "ana"}, 10_000)) == 1_500
    table.close()


def test_a_file_of_a_later_form_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    SqliteTable(path, model="words", dimension=8).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(MemoryStoreError, match=r"newer Circadian .*update Circadian"):
        SqliteTable(path, model="words", dimension=8)


def test_words_are_cut_anew_when_the_analysis_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.vectorstore.schema.CHUNK", 3)
    path = tmp_path / "facts.db"
    table = SqliteTable(path, model="words", dimension=8)
    for number in range(8):
        put(table, "ana", f"{number}", f"fox number{number}")
    put(table, "ana", "hidden", "fox", terms=[])
    put(table, "ben", "0", "fox", terms=["hound"])
    table.close()
    monkeypatch.setattr("memory.vectorstore.schema.ANALYSIS_VERSION", 1_000)
    monkeypatch.setattr("memory.vectorstore.rows.terms", lambda text: [f"{text[:3]}!"])
    changed = SqliteTable(path, model="words", dimension=8)
    assert worded(changed, "ana", "fox!") == [f"ana-{number}" for number in range(8)]
    assert (worded(changed, "ben", "fox!"), worded(changed, "ben", "hound")) == (["ben-0"], [])
    assert worded(changed, "ana", "fox", *terms("number3")) == []
    assert len(near(changed, direction(1.0), "ana")) == 9
    changed.update("ana-0", None, payload("ana", "0", "owl"))
    changed.delete({**scope("ana"), "op": "1"})
    assert worded(changed, "ana", "fox!", "owl!") == ["ana-0", *(f"ana-{n}" for n in range(2, 8))]
    changed.close()
