"""The table of memories in PostgreSQL: what holds for it beside the contract of both tables."""

import random
import threading
import time
from typing import Any

import psycopg
import pytest

from memory.errors import FolderError, MemoryStoreError
from memory.facts.postgres import table as memories
from memory.facts.postgres.table import PostgresTable
from memory.storage.postgres.connections import BlockingPool
from memory.text import analysis
from tests.support.postgres import Postgres, open_pool
from tests.support.tables import (
    DIMENSION,
    MODEL,
    Open,
    direction,
    ids,
    miscounted,
    near,
    payload,
    put,
    scope,
    worded,
)


def query(pool: BlockingPool, statement: str, *values: object) -> list[tuple[Any, ...]]:
    with pool.connection() as connection:
        found = connection.execute(statement, values)
        return found.fetchall() if found.description else []


@pytest.fixture
def table(open_postgres: Open) -> PostgresTable:
    opened = open_postgres()
    assert isinstance(opened, PostgresTable)
    return opened


def test_text_that_postgresql_cannot_keep_is_kept_without_it(table: PostgresTable) -> None:
    put(table, "ana", "a", "a fox\0 and a nul", speaker="A\0na", terms=["nul\0", "fox"])
    [row] = table.select({**scope("ana"), "speaker": "A\0na"})
    assert row.payload["data"] == "a fox\ufffd and a nul"
    assert worded(table, "ana", "nul\0") == worded(table, "ana", "fox") == ["ana-a"]
    table.insert("nul", direction(1.0), payload("an\0a", "a"))
    assert near(table, direction(1.0), "an\0a") == ["nul"]


def test_a_search_and_reads_and_writes_together_wait_for_no_second_connection(
    table: PostgresTable, postgres_pool: BlockingPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_pool, "_turns", threading.Semaphore(1))
    found: list[str] = []

    def search() -> None:
        with table.reading() as one, table.reading() as same:
            assert one is same is not None
            put(table, "ana", "a", vector=direction(1.0))
            found.extend(near(table, direction(1.0), "ana"))

    thread = threading.Thread(target=search, daemon=True)
    thread.start()
    thread.join(20.0)
    assert found == ["ana-a"]


def test_a_word_of_any_length_is_found(table: PostgresTable) -> None:
    long = "".join(random.Random(7).choices("漢字仮名交文", k=5_000))
    put(table, "ana", "a", terms=[long])
    assert worded(table, "ana", long) == ["ana-a"]
    assert worded(table, "ana", long[:499]) == []


def test_words_are_analysed_again_where_the_analysis_is_another(
    table: PostgresTable,
    open_postgres: Open,
    postgres_pool: BlockingPool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memories, "CHUNK", 2)
    for op in "abcde":
        put(table, "ana", op, f"red fox {op}")
    put(table, "ben", "a", "red fox", terms=[])
    monkeypatch.setattr(analysis, "terms", lambda text: text.upper().split()[1:])
    monkeypatch.setattr(analysis, "ANALYSIS_VERSION", analysis.ANALYSIS_VERSION + 1)
    again = open_postgres()
    assert worded(again, "ana", "red") == worded(again, "ben", "fox") == []
    assert len(worded(again, "ana", "fox")) == 5
    assert worded(again, "ana", "c") == ["ana-c"]
    assert miscounted(postgres_pool) == []


def test_a_database_of_a_newer_version_or_without_pgvector_says_so(
    table: PostgresTable, open_postgres: Open, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(memories, "FIRST_VERSION", memories.FIRST_VERSION - 1)
        with pytest.raises(FolderError, match="newer Circadian"):
            open_postgres()
    with monkeypatch.context() as released:
        released.setattr(memories, "FIRST_VERSION", memories.FIRST_VERSION + 1)
        with pytest.raises(FolderError, match="before the first release"):
            open_postgres()
    monkeypatch.setattr(memories, "UPGRADES", ("CREATE EXTENSION no_such",))
    url = postgres.database()
    with open_pool(url) as pool:
        with pytest.raises(FolderError, match="install pgvector"):
            PostgresTable(pool, model=MODEL, dimension=DIMENSION)
        assert query(pool, "SELECT to_regclass('memories')") == [(None,)], "all or nothing"
    postgres.drop(url)


def test_a_transaction_holds_the_scopes_that_it_names_and_no_other(
    table: PostgresTable, open_postgres: Open
) -> None:
    other, done = open_postgres(), list[str]()

    def write(user: str) -> None:
        with other.transaction():
            if not other.select({**scope(user), "speaker": "Ana"}):
                put(other, user, "theirs", speaker="Ana")
            done.append(user)

    with table.transaction():
        assert table.select({**scope("ana"), "speaker": "Ana"}) == []
        same, another = (threading.Thread(target=write, args=[one]) for one in ("ana", "ben"))
        same.start()
        time.sleep(0.1)
        assert done == []
        put(table, "ana", "mine", speaker="Ana")
    same.join()
    with table.transaction():
        table.select(scope("ana"))
        another.start()
        another.join()
    assert done == ["ana", "ben"]
    assert ids(table.select({})) == ["ana-mine", "ben-theirs"]


def test_what_was_deleted_is_in_no_file_of_the_tables(own_postgres: Postgres) -> None:
    with open_pool(own_postgres.database()) as pool:
        table = PostgresTable(pool, model=MODEL, dimension=DIMENSION)
        put(table, "ana", "a", "Zarathustra paints", terms=["zarathustra"])
        put(table, "ana", "b", "Ozymandias paints")
        table.update("ana-a", None, payload("ana", "a", "Quetzalcoatl paints"))
        query(pool, "CREATE TABLE memory_history AS SELECT 'Zarathustra' AS old_memory")
        own_postgres.execute("CHECKPOINT")
        assert own_postgres.files_with(b"Quetzalcoatl")
        table.delete({"id": "ana-a"})
        with pytest.raises(MemoryStoreError, match="transaction"), table.transaction():
            table.scrub()
        table.scrub()
        own_postgres.execute("CHECKPOINT")
        for gone in (b"Zarathustra", b"zarathustra", b"Quetzalcoatl", b"quetzalcoatl"):
            assert own_postgres.files_with(gone) == []
        assert own_postgres.files_with(b"Ozymandias")
        assert worded(table, "ana", "paint") == ["ana-b"]


def test_a_transaction_sees_what_it_wrote_and_counts_its_words(
    table: PostgresTable, postgres_pool: BlockingPool
) -> None:
    with table.transaction():
        put(table, "ana", "a", "red fox")
        put(table, "ana", "b", "blue whale")
        assert worded(table, "ana", "fox") == ["ana-a"]
        table.delete({"op": "a"})
        assert worded(table, "ana", "fox", "whal") == ["ana-b"]
        assert near(table, direction(1.0), "ana") == ["ana-b"]
    table.update("ana-b", None, payload("ana", "b", "green owl", kind="episode"))
    assert miscounted(postgres_pool) == []


def test_errors_of_a_statement_are_ours_and_the_connection_goes_on(table: PostgresTable) -> None:
    put(table, "ben", "a")
    with pytest.raises(MemoryStoreError, match="refused") as caught:
        _twice(table)
    assert isinstance(caught.value.__cause__, psycopg.errors.UniqueViolation)
    assert ids(table.select({})) == ["ben-a"]
    put(table, "ana", "a")
    assert table.count({}) == 2


def _twice(table: PostgresTable) -> None:
    with table.transaction():
        put(table, "ana", "a")
        table.insert("ana-a", None, payload("ana", "c"))
