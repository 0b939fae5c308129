"""The table of memories in PostgreSQL: what holds for it beside the contract of both tables."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from memory.errors import DatabaseDown, FolderError, MemoryStoreError
from memory.facts.postgres import schema as memories
from memory.facts.postgres.table import PostgresTable
from memory.storage.postgres.connections import BlockingPool
from memory.text import analysis
from tests.support.facts import acknowledged, running
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

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)


def query(pool: BlockingPool, statement: str, *values: object) -> list[tuple[Any, ...]]:
    with pool.connection() as connection:
        return connection.execute(statement, values).fetchall()


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


def test_ten_threads_at_once_mix_nothing_up(
    table: PostgresTable, postgres_pool: BlockingPool
) -> None:
    def live(user: str) -> list[str]:
        for number in range(12):
            with table.transaction():
                put(table, user, str(number), f"fact {number} of {user}")
                put(table, user, "first", "the same of all")
            table.touch([f"{user}-first"], NOW)
            assert worded(table, user, f"{number}")[:1] == [f"{user}-{number}"]
            assert near(table, direction(1.0), user, 1) == [f"{user}-0"]
        table.delete({**scope(user), "op": ["1", "2"]})
        return ids(table.select(scope(user)))

    users = [f"user{number}" for number in range(5)] * 2
    with ThreadPoolExecutor(10) as threads:
        lives = dict(zip(users, threads.map(live, users), strict=True))
    for user in lives:
        rows = table.select(scope(user))
        left = {f"{user}-{one}" for one in ("first", "0", *range(3, 12))}
        assert set(ids(rows)) - {f"{user}-1", f"{user}-2"} == left
        assert {row.access_count for row in rows if row.payload["op"] == "first"} == {24}
    assert miscounted(postgres_pool) == []


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


WRITER = """
import sys
from pydantic import SecretStr
from memory.facts.postgres.table import PostgresTable
from memory.storage.postgres.connections import BlockingPool, address_of
import numpy as np
url, name = sys.argv[1:]
with BlockingPool(address_of(SecretStr(url))) as pool:
    table = PostgresTable(pool, model="words", dimension=8)
    vector = np.eye(8, dtype=np.float32)[0]
    for number in range(100_000):
        with table.transaction():
            for op in (f"{name}-{number}", f"both-{number}"):
                payload = {"data": f"fact {op}", "user_id": "ana", "agent_id": "agent", "op": op}
                table.insert(f"{name}-{op}", vector, payload)
            if number % 5 == 4:
                table.delete({"id": f"{name}-{name}-{number - 1}"})
        print(number, flush=True)
"""


def test_what_killed_processes_acknowledged_is_there_and_they_may_all_make_the_tables(
    postgres_url: str, postgres_pool: BlockingPool, open_postgres: Open
) -> None:
    with ExitStack() as stack:
        names = ("one", "two", "three")
        writers = [stack.enter_context(running(WRITER, postgres_url, name)) for name in names]
        acked = [acknowledged(writer, 15) for writer in writers]
    table = open_postgres()
    stored = {row.payload["op"] for row in table.select(scope("ana"))}
    for name, lines in zip(names, acked, strict=True):
        numbers = {int(line) for line in lines}
        kept = {one for one in numbers if one % 5 != 3 or one + 1 not in numbers}
        assert {f"{name}-{one}" for one in kept - {max(numbers)}} <= stored
        assert {f"both-{one}" for one in numbers} <= stored
    assert len(table.select(scope("ana"))) == len(stored), "one row for each operation"
    assert miscounted(postgres_pool) == []
    [row, *_] = table.select(scope("ana"))
    assert near(table, direction(1.0), "ana", 1) == [row.id]


def test_a_database_that_is_down_is_told_within_three_seconds_and_found_again(
    own_postgres: Postgres,
) -> None:
    with open_pool(own_postgres.database()) as pool:
        table = PostgresTable(pool, model=MODEL, dimension=DIMENSION)
        put(table, "ana", "a")
        calls = (
            lambda: _interrupted(table, own_postgres),
            lambda: table.select({}),
            lambda: put(table, "ana", "b"),
            lambda: near(table, direction(1.0), "ana"),
            lambda: PostgresTable(pool, model=MODEL, dimension=DIMENSION),
        )
        for call in calls:
            began = time.monotonic()
            with pytest.raises(DatabaseDown, match="cannot be reached"):
                call()
            assert time.monotonic() - began < 3
        own_postgres.start()
        assert ids(table.select({})) == ["ana-a"]
        put(table, "ana", "b")
        assert near(table, direction(1.0), "ana") == ["ana-a", "ana-b"]


def _interrupted(table: PostgresTable, server: Postgres) -> None:
    with table.transaction():
        put(table, "ana", "half")
        server.crash()
        put(table, "ana", "other half")


def test_what_was_deleted_is_in_no_file_of_the_tables(own_postgres: Postgres) -> None:
    with open_pool(own_postgres.database()) as pool:
        table = PostgresTable(pool, model=MODEL, dimension=DIMENSION)
        put(table, "ana", "a", "Zarathustra paints", terms=["zarathustra"])
        put(table, "ana", "b", "Ozymandias paints")
        table.update("ana-a", None, payload("ana", "a", "Quetzalcoatl paints"))
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


def test_a_transaction_sees_what_it_wrote(table: PostgresTable) -> None:
    with table.transaction():
        put(table, "ana", "a", "red fox")
        put(table, "ana", "b", "blue whale")
        assert worded(table, "ana", "fox") == ["ana-a"]
        table.delete({"op": "a"})
        assert worded(table, "ana", "fox", "whal") == ["ana-b"]
        assert near(table, direction(1.0), "ana") == ["ana-b"]


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
