"""Upgrades of memory's SQLite file, newer files, and a new analysis of words."""

import contextlib
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from graph.persistence import open_store
from memory.errors import MemoryStoreError
from memory.facts.sqlite import table as schema
from memory.facts.sqlite.table import SqliteTable
from memory.text.analysis import terms
from tests.support.facts import running
from tests.support.homes import folder_in
from tests.support.tables import direction, near, payload, put, scope, worded

Patch = pytest.MonkeyPatch

STEP = """
from memory.facts.sqlite import table as schema
schema.UPGRADES = ("ALTER TABLE memories ADD COLUMN note TEXT;\\nUPDATE memories SET note = seq",)
schema.ANALYSIS_VERSION = 1_000
"""
"""A made-up upgrade of the tables, together with a new analysis of words."""

OPEN = f"""
import sys, time
from pathlib import Path
from memory.facts.sqlite import table as schema
from memory.facts.sqlite.table import SqliteTable
{STEP}
print("ready", flush=True)
while not Path(sys.argv[2]).exists():
    time.sleep(0.001)
table = SqliteTable(Path(sys.argv[1]), model="words", dimension=8)
print(table.count({{}}), len(table.keywords(["fact"], {{"user_id": "ana"}}, 10_000)), flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    table = SqliteTable(tmp_path / "facts.db", model="words", dimension=8)
    with table.transaction():
        for number in range(1_500):
            put(table, "ana", f"{number}", f"fact {number}")
    table.close()
    return tmp_path / "facts.db"


def value(path: Path, query: str) -> object:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchone()[0]


async def test_an_index_of_an_earlier_state_of_this_version_is_dropped(tmp_path: Path) -> None:
    """Each write was noted for it, and it had the words of what a forget erases."""
    home = folder_in(tmp_path)
    files = {"memories": home.facts_db, "store": home.store_db}
    for again in range(2):
        home.open_facts().close()
        async with open_store(home):
            pass
        for table, file in files.items():
            with contextlib.closing(sqlite3.connect(file)) as connection:
                left = connection.execute(
                    "SELECT name FROM sqlite_master WHERE name LIKE '%mentions' OR type = 'trigger'"
                ).fetchall()
                assert left == []
                if not again:
                    connection.execute(f"CREATE VIRTUAL TABLE {table}_mentions USING fts5 (words)")
                    connection.execute(f"CREATE TABLE {table}_unread (number INTEGER PRIMARY KEY)")
                    connection.execute(
                        f"CREATE TRIGGER {table}_INSERT AFTER INSERT ON {table}"
                        f" BEGIN INSERT INTO {table}_unread VALUES (new.rowid); END"
                    )


def ready(opener: subprocess.Popen[str]) -> None:
    assert opener.stdout is not None
    assert opener.stdout.readline() == "ready\n"


def test_an_upgrade_keeps_the_rows_and_is_counted(path: Path, monkeypatch: Patch) -> None:
    step = "ALTER TABLE memories ADD COLUMN note TEXT;\nUPDATE memories SET note = seq"
    monkeypatch.setattr(schema, "UPGRADES", (step,))
    for _ in range(2):
        table = SqliteTable(path, model="words", dimension=8)
        assert worded(table, "ana", "7") == ["ana-7"]
        assert table.count({"kind": "fact"}) == value(path, "SELECT count(note) FROM memories")
        table.close()
    assert value(path, "PRAGMA user_version") == schema.FIRST_VERSION + 1


def test_a_failed_upgrade_changes_nothing(path: Path, monkeypatch: Patch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(schema, "UPGRADES", ("DELETE FROM memories;\nDELETE FROM no_such",))
        with pytest.raises(MemoryStoreError, match="no_such"):
            SqliteTable(path, model="words", dimension=8)
    table = SqliteTable(path, model="words", dimension=8)
    assert table.count({}) == 1_500
    table.close()


def test_processes_that_upgrade_a_file_at_once_change_it_once(path: Path) -> None:
    go = path.with_name("go")
    with contextlib.ExitStack() as stack:
        openers = [stack.enter_context(running(OPEN, str(path), str(go))) for _ in range(3)]
        for opener in openers:
            ready(opener)
        go.touch()
        told = [opener.communicate(timeout=60) for opener in openers]
    assert [out for out, _ in told] == ["1500 1500\n"] * 3, told


def test_a_process_killed_during_an_upgrade_leaves_the_file_whole(path: Path) -> None:
    for number, wait in enumerate((0.0, 0.02, 0.05, 0.1)):
        go = path.with_name(f"go{number}")
        with running(OPEN, str(path), str(go)) as opener:
            ready(opener)
            go.touch()
            time.sleep(wait)
    with running(OPEN, str(path), str(go)) as opener:
        ready(opener)
        out, _ = opener.communicate(timeout=60)
    assert out == "1500 1500\n"
    assert value(path, "SELECT count(*) FROM memories WHERE note = seq") == 1_500


def test_a_file_from_before_the_first_release_is_refused(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "facts.db")) as connection:
        connection.execute("CREATE TABLE facts (seq INTEGER PRIMARY KEY)")
    with pytest.raises(MemoryStoreError, match="before the first release"):
        SqliteTable(tmp_path / "facts.db", model="words", dimension=8)


def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    SqliteTable(path, model="words", dimension=8).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(MemoryStoreError, match=r"newer Circadian .*update Circadian"):
        SqliteTable(path, model="words", dimension=8)


def test_a_new_analysis_rebuilds_the_word_index(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr("memory.facts.sqlite.indexes.CHUNK", 3)
    path = tmp_path / "facts.db"
    table = SqliteTable(path, model="words", dimension=8)
    for number in range(8):
        put(table, "ana", f"{number}", f"fox number{number}")
    put(table, "ana", "hidden", "fox", terms=[])
    put(table, "ben", "0", "fox", terms=["hound"])
    table.close()
    monkeypatch.setattr(schema, "ANALYSIS_VERSION", 1_000)
    monkeypatch.setattr("memory.facts.sqlite.indexes.terms_of", lambda text: [f"{text[:3]}!"])
    changed = SqliteTable(path, model="words", dimension=8)
    assert worded(changed, "ana", "fox!") == [f"ana-{number}" for number in range(8)]
    assert (worded(changed, "ben", "fox!"), worded(changed, "ben", "hound")) == (["ben-0"], [])
    assert worded(changed, "ana", "fox", *terms("number3")) == []
    assert len(near(changed, direction(1.0), "ana")) == 9
    changed.update("ana-0", None, payload("ana", "0", "owl"))
    changed.delete({**scope("ana"), "op": "1"})
    assert worded(changed, "ana", "fox!", "owl!") == ["ana-0", *(f"ana-{n}" for n in range(2, 8))]
    changed.close()
