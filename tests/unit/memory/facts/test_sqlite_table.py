"""The table of memories in its SQLite file: its indexes, its durability, other processes."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory.errors import MemoryStoreError
from memory.facts.sqlite.indexes import ROOM, VectorIndex, WordIndex
from memory.facts.sqlite.table import SqliteTable
from memory.facts.table import MAX_QUERY_WORDS, Listing
from memory.text.analysis import terms
from tests.support.facts import acknowledged, running
from tests.support.tables import (
    DIMENSION,
    MODEL,
    direction,
    ids,
    near,
    nearest,
    payload,
    put,
    scope,
    worded,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "facts.db"


@pytest.fixture
def table(path: Path) -> Iterator[SqliteTable]:
    opened = SqliteTable(path, model=MODEL, dimension=DIMENSION)
    yield opened
    opened.close()


def indexed(path: Path, word: str) -> int:
    """How many texts with `word` the word indexes hold, whatever the table holds."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        numbers = connection.execute("SELECT number FROM scopes").fetchall()
        tables = [f"words_{number}" for (number,) in numbers]
        for name in tables:
            connection.execute(f"INSERT INTO {name} ({name}) VALUES ('integrity-check')")
        return sum(
            connection.execute(f"SELECT count(*) FROM {name} (?)", (word,)).fetchone()[0]
            for name in tables
        )


def test_the_word_index_holds_what_the_rows_have_and_no_more(
    table: SqliteTable, path: Path
) -> None:
    put(table, "ana", "a", "red fox")
    put(table, "ana", "b", "a fox\x00 and a nul, and ünïcode")
    table.update("ana-a", None, payload("ana", "a", "blue whale", importance=3))
    assert (indexed(path, "fox"), indexed(path, "whal")) == (1, 1)
    with contextlib.suppress(KeyError), table.transaction():
        put(table, "ana", "half", "green owl")
        put(table, "cleo", "half", "green owl")
        raise KeyError
    assert indexed(path, "owl") == 0
    table.delete({})
    assert (indexed(path, "fox"), indexed(path, "whal")) == (0, 0)


@pytest.mark.parametrize(
    "query",
    ['"', "fox OR", 'fox" OR "', "NEAR(fox", "text:fox", "fox*", "-fox", "^fox", "(fox", "fox\x00"],
)
def test_a_query_is_words_and_never_syntax(table: SqliteTable, query: str) -> None:
    put(table, "ana", "a", "a red fox")
    assert worded(table, "ana", *terms(query)) == (["ana-a"] if "fox" in query else [])
    assert worded(table, "ana", query) == []


def test_a_very_long_query_is_cut(table: SqliteTable) -> None:
    put(table, "ana", "a", f"word{MAX_QUERY_WORDS - 1}")
    put(table, "ana", "b", f"word{MAX_QUERY_WORDS}")
    assert worded(table, "ana", *(f"word{one}" for one in range(5_000))) == ["ana-a"]


def test_the_vector_index_takes_in_only_what_changed_since(
    table: SqliteTable, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.facts.sqlite.indexes.CHUNK", 7)
    for number in range(30):
        put(table, "ana", str(number))
    taken: list[int] = []
    add = VectorIndex.add

    def counted(self: VectorIndex, seqs: Any, vectors: Any) -> None:
        taken.append(len(seqs))
        add(self, seqs, vectors)

    monkeypatch.setattr(VectorIndex, "add", counted)
    assert len(near(table, direction(1.0), "ana", 99)) == 30
    assert taken == [7, 7, 7, 7, 2]
    other = SqliteTable(path, model=MODEL, dimension=DIMENSION)
    put(other, "ben", "0")
    assert len(near(table, direction(1.0), "ana", 99)) == 30
    put(other, "ana", "new", vector=direction(0.0, 1.0))
    other.update("ana-3", direction(0.0, 1.0), None)
    other.delete({"id": "ana-4"})
    other.close()
    assert near(table, direction(0.0, 1.0), "ana", 2) == ["ana-3", "ana-new"]
    assert len(near(table, direction(0.0, 1.0), "ana", 99)) == 30
    assert taken == [7, 7, 7, 7, 2, 2]


def test_a_search_of_one_kind_compares_no_vector_of_another(
    table: SqliteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(table, "ana", "a")
    put(table, "ana", "b", kind="episode")
    compared: list[int] = []
    find = np.vecdot

    def counted(rows: Any, vector: Any) -> Any:
        compared.append(len(rows))
        return find(rows, vector)

    monkeypatch.setattr(np, "vecdot", counted)
    wanted = {**scope("ana"), "kind": "fact"}
    assert ids(nearest(table, direction(1.0), wanted, 9)) == ["ana-a"]
    assert near(table, direction(1.0), "ana") == ["ana-a", "ana-b"]
    assert compared == [1, 1, 1]


def test_rows_beyond_the_index_s_room_and_after_removals_are_the_right_ones() -> None:
    drawn = np.random.default_rng(1)
    vectors = drawn.standard_normal((3 * ROOM, DIMENSION)).astype(np.float32) / np.float32(20)
    index, seqs = VectorIndex(DIMENSION), np.arange(3 * ROOM)
    for some in np.split(seqs, [1, ROOM, ROOM + 7]):
        index.add(some, vectors[some])
    gone = drawn.choice(seqs, ROOM, replace=False)
    index.remove(np.append(gone, [10 * ROOM]))
    left = np.setdiff1d(seqs, gone)
    order = left[np.argsort(-(vectors[left] @ vectors[0]))]
    every = np.ones(len(left), dtype=np.bool_)
    [alone] = index.search([vectors[0]], every, 50)
    assert [seq for seq, _ in alone] == order[:50].tolist()


def test_the_newest_rows_are_listed_without_sorting_all(table: SqliteTable) -> None:
    for number in range(20):
        put(table, "ana", str(number), kind="episode" if number % 2 else "fact")
    wanted = Listing({**scope("ana"), "kind": "fact"}, limit=3)
    table.listed(wanted)
    statements: list[str] = []
    put(table, "ana", "20")
    table._connection.set_trace_callback(statements.append)
    rows, total = table.listed(wanted)
    assert (ids(rows), total) == (["ana-20", "ana-18", "ana-16"], 11)
    read = [one for one in statements if "kind = " in one]
    assert ["rev > " in one for one in read] == [True], statements


def test_words_are_looked_up_once_and_then_in_what_changed(
    table: SqliteTable, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, postings = list[str](), WordIndex.postings

    def noted(index: WordIndex, number: int, words: list[str]) -> list[Any]:
        read.extend(words)
        return postings(index, number, words)

    for number in range(9):
        put(table, "ana", str(number), f"fox {'owl ' * (number % 3)}{'hen ' * (number % 4)}")
    monkeypatch.setattr(WordIndex, "postings", noted)
    changes: list[Callable[[], object]] = [
        lambda: None,
        lambda: put(table, "ana", "a", "fox fox owl elk"),
        lambda: table.update("ana-1", None, payload("ana", "1", "hen hen hen")),
        lambda: table.update("ana-2", None, payload("ana", "2", "fox elk", importance=3)),
        lambda: table.set_vectors({"ana-3": direction(1)}),
    ]
    for change in changes:
        change()
        found = table.keywords(["fox", "owl", "hen", "elk"], scope("ana"), 20)
        assert sorted(read) == ["elk", "fox", "hen", "owl"]
        with contextlib.closing(SqliteTable(path, model=MODEL, dimension=DIMENSION)) as other:
            read.clear()
            assert other.keywords(["fox", "owl", "hen", "elk"], scope("ana"), 20) == found
    read.clear()
    table.delete({"op": "4"})
    assert "ana-4" not in ids(row for row, _ in table.keywords(["fox", "hen"], scope("ana"), 20))
    assert sorted(read) == ["fox", "hen"]  # the places of all texts behind it are others


def test_a_filter_is_looked_up_once_and_then_for_what_changed(
    table: SqliteTable, path: Path
) -> None:
    for number in range(20):
        put(table, "ana", str(number), speaker="Ana")
    statements: list[str] = []
    wanted = {**scope("ana"), "speaker": "Ana"}
    ids(nearest(table, direction(1.0), wanted, 99))
    table._connection.set_trace_callback(statements.append)
    assert len(nearest(table, direction(1.0), wanted, 99)) == 20
    assert not any("json_group_array" in one for one in statements)
    put(table, "ana", "more", speaker="Ana")
    table.update("ana-3", None, payload("ana", "3", speaker="Ben"))
    table.delete({"id": "ana-4"})
    statements.clear()
    found = ids(nearest(table, direction(1.0), wanted, 99))
    assert set(found) == {f"ana-{one}" for one in (*range(20), "more")} - {"ana-3", "ana-4"}
    read = [one for one in statements if "json_group_array" in one]
    assert read
    assert all("rev >" in one for one in read)


def test_an_index_kept_in_step_answers_as_one_made_anew(table: SqliteTable, path: Path) -> None:
    random = np.random.default_rng(7)
    for number in range(30):
        put(table, "ana", str(number), f"word{number}", direction(*random.normal(size=8)))
        if number % 3 == 0:
            table.update(f"ana-{number // 2}", direction(*random.normal(size=8)), None)
        if number % 7 == 0:
            table.delete({"id": f"ana-{number // 3}"})
        near(table, direction(1.0), "ana"), worded(table, "ana", "word1")
    query = direction(*random.normal(size=8))
    fresh = SqliteTable(path, model=MODEL, dimension=DIMENSION)
    kept = nearest(table, query, scope("ana"), 99)
    assert kept == nearest(fresh, query, scope("ana"), 99)
    assert len(kept) == table.count({}) == 25
    asked = [f"word{number}" for number in range(30)]
    assert table.keywords(asked, scope("ana"), 99) == fresh.keywords(asked, scope("ana"), 99)
    fresh.close()


def test_a_write_is_on_the_disk_before_it_is_acknowledged(table: SqliteTable) -> None:
    assert table._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert table._connection.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"


def test_after_a_scrub_no_file_has_a_removed_text_in_it(table: SqliteTable, tmp_path: Path) -> None:
    for number in range(300):
        put(table, "ana", str(number), f"filler{number} and more of it", speaker=f"P{number}")
        if number == 150:
            put(table, "ana", "secret", "zebracrossing passphrase", speaker="Mallory")
            put(table, "ana", "changed", "zebracrossing passphrase", speaker="Mallory")
    table.alias("ana-secret", "op-zebracrossing")
    table.update("ana-changed", None, payload("ana", "changed", "nothing now"))
    table.delete({"id": "ana-secret"})
    table.scrub()
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        # Stems, as the word index has them.
        for trace in (b"zebracross", b"passphra", b"Mallory", b"ana-secret"):
            assert trace not in content, (file, trace)
    assert worded(table, "ana", "filler299") == ["ana-299"]
    assert table.count({}) == 301


def test_a_scrub_clears_what_an_earlier_version_left_in_free_pages(
    table: SqliteTable, path: Path
) -> None:
    put(table, "ana", "a", "red fox")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA secure_delete = OFF")
        other.execute("CREATE TABLE secrets (text)")
        other.execute("INSERT INTO secrets VALUES (?)", ("passphrase " * 9_999,))
        other.execute("DROP TABLE secrets")
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert b"passphrase" in path.read_bytes()
    table.scrub()
    assert b"passphrase" not in path.read_bytes()


def test_a_scrub_that_another_process_hinders_says_so(
    table: SqliteTable, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(table, "ana", "a")
    table._connection.execute("PRAGMA busy_timeout = 50")
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM memories").fetchone()
        put(table, "ana", "b")
        with pytest.raises(MemoryStoreError, match="another process"):
            table.scrub()
    table.scrub()
    assert table.count({}) == 2


def test_of_a_removed_row_nothing_is_left_but_its_number(table: SqliteTable, path: Path) -> None:
    put(table, "ana", "a", "red fox")
    table.alias("ana-a", "b")
    table.delete({"id": "ana-a"})
    for name, left in (("memories", 0), ("vectors", 0), ("aliases", 0), ("removed", 1)):
        assert table._value(f"SELECT count(*) FROM {name}") == left
    assert indexed(path, "fox") == 0


def test_a_search_inside_a_write_that_is_rolled_back_leaves_nothing(table: SqliteTable) -> None:
    put(table, "ana", "before", "red fox")
    near(table, direction(1.0), "ana")
    wanted = {**scope("ana"), "speaker": "Ana"}
    with contextlib.suppress(KeyError), table.transaction():
        put(table, "ana", "half", "blue whale", speaker="Ana")
        put(table, "ben", "half", "blue whale")
        table.delete({"id": "ana-before"})
        for user in ("ana", "ben"):
            found = near(table, direction(1.0), user)
            assert found == worded(table, user, "fox", "whal") == [f"{user}-half"]
        assert len(nearest(table, direction(1.0), wanted, 5)) == 1
        raise KeyError
    put(table, "ana", "other", "green owl")
    put(table, "cleo", "whole", "green owl")
    assert near(table, direction(1.0), "ana") == ["ana-before", "ana-other"]
    assert worded(table, "ana", "fox", "whal", "owl") == ["ana-before", "ana-other"]
    assert nearest(table, direction(1.0), wanted, 5) == []
    assert near(table, direction(1.0), "cleo") == worded(table, "cleo", "owl") == ["cleo-whole"]
    assert near(table, direction(1.0), "ben") == []


def test_what_goes_wrong_with_the_file_is_one_error_that_names_it(table: SqliteTable) -> None:
    put(table, "ana", "a", "red fox")
    table._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(MemoryStoreError, match=r"facts\.db: attempt to write"):
        put(table, "ana", "b")
    table._connection.execute("PRAGMA query_only = OFF")
    put(table, "ana", "b")
    assert ids(table.select({})) == ["ana-a", "ana-b"]


WRITER = """
import sys
from pathlib import Path
from memory.facts.sqlite.table import SqliteTable
table, name = SqliteTable(Path(sys.argv[1]), model="words", dimension=8), sys.argv[2]
for number in range(100_000):
    ids = {"user_id": "ana", "agent_id": "agent", "op": f"{name}-{number}"}
    table.insert(f"{name}-{number}", None, {"data": f"fact {number}", **ids})
    print(number, flush=True)
"""


def test_many_processes_may_make_the_file_at_once(path: Path) -> None:
    with contextlib.ExitStack() as stack:
        arguments = [(str(path), f"w{one}") for one in range(4)]
        writers = [stack.enter_context(running(WRITER, *one)) for one in arguments]
        for writer in writers:
            assert len(acknowledged(writer, 3)) >= 3


def test_the_indexes_of_the_agents_searched_last_are_kept_in_memory(
    table: SqliteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.facts.sqlite.table.SCOPES_IN_MEMORY", 2)
    for user in ("ana", "ben", "cleo"):
        put(table, user, "a")
    for _ in range(2):
        for user in ("ana", "ben", "cleo"):
            assert near(table, direction(1.0), user) == worded(table, user, "text") == [f"{user}-a"]
    assert list(table._indexes) == [2, 3]
