"""The store, on SQLite and on PostgreSQL: whole batches, several processes, no paging reads."""

import asyncio
import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchOp

from graph.persistence import open_store
from memory.errors import FolderError, MemoryStoreError
from memory.installation.opening import Installation
from memory.storage.access import OwnStore
from memory.storage.sqlite.store import PUTS_PER_STATEMENT, CircadianSqliteStore
from tests.support.forked import forked_python
from tests.support.homes import folder_in, refuse, variables
from tests.support.homes import home as home
from tests.support.source_files import ROOT

NS = ("local", "t", "journal")
REFUSED = (sqlite3.IntegrityError, MemoryStoreError)

WRITER = """
import asyncio, json, sys
from langgraph.store.base import PutOp
from graph.persistence import open_store
from memory.installation import open_installation as open_home
from memory.settings import environment_only
name, seconds = sys.argv[1], float(sys.argv[2])
async def main():
    loop = asyncio.get_running_loop()
    async with open_store(open_home(environment_only())) as store:
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


async def test_a_failed_batch_writes_nothing(home: Installation) -> None:
    async with open_store(home) as store:
        await store.aput(NS, "old", value(0))
        unserialisable = PutOp(NS, "b", {"x": object()})
        for other in (PutOp(NS, "a", value(1)), PutOp(NS, "old", None)):
            with pytest.raises(TypeError):
                await store.abatch([other, unserialisable])
        await refuse(store, "INSERT", "store", "NEW.key = 'bad'")
        with pytest.raises(REFUSED, match="refused"):
            await store.abatch(
                [PutOp(NS, "old", None), PutOp(NS, "a", value(1)), PutOp(NS, "bad", value(2))]
            )
        await store.aput(NS, "later", value(3))
        assert [item.key for item in await own(store).alist(NS)] == ["later", "old"]


async def test_a_cancelled_batch_is_whole_or_absent_and_holds_no_lock(home: Installation) -> None:
    async with open_store(home) as store, open_store(home) as other:
        for turns in range(12):
            keys = [f"{turns}-{n}" for n in range(3)]
            task = asyncio.ensure_future(store.abatch([PutOp(NS, k, value(1)) for k in keys]))
            for _ in range(turns):
                await asyncio.sleep(0)
            await asyncio.sleep(0.0003 * turns)  # a server's answer takes time, not turns
            task.cancel()
            await asyncio.wait([task])
            async with asyncio.timeout(5.0):
                await other.aput(NS, keys[0] + "other", value(2))
                found = await store.abatch([GetOp(NS, k) for k in keys])
            assert [bool(item) for item in found] in ([True] * 3, [False] * 3)


async def test_mixed_reads_and_writes_survive_another_process(home: Installation) -> None:
    async with open_store(home) as store, open_store(home) as other:
        for number in range(30):
            await asyncio.gather(
                *(s.asearch(NS, limit=5) for s in (store, other)),
                *(s.aput(NS, f"{id(s)}", value(number)) for s in (store, other)),
            )
        assert await own(store).acount(NS) == 2


def write_from_two_processes(home: Installation) -> list[dict[str, int]]:
    """Let two processes write for a while; what each of them counted."""
    writers = [
        subprocess.Popen(
            [forked_python(), "-c", WRITER, name, "0.8"],
            cwd=ROOT,
            env={**os.environ, **variables(home), "CIRCADIAN_OFFLINE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    told = [writer.communicate() for writer in writers]
    assert [errors for _, errors in told] == ["", ""]
    return [json.loads(out) for out, _ in told]


def test_two_processes_write_concurrently_in_whole_batches(home: Installation) -> None:
    for counted in write_from_two_processes(home):
        assert counted["batches"] > 5
        assert counted["halves"] == 0


async def test_deadlocked_batches_are_both_written(home: Installation) -> None:
    def crossing(first: str, second: str, n: int) -> list[PutOp]:
        return [PutOp((first,), "k", None), PutOp((second,), "k", value(n))]

    async with open_store(home) as one, open_store(home) as two:
        for n in range(10):
            await one.abatch([PutOp((name,), "k", value(n)) for name in ("a", "b")])
            await asyncio.gather(
                *(one.abatch(crossing("a", "b", n)), two.abatch(crossing("b", "a", n)))
            )
            left = [await one.aget((name,), "k") for name in ("a", "b")]
            assert sum(item is not None for item in left) == 1


async def test_reads_of_a_batch_see_one_state(home: Installation) -> None:
    namespaces = [("local", str(n)) for n in range(5)]
    async with open_store(home) as store, open_store(home) as other:

        async def write() -> None:
            for n in range(60):
                await other.abatch([PutOp(one, "k", value(n)) for one in namespaces])

        await other.abatch([PutOp(one, "k", value(-1)) for one in namespaces])
        writing = asyncio.create_task(write())
        while not writing.done():
            found = await store.abatch([GetOp(one, "k") for one in namespaces])
            assert len({item.value["n"] for item in found if isinstance(item, Item)}) == 1
        await writing


async def test_of_several_first_writers_of_a_key_one_wins(home: Installation) -> None:
    async with open_store(home) as one, open_store(home) as two:
        for n in range(10):
            puts = [[PutOp(NS, f"{n}{k}", value(who)) for k in "ba"] for who in (1, 2)]
            told = await asyncio.gather(
                *(own(store).aput_new(ops) for store, ops in zip((one, two), puts, strict=True))
            )
            found = [await one.aget(NS, f"{n}{k}") for k in "ba"]
            assert told[0] == told[1] == [item.value for item in found if item is not None]
            assert told[0][0] == told[0][1]


async def test_a_read_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    async with open_store(folder) as store:
        await store.aput(NS, "a", value(1))
        with closing(sqlite3.connect(folder.store_db, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("DELETE FROM store")
            async with asyncio.timeout(2.0):
                assert await store.aget(NS, "a")
                assert len(await store.asearch(NS)) == len(await own(store).alist(NS)) == 1
                assert await own(store).acount(NS) == 1
            other.execute("ROLLBACK")


async def test_a_batch_may_exceed_one_statement(home: Installation) -> None:
    many = 8 * PUTS_PER_STATEMENT + 1  # 40,005 parameters; a build of SQLite may allow 32,766
    async with open_store(home) as store:
        await store.abatch([PutOp(NS, f"{n:06}", {}) for n in range(many)])
        assert await own(store).acount(NS) == many
        await refuse(store, "INSERT", "store", f"NEW.key = '{many - 1:06}'")
        with pytest.raises(REFUSED, match="refused"):
            await store.abatch([PutOp(("other",), f"{n:06}", {}) for n in range(many)])
        assert await own(store).acount(("other",)) == 0


async def test_the_last_write_of_a_key_in_a_batch_wins(home: Installation) -> None:
    async with open_store(home) as store:
        await store.abatch(
            [PutOp(NS, "a", value(1)), PutOp(NS, "a", None), PutOp(NS, "a", value(2))]
        )
        found = await store.aget(NS, "a")
        assert found is not None
        assert found.value == value(2)


async def test_searching_and_listing_namespaces_still_work(home: Installation) -> None:
    async with open_store(home) as store:
        await store.aput(NS, "a", value(1))
        await store.aput(NS, "b", value(2))
        [found] = await store.asearch(NS, filter={"n": 2})
        assert found.key == "b"
        assert await store.alist_namespaces(suffix=("journal",)) == [NS]
        results = await store.abatch([GetOp(NS, "c"), PutOp(NS, "c", value(3)), SearchOp(NS)])
        assert results[:2] == [None, None]


async def test_a_half_made_file_is_completed(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    with closing(sqlite3.connect(folder.store_db)) as made:
        made.execute("CREATE TABLE store_migrations (v INTEGER PRIMARY KEY)")
        for version, statement in enumerate(CircadianSqliteStore.MIGRATIONS[:2]):
            made.execute(statement)
            made.execute("INSERT INTO store_migrations VALUES (?)", (version,))
        made.execute("INSERT INTO store (prefix, key, value) VALUES ('a', 'k', '{}')")
        made.commit()
    async with open_store(folder) as store:
        assert [item.key for item in await own(store).alist(("a",))] == ["k"]
        await store.aput(("a",), "l", {})


async def test_connections_can_make_the_tables_concurrently(home: Installation) -> None:
    async def one(key: str) -> None:
        async with open_store(home) as store:
            await store.aput(NS, key, {})

    await asyncio.gather(*(one(str(n)) for n in range(6)))
    async with open_store(home) as store:
        assert await own(store).acount(NS) == 6
        assert await own(store).acount(NS, "ends") == 0
        await store.aput(NS, "0", {"ends": ["a", "b"]})
        await store.aput((*NS, "below"), "0", {"ends": ["c"]})
        assert await own(store).acount(NS, "ends") == 3


async def test_a_closed_store_leaves_no_task_behind(home: Installation) -> None:
    before = asyncio.all_tasks()
    async with open_store(home) as store:
        await store.aput(NS, "a", {})
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_every_commit_is_on_disk(tmp_path: Path) -> None:
    async with open_store(folder_in(tmp_path)) as store:
        assert isinstance(store, CircadianSqliteStore)
        for name, expected in (("journal_mode", "wal"), ("synchronous", 2)):
            [row] = await store.file.rows(f"PRAGMA {name}")
            assert row[0] == expected


async def test_a_corrupt_store_is_one_clear_error(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    folder.store_db.write_bytes(b"this is not a database " * 50)
    with pytest.raises(FolderError, match=r"cannot open .*store\.db: file is not a database"):
        async with open_store(folder):
            raise AssertionError("opened")


def own(store: BaseStore) -> OwnStore:
    assert isinstance(store, OwnStore)
    return store
