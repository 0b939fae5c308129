"""The facts table, its index, and the store that Mem0 sees."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from memory.errors import MemoryStoreError
from memory.semantic import settle_mem0
from memory.vectorstore.faiss_index import FactsIndex, unit
from memory.vectorstore.sqlite import FactsDb
from memory.vectorstore.words import MAX_QUERY_WORDS, match_expression
from tests.facts import acknowledged, running

DIMENSION = 8
RNG_SEED = 7


def payload(user: str, op: str, text: str, **fields: Any) -> dict[str, Any]:
    ids = {"user_id": user, "agent_id": "agent", "op": op}
    return {"data": text, "invalid_at": None, **ids, **fields}


def scope(user: str) -> dict[str, object]:
    return {"user_id": user, "agent_id": "agent"}


def direction(*numbers: float) -> list[float]:
    return [*numbers, *[0.0] * (DIMENSION - len(numbers))]


def put(
    db: FactsDb,
    user: str,
    op: str,
    text: str = "text",
    vector: list[float] | None = None,
    **fields: Any,
) -> None:
    blob = unit(vector or direction(1.0), DIMENSION).tobytes()
    db.insert(f"{user}-{op}", blob, payload(user, op, text, **fields))


@pytest.fixture
def db(tmp_path: Path) -> Iterator[FactsDb]:
    opened = FactsDb(tmp_path / "facts.db")
    yield opened
    opened.close()


@pytest.fixture
def index(db: FactsDb) -> FactsIndex:
    return FactsIndex(db, DIMENSION)


@pytest.fixture
def vectors(tmp_path: Path) -> ModuleType:
    settle_mem0(tmp_path / "mem0")
    from memory.vectorstore import mem0_store as vectors

    return vectors


@pytest.fixture
def store(vectors: ModuleType, db: FactsDb, index: FactsIndex) -> Any:
    return vectors.SQLiteFaissStore(
        collection_name="facts", db=db, index=index, embedding_model_dims=DIMENSION
    )


def found(index: FactsIndex, vector: list[float], user: str, limit: int = 10) -> list[str]:
    return [row.id for row, _ in index.search(vector, scope(user), limit)]


def worded(db: FactsDb, query: str, user: str = "ana", **filters: object) -> list[str]:
    return [row.id for row, _ in db.keywords(query, {**scope(user), **filters}, 10)]


def indexed(path: Path, word: str) -> int:
    """How many texts with `word` the word indexes hold, whatever the table holds."""
    with sqlite3.connect(path) as connection:
        numbers = connection.execute("SELECT number FROM scopes").fetchall()
        tables = [f"words_{number}" for (number,) in numbers]
        for table in tables:
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
        counts = [
            connection.execute(f"SELECT count(*) FROM {table} (?)", (word,)).fetchone()[0]
            for table in tables
        ]
    connection.close()
    return sum(counts)


def test_what_mem0_puts_in_comes_out(store: Any) -> None:
    store.insert(
        [direction(1.0), direction(0.0, 1.0)],
        ids=["one", "two"],
        payloads=[payload("ana", "a", "red fox"), payload("ana", "b", "blue whale")],
    )
    assert store.get("one").payload["data"] == "red fox"
    assert [one.id for one in store.search("", direction(0.1, 1.0), 5, scope("ana"))] == [
        "two",
        "one",
    ]
    assert [one.id for one in store.keyword_search("whales", 5, scope("ana"))] == ["two"]
    assert [one.id for one in store.list(scope("ana"))[0]] == ["one", "two"]
    assert [one.id for one in store.list(scope("ana"), top_k=1)[0]] == ["one"]
    assert store.list_cols() == ["facts"]
    assert store.col_info() == {"name": "facts", "count": 2, "dimension": 8, "distance": "cosine"}


def test_an_update_changes_one_row_and_a_deletion_removes_one(store: Any) -> None:
    rows = [payload("ana", op, f"text {op}") for op in "abc"]
    store.insert([direction(1.0)] * 3, payloads=rows, ids=["one", "two", "three"])
    store.update("two", vector=direction(0.0, 1.0))
    store.update("three", payload=payload("ana", "c", "other words"))
    store.delete("one")
    assert store.get("one") is None
    assert store.get("two").payload["data"] == "text b"
    hits = store.search("", direction(0.0, 1.0), 5, scope("ana"))
    assert [(one.id, round(one.score, 3)) for one in hits] == [("two", 1.0), ("three", 0.0)]
    assert [one.id for one in store.keyword_search("words", 5, scope("ana"))] == ["three"]
    assert [one.id for one in store.keyword_search("text", 5, scope("ana"))] == ["two"]


def test_a_reset_leaves_an_empty_collection_that_works(store: Any) -> None:
    store.insert([direction(1.0)], payloads=[payload("ana", "a", "text")], ids=["one"])
    store.reset()
    assert store.list()[0] == []
    assert store.search("", direction(1.0), 5, scope("ana")) == []
    store.insert([direction(1.0)], payloads=[payload("ana", "a", "text")], ids=["two"])
    assert found(store._index, direction(1.0), "ana") == ["two"]


def test_there_is_one_collection_of_one_dimension(store: Any, vectors: ModuleType) -> None:
    store.create_col("facts", DIMENSION, "cosine")
    with pytest.raises(ValueError, match="8, cosine"):
        store.create_col("facts", DIMENSION + 1, "cosine")
    with pytest.raises(ValueError, match="one collection"):
        vectors.SQLiteFaissStore(
            collection_name="facts_entities", db=None, index=None, embedding_model_dims=DIMENSION
        )


def test_rows_of_one_insert_are_written_together_or_not_at_all(store: Any) -> None:
    rows = [payload("ana", "a", "text"), payload("ana", "b", "text")]
    with pytest.raises(MemoryStoreError):
        store.insert([direction(1.0), [1.0]], payloads=rows, ids=["one", "two"])
    assert store.col_info()["count"] == 0


def test_a_thousand_nearer_facts_of_another_user_take_nobodys_place(
    db: FactsDb, index: FactsIndex
) -> None:
    random = np.random.default_rng(RNG_SEED)
    with db.transaction():
        for number in range(1_000):
            near = direction(1.0) + random.normal(0, 0.01, DIMENSION)
            put(db, "ana", str(number), vector=list(near))
        for number in range(20):
            put(db, "ben", str(number), vector=direction(0.0, 1.0, number / 20))
    assert len(found(index, direction(1.0), "ben", 5)) == 5
    assert len(found(index, direction(1.0), "ben", 20)) == 20
    assert all(one.startswith("ben-") for one in found(index, direction(1.0), "ben", 100))


def test_a_fact_that_no_longer_holds_takes_nobodys_place(db: FactsDb, index: FactsIndex) -> None:
    put(db, "ana", "old", vector=direction(1.0), invalid_at="2026-03-02")
    put(db, "ana", "new", vector=direction(1.0, 1.0))
    holding = {**scope("ana"), "invalid_at": None}
    assert [row.id for row, _ in index.search(direction(1.0), holding, 1)] == ["ana-new"]
    assert [row.id for row, _ in index.search(direction(1.0), scope("ana"), 1)] == ["ana-old"]


def test_an_operation_applied_twice_is_one_fact(db: FactsDb, index: FactsIndex) -> None:
    put(db, "ana", "a", "first")
    db.insert(
        "another-id", unit(direction(1.0), DIMENSION).tobytes(), payload("ana", "a", "second")
    )
    put(db, "ben", "a", "the same operation elsewhere")
    assert [row.payload["data"] for row in db.select(scope("ana"))] == ["first"]
    assert found(index, direction(1.0), "ana") == ["ana-a"]
    assert worded(db, "second") == []
    assert db.count({}) == 2


def test_the_index_reads_only_what_changed_since(
    db: FactsDb, index: FactsIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        put(db, "ana", str(number))
    found(index, direction(1.0), "ana")
    read: list[int] = []
    changes = db.changes
    monkeypatch.setattr(db, "changes", lambda since, limit: _counted(changes(since, limit), read))
    put(db, "ana", "new", vector=direction(0.0, 1.0))
    assert found(index, direction(0.0, 1.0), "ana", 1) == ["ana-new"]
    assert found(index, direction(0.0, 1.0), "ana", 1) == ["ana-new"]
    assert read == [1, 0]


def _counted(changes: list[Any], read: list[int]) -> list[Any]:
    read.append(len(changes))
    return changes


def test_what_another_process_writes_changes_and_removes_is_seen(
    db: FactsDb, index: FactsIndex, tmp_path: Path
) -> None:
    put(db, "ana", "mine")
    assert found(index, direction(1.0), "ana") == ["ana-mine"]
    other = FactsDb(tmp_path / "facts.db")
    put(other, "ana", "theirs", vector=direction(0.0, 1.0))
    assert found(index, direction(0.0, 1.0), "ana") == ["ana-theirs", "ana-mine"]
    other.update("ana-mine", unit(direction(0.0, 0.0, 1.0), DIMENSION).tobytes(), None)
    assert found(index, direction(0.0, 0.0, 1.0), "ana", 1) == ["ana-mine"]
    other.delete({"id": "ana-theirs"})
    assert found(index, direction(0.0, 1.0), "ana") == ["ana-mine"]
    other.close()


def test_a_rebuilt_index_answers_as_the_one_kept_in_step(
    db: FactsDb, index: FactsIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.vectorstore.faiss_index.CHUNK", 7)
    random = np.random.default_rng(RNG_SEED)
    for number in range(30):
        put(db, "ana", str(number), vector=list(random.normal(size=DIMENSION)))
        if number % 3 == 0:
            blob = unit(list(random.normal(size=DIMENSION)), DIMENSION).tobytes()
            db.update(f"ana-{number // 2}", blob, None)
        if number % 7 == 0:
            db.delete({"id": f"ana-{number // 3}"})
        found(index, direction(1.0), "ana")
    query = list(random.normal(size=DIMENSION))
    kept = index.search(query, scope("ana"), 100)
    assert kept == FactsIndex(db, DIMENSION).search(query, scope("ana"), 100)
    assert len(kept) == db.count({}) == 25


def test_what_is_rolled_back_was_never_there(
    db: FactsDb, index: FactsIndex, tmp_path: Path
) -> None:
    put(db, "ana", "before", "red fox")
    with contextlib.suppress(KeyError), db.transaction():
        put(db, "ana", "half", "blue whale", vector=direction(0.0, 1.0))
        put(db, "ben", "half", "blue whale")
        db.delete({"id": "ana-before"})
        assert found(index, direction(0.0, 1.0), "ana") == []
        raise KeyError
    assert found(index, direction(0.0, 1.0), "ana") == ["ana-before"]
    assert (worded(db, "whale"), worded(db, "fox")) == ([], ["ana-before"])
    assert (indexed(tmp_path / "facts.db", "whale"), indexed(tmp_path / "facts.db", "fox")) == (
        0,
        1,
    )


def test_the_words_follow_every_change(db: FactsDb, tmp_path: Path) -> None:
    put(db, "ana", "a", "red fox")
    put(db, "ana", "b", "a fox\x00 and a nul, and ünïcode")
    db.update("ana-a", None, payload("ana", "a", "blue whale", importance=3))
    assert (worded(db, "fox"), worded(db, "whale")) == (["ana-b"], ["ana-a"])
    db.update("ana-a", None, payload("ben", "a", "blue whale"))
    assert (worded(db, "whale"), worded(db, "whale", "ben")) == ([], ["ana-a"])
    db.delete(scope("ana"))
    assert worded(db, "fox") == []
    assert (indexed(tmp_path / "facts.db", "fox"), indexed(tmp_path / "facts.db", "whale")) == (
        0,
        1,
    )


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "fox OR",
        'fox" OR "',
        "NEAR(fox",
        "text:fox",
        "fox*",
        "-fox",
        "^fox",
        "(fox AND",
        "fox\x00",
    ],
)
def test_a_query_is_words_and_never_syntax(db: FactsDb, query: str) -> None:
    put(db, "ana", "a", "a red fox")
    assert worded(db, query) == (["ana-a"] if "fox" in query else [])


def test_words_match_in_any_form_and_case(db: FactsDb) -> None:
    put(db, "ana", "a", "Ana paints boats")
    assert worded(db, "PAINTED a boat") == ["ana-a"]
    assert worded(db, "nothing of it") == []


def test_a_very_long_query_is_cut(db: FactsDb) -> None:
    put(db, "ana", "a", "word0")
    assert match_expression(" ".join(f"word{one}" for one in range(5_000))).count(" OR ") == (
        MAX_QUERY_WORDS - 1
    )
    assert worded(db, " ".join(f"word{one}" for one in range(5_000))) == ["ana-a"]


def test_the_facts_of_others_do_not_change_the_order_of_ones_own(db: FactsDb) -> None:
    put(db, "ana", "1", "rare common common")
    put(db, "ana", "2", "common other words")
    put(db, "ana", "3", "common and more words")
    before = db.keywords("rare common", scope("ana"), 10)
    for number in range(30):
        put(db, "ben", str(number), "rare rare words of somebody else")
    assert db.keywords("rare common", scope("ana"), 10) == before


def test_keywords_of_several_agents_come_best_first(db: FactsDb) -> None:
    told = {"x": ["fox", "fox"], "y": ["fox", "cat", "dog", "owl"]}
    for agent, facts in told.items():
        for op, text in enumerate(facts):
            ids = {"user_id": "ana", "agent_id": agent, "op": f"{op}"}
            db.insert(f"{agent}{op}", b"", {"data": text, **ids})
    assert [row.id for row, _ in db.keywords("fox", {"user_id": "ana"}, 10)] == ["y0", "x0", "x1"]
    assert [row.id for row, _ in db.keywords("fox", {"user_id": "ana"}, 1)] == ["y0"]


def test_filters_take_equality_and_lists_and_refuse_the_rest(db: FactsDb) -> None:
    put(db, "ana", "a", speaker="Ana")
    put(db, "ana", "b", speaker="Ben", settled=True)
    put(db, "ana", "c", speaker=None)
    assert [row.id for row in db.select({"speaker": ["Ana", "Ben"]})] == ["ana-a", "ana-b"]
    assert [row.id for row in db.select({"speaker": None})] == ["ana-c"]
    assert [row.id for row in db.select({"settled": True})] == ["ana-b"]
    assert db.select({"op": []}) == []
    for bad in ({"speaker": {"ne": "Ana"}}, {"OR": [{"speaker": "Ana"}]}, {'x"': 1}):
        with pytest.raises(ValueError, match="filter"):
            db.select(bad)


@pytest.mark.parametrize("vector", [[1.0], [float("nan")] * DIMENSION, [float("inf")] * DIMENSION])
def test_a_vector_of_another_dimension_or_of_no_numbers_is_refused(vector: list[float]) -> None:
    with pytest.raises(MemoryStoreError, match="embedder"):
        unit(vector, DIMENSION)


def test_a_zero_vector_is_like_nothing(db: FactsDb, index: FactsIndex) -> None:
    put(db, "ana", "a", vector=direction(0.0))
    assert [score for _, score in index.search(direction(1.0), scope("ana"), 1)] == [0.0]


def test_vectors_of_another_embedder_are_one_clear_error(db: FactsDb) -> None:
    put(db, "ana", "a")
    with pytest.raises(MemoryStoreError, match="dimension"):
        FactsIndex(db, DIMENSION - 1).search([1.0] * (DIMENSION - 1), scope("ana"), 1)


WRITER = """
import sys
from pathlib import Path
from memory.vectorstore.sqlite import FactsDb
db, name = FactsDb(Path(sys.argv[1])), sys.argv[2]
for number in range(100_000):
    ids = {"user_id": "ana", "agent_id": "agent", "op": f"{name}-{number}"}
    payload = {"data": f"fact {number}", **ids}
    with db.transaction():
        db.insert(f"{name}-{number}", bytes(32), payload)
        if number % 5 == 4:
            db.delete({"id": f"{name}-{number - 1}"})
    print(number, flush=True)
"""


def test_whatever_a_killed_writer_acknowledged_is_there(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    for trial in range(5):
        with running(WRITER, str(path), f"w{trial}") as writer:
            acked = acknowledged(writer, 20 + 17 * trial)
        numbers = {int(line) for line in acked}
        expected = {one for one in numbers if one % 5 != 3 or one + 1 not in numbers}
        db = FactsDb(path)
        stored = {
            int(row.id.split("-")[1]) for row in db.select({}) if row.id.startswith(f"w{trial}-")
        }
        assert expected <= stored | {max(numbers)}
        assert len(stored - expected) <= 2, "no more than the write in hand"
        assert len(worded(db, "fact")) == 10
        db.close()
    assert indexed(path, "fact") > 100
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_a_write_is_on_the_disk_before_it_is_acknowledged(db: FactsDb) -> None:
    assert db._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db._connection.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"


def test_many_processes_may_make_the_file_at_once(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        arguments = [(str(tmp_path / "facts.db"), f"w{one}") for one in range(4)]
        writers = [stack.enter_context(running(WRITER, *one)) for one in arguments]
        for writer in writers:
            assert len(acknowledged(writer, 3)) >= 3
