"""The store on SQLite: whole batches, several processes, reads that do not page."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import GetOp, PutOp, SearchOp

from graph.persistence import open_store
from memory.errors import FolderError
from memory.sqlite.store import PUTS_PER_STATEMENT, CircadianStore
from tests.source_files import ROOT

NS = ("local", "t", "journal")

WRITER = """
import asyncio, json, sys
from pathlib import Path
from langgraph.store.base import PutOp
from graph.persistence import open_store
path, name, seconds = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
async def main():
    loop = asyncio.get_running_loop()
    async with open_store(path) as store:
        end, batches, halves = loop.time() + seconds, 0, 0
        while loop.time() < end:
            batches += 1
            value = {"batch": batches}
            puts = [PutOp((name,), str(n), value) for n in range(20)]
            # The searches are coalesced with the put: reads and writes in one transaction.
            others = ("a", "b")
            found = await asyncio.gather(
                store.abatch(puts), store.aput((name, "single"), "k", value),
                *(store.asearch((other,), limit=20, filter=None) for other in others),
                *(store.alist((other,)) for other in others),
            )
            for items in found[4:]:
                halves += len({item.value["batch"] for item in items}) > 1
        print(json.dumps({"batches": batches, "halves": halves}))
asyncio.run(main())
"""


def value(number: int) -> dict[str, Any]:
    return {"n": number}


def write_elsewhere(path: Path) -> None:
    """Write through a connection of its own, without waiting for anybody."""
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
        other.execute("CREATE TABLE IF NOT EXISTS probe (x)")


async def test_a_batch_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    async with open_store(tmp_path / "s.db") as store:
        await store.aput(NS, "old", value(0))
        unserialisable = PutOp(NS, "b", {"x": object()})
        for other in (PutOp(NS, "a", value(1)), PutOp(NS, "old", None)):
            with pytest.raises(TypeError):
                await store.abatch([other, unserialisable])
        await store.conn.executescript(
            "CREATE TRIGGER refuse BEFORE INSERT ON store WHEN NEW.key = 'bad'"
            " BEGIN SELECT RAISE(FAIL, 'refused'); END"
        )
        with pytest.raises(sqlite3.IntegrityError, match="refused"):
            await store.abatch(
                [PutOp(NS, "old", None), PutOp(NS, "a", value(1)), PutOp(NS, "bad", value(2))]
            )
        await store.aput(NS, "later", value(3))
        assert [item.key for item in await store.alist(NS)] == ["later", "old"]


async def test_a_cancelled_batch_is_whole_or_absent_and_keeps_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with open_store(path) as store:
        for turns in range(12):
            keys = [f"{turns}-{n}" for n in range(3)]
            task = asyncio.ensure_future(store.abatch([PutOp(NS, k, value(1)) for k in keys]))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert [bool(item) for item in await store.abatch([GetOp(NS, k) for k in keys])] in (
                [True] * 3,
                [False] * 3,
            )
            await asyncio.to_thread(write_elsewhere, path)


async def test_reads_and_writes_made_together_survive_another_processs_write(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.db"
    async with open_store(path) as store, open_store(path) as other:
        for number in range(30):
            await asyncio.gather(
                *(s.asearch(NS, limit=5) for s in (store, other)),
                *(s.aput(NS, f"{id(s)}", value(number)) for s in (store, other)),
            )
        assert await store.acount(NS) == 2


def write_from_two_processes(path: Path) -> list[dict[str, int]]:
    """Let two processes write for a while; what each of them counted."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name, "0.8"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    told = [writer.communicate() for writer in writers]
    assert [errors for _, errors in told] == ["", ""]
    return [json.loads(out) for out, _ in told]


def test_two_processes_write_at_once_without_errors_or_half_batches(tmp_path: Path) -> None:
    for counted in write_from_two_processes(tmp_path / "s.db"):
        assert counted["batches"] > 5
        assert counted["halves"] == 0


async def test_a_read_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with open_store(path) as store:
        await store.aput(NS, "a", value(1))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("DELETE FROM store")
            async with asyncio.timeout(2.0):
                assert await store.aget(NS, "a")
                assert len(await store.asearch(NS)) == len(await store.alist(NS)) == 1
                assert await store.acount(NS) == 1
            other.execute("ROLLBACK")


async def test_a_listing_is_of_one_namespace_exactly_and_in_the_order_of_keys(
    tmp_path: Path,
) -> None:
    async with open_store(tmp_path / "s.db") as store:
        for key in ("b", "a", "ä", "C"):
            await store.aput(NS, key, {"key": key})
        await store.aput((*NS, "2026"), "below", {})
        await store.aput(("local", "t", "journals"), "beside", {})
        found = await store.alist(NS)
        assert [item.key for item in found] == ["C", "a", "b", "ä"]
        assert [item.value["key"] for item in found] == ["C", "a", "b", "ä"]
        assert {item.namespace for item in found} == {NS}
        assert found[0] == await store.aget(NS, "C")
        newest = await store.alist(NS, limit=2, newest_first=True)
        assert [item.key for item in newest] == ["ä", "b"]
        assert await store.alist(("none",)) == []


async def test_a_count_covers_a_prefix_by_whole_labels(tmp_path: Path) -> None:
    async with open_store(tmp_path / "s.db") as store:
        for namespace in (NS, (*NS, "2026"), (*NS, "2026", "x"), ("local", "t", "journal-b")):
            await store.aput(namespace, "k", {})
        await store.aput(("LOCAL", "t", "journal"), "k", {})
        await store.aput(("local", "t", "journal%", "x"), "k", {})
        assert await store.acount(NS) == 3
        assert await store.acount(("local", "t")) == 5
        assert await store.acount(("local", "t", "journ")) == 0
        assert await store.acount(()) == 6


async def test_a_batch_may_be_larger_than_one_statement_can_be(tmp_path: Path) -> None:
    many = 8 * PUTS_PER_STATEMENT + 1  # 40,005 parameters; a build of SQLite may allow 32,766
    async with open_store(tmp_path / "s.db") as store:
        await store.abatch([PutOp(NS, f"{n:06}", {}) for n in range(many)])
        assert await store.acount(NS) == many
        await store.conn.executescript(
            f"CREATE TRIGGER refuse BEFORE INSERT ON store WHEN NEW.key = '{many - 1:06}'"
            " BEGIN SELECT RAISE(FAIL, 'refused'); END"
        )
        with pytest.raises(sqlite3.IntegrityError):
            await store.abatch([PutOp(("other",), f"{n:06}", {}) for n in range(many)])
        assert await store.acount(("other",)) == 0


async def test_the_last_write_of_a_key_in_a_batch_wins(tmp_path: Path) -> None:
    async with open_store(tmp_path / "s.db") as store:
        await store.abatch(
            [PutOp(NS, "a", value(1)), PutOp(NS, "a", None), PutOp(NS, "a", value(2))]
        )
        found = await store.aget(NS, "a")
        assert found is not None
        assert found.value == value(2)


async def test_searching_and_listing_namespaces_still_work(tmp_path: Path) -> None:
    async with open_store(tmp_path / "s.db") as store:
        await store.aput(NS, "a", value(1))
        await store.aput(NS, "b", value(2))
        [found] = await store.asearch(NS, filter={"n": 2})
        assert found.key == "b"
        assert await store.alist_namespaces(suffix=("journal",)) == [NS]
        results = await store.abatch([GetOp(NS, "c"), PutOp(NS, "c", value(3)), SearchOp(NS)])
        assert results[:2] == [None, None]


async def test_items_survive_a_reopening(tmp_path: Path) -> None:
    for number in range(3):
        async with open_store(tmp_path / "s.db") as store:
            assert await store.acount(NS) == number
            await store.aput(NS, str(number), value(number))


async def test_a_file_half_made_by_an_older_program_is_completed(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE store_migrations (v INTEGER PRIMARY KEY)")
        for version, statement in enumerate(CircadianStore.MIGRATIONS[:2]):
            made.execute(statement)
            made.execute("INSERT INTO store_migrations VALUES (?)", (version,))
        made.execute("INSERT INTO store (prefix, key, value) VALUES ('a', 'k', '{}')")
        made.commit()
    async with open_store(path) as store:
        assert [item.key for item in await store.alist(("a",))] == ["k"]
        await store.aput(("a",), "l", {})


async def test_many_connections_may_make_the_file_at_the_same_time(tmp_path: Path) -> None:
    async def one(path: Path, key: str) -> None:
        async with open_store(path) as store:
            await store.aput(NS, key, {})

    for attempt in range(5):
        path = tmp_path / f"{attempt}.db"
        await asyncio.gather(*(one(path, str(n)) for n in range(6)))
        async with open_store(path) as store:
            assert await store.acount(NS) == 6


async def test_a_closed_store_leaves_no_task_behind(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    async with open_store(tmp_path / "s.db") as store:
        await store.aput(NS, "a", {})
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_every_commit_is_on_disk(tmp_path: Path) -> None:
    async with open_store(tmp_path / "s.db") as store:
        for name, expected in (("journal_mode", "wal"), ("synchronous", 2)):
            [row] = await store.conn.execute_fetchall(f"PRAGMA {name}")
            assert row[0] == expected


async def test_a_store_that_is_no_database_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(b"this is not a database " * 50)
    with pytest.raises(FolderError, match=r"cannot open .*s\.db: file is not a database"):
        async with open_store(path):
            raise AssertionError("opened")
