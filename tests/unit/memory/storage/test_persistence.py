"""The factories that langgraph.json names."""

import asyncio
import importlib.util
import json
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from blockbuster import blockbuster_ctx

from graph import persistence
from memory import runtime
from memory.errors import BusyError, FolderError, MemoryStoreError
from memory.installation.opening import Installation, open_installation
from memory.settings import environment_only
from memory.storage.access import count_items, list_items
from memory.storage.sqlite.files import OpenedFile, atomic, open_file
from tests.support.homes import KINDS, folder_in, is_database, rows
from tests.support.saver_graph import Story, ask, thread
from tests.support.source_files import ROOT


@pytest.fixture(params=KINDS)
def home(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Installation]:
    """What the environment names; every test that takes it holds for both.

    The process's resources that a test opened end with it: the next test has a folder of its own.
    """
    monkeypatch.setenv("CIRCADIAN_DATA", str(tmp_path / "data"))
    if request.param == "database":
        monkeypatch.setenv("CIRCADIAN_DATABASE_URL", request.getfixturevalue("postgres_url"))
    monkeypatch.setenv("CIRCADIAN_OFFLINE", "true")
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0")
    yield open_installation(environment_only())
    if runtime.process_now.cache_info().currsize:
        opened = runtime.process_now()
        runtime.process_now.cache_clear()
        opened.home.close()


@pytest.fixture
def copies() -> Iterator[list[ModuleType]]:
    loaded = []
    for name in ("circadian_copy_one", "circadian_copy_two"):
        spec = importlib.util.spec_from_file_location(name, ROOT / "graph" / "persistence.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        loaded.append(module)
    yield loaded
    for module in loaded:
        del sys.modules[module.__name__]


def test_the_factories_are_where_langgraph_json_says() -> None:
    config = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    for name in ("checkpointer", "store"):
        path, factory = config[name]["path"].split(":")
        assert (ROOT / path).samefile(persistence.__file__)
        assert isinstance(getattr(persistence, factory)(), AbstractAsyncContextManager)


async def test_a_server_opens_what_the_environment_names(
    home: Installation, tmp_path: Path, copies: list[ModuleType]
) -> None:
    one, two = copies
    async with two.store() as store, one.checkpointer() as saver:
        await store.aput(("a",), "k", {"n": 1})
        await Story(ask).compile(saver).ainvoke({}, thread())
    async with persistence.open_store(home) as store:
        assert await count_items(store, ("a",)) == 1
    async with persistence.open_saver(home) as saver:
        assert await rows(saver, "checkpoints", "thread_id = 't'") > 0
    assert (tmp_path / "data").exists() != is_database(home)


async def test_a_server_keeps_the_number_of_checkpoints_that_the_settings_say(
    home: Installation,
) -> None:
    async with persistence.checkpointer() as saver:
        assert getattr(saver, "keep", None) == 50


async def test_servers_exclude_each_other_from_a_folder_and_share_a_database(
    home: Installation,
) -> None:
    async with persistence.checkpointer():
        if is_database(home):
            async with persistence.checkpointer():
                pass
            # The other one, still there, is enough.
            with pytest.raises(BusyError):
                await home.agent_lock("t", timeout=0).__aenter__()
        else:
            with pytest.raises(BusyError, match=r"data folder .* \(server\)"):
                async with persistence.checkpointer():
                    raise AssertionError("opened")


async def test_a_file_that_cannot_be_opened_leaves_the_folder_unlocked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_in(tmp_path)
    monkeypatch.setenv("CIRCADIAN_DATA", str(folder.path))
    folder.checkpoints_db.write_bytes(b"this is not a database " * 50)
    for _ in range(2):
        with pytest.raises(FolderError, match="not a database"):
            async with persistence.checkpointer():
                raise AssertionError("opened")


async def test_nothing_blocks_the_event_loop(home: Installation) -> None:
    with blockbuster_ctx():
        async with persistence.checkpointer() as saver, persistence.store() as store:
            graph = Story().compile(saver)
            for _ in range(2):
                await graph.ainvoke({}, thread())
            await store.aput(("a",), "k", {})
            await list_items(store, ("a",))
            with pytest.raises(BusyError):
                await home.agent_lock("t", timeout=0).__aenter__()


async def test_a_failing_run_keeps_the_connections_usable(home: Installation) -> None:
    async def fail() -> str:
        raise ConnectionError("gone")

    async with persistence.checkpointer() as saver:
        config: Any = thread()
        with pytest.raises(ConnectionError):
            await Story(fail).compile(saver).ainvoke({}, config)
        await Story().compile(saver).ainvoke(None, config)
        assert await rows(saver, "checkpoints") > 0


async def test_a_cancelled_opening_ends_before_the_file_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing a connection that another thread uses ends the process."""
    begun, order = threading.Event(), list[str]()
    opens, closes = OpenedFile.open, OpenedFile._close

    def slow(file: OpenedFile, *, quick_reads: bool) -> None:
        begun.set()
        time.sleep(0.05)
        opens(file, quick_reads=quick_reads)
        order.append("opened")

    def noted(file: OpenedFile) -> None:
        order.append("closed")
        closes(file)

    monkeypatch.setattr(OpenedFile, "open", slow)
    monkeypatch.setattr(OpenedFile, "_close", noted)
    running = asyncio.create_task(open_file(tmp_path / "some.db").__aenter__())
    await asyncio.to_thread(begun.wait)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert order == ["opened", "closed"]


async def test_writes_that_wait_together_share_a_commit_and_one_that_fails_fails_alone(
    tmp_path: Path,
) -> None:
    statements, release = list[str](), threading.Event()
    async with open_file(tmp_path / "some.db") as file:
        await file.rows("CREATE TABLE numbers (number INTEGER)")
        file.conn.set_trace_callback(statements.append)

        def write(number: int) -> None:
            with atomic(file.conn):
                file.conn.execute("INSERT INTO numbers VALUES (?)", (number,))
                if number == failing:
                    raise ValueError("no such number")

        async def commits(*numbers: int) -> int:
            statements.clear()
            release.clear()
            busy = asyncio.create_task(file.run(release.wait))
            await asyncio.sleep(0)
            writing = [asyncio.create_task(file.write(write, number)) for number in numbers]
            await asyncio.sleep(0)
            release.set()
            await busy
            ended = await asyncio.gather(*writing, return_exceptions=True)
            assert [type(one) for one in ended if one is not None] == [ValueError] * (
                failing in numbers
            )
            return statements.count("COMMIT")

        failing = 0
        assert await commits(1, 2, 3, 4) == 1
        failing = 6
        assert await commits(5, 6, 7) == 2
        assert await file.rows("SELECT number FROM numbers ORDER BY number") == [
            (number,) for number in (1, 2, 3, 4, 5, 7)
        ]


async def test_a_function_that_raises_what_no_future_takes_keeps_no_other_waiting(
    tmp_path: Path,
) -> None:
    async with open_file(tmp_path / "some.db") as file:
        empty, rows = (file.run(next, iter(())), file.rows("SELECT 1"))
        ended = await asyncio.wait_for(asyncio.gather(empty, rows, return_exceptions=True), 20)
        assert [type(ended[0]), ended[1]] == [RuntimeError, [(1,)]]


async def test_two_event_loops_read_a_file_at_once(tmp_path: Path) -> None:
    async with open_file(tmp_path / "some.db") as file:

        def count(conn: sqlite3.Connection) -> Any:
            return conn.execute("SELECT 1").fetchone()

        def meanwhile(conn: sqlite3.Connection) -> Any:
            found = list[Any]()
            other = threading.Thread(target=lambda: found.append(asyncio.run(file.read(count))))
            other.start()
            other.join(20)
            return [*found, count(conn)]

        assert await file.read(meanwhile) == [(1,), (1,)]


async def test_a_closed_file_says_so_to_who_goes_on(tmp_path: Path) -> None:
    begun, release = threading.Event(), threading.Event()
    async with open_file(tmp_path / "some.db") as file:
        close = file._close

        def slowly() -> None:
            begun.set()
            release.wait(20)
            close()

        file._close = slowly  # type: ignore[method-assign]
        file.end()
        await asyncio.to_thread(begun.wait, 20)
        late = asyncio.create_task(file.rows("SELECT 1"))
        await asyncio.sleep(0)
        release.set()
    for asked in (late, file.rows("SELECT 1"), file.read(lambda conn: None)):
        with pytest.raises(MemoryStoreError, match=r"some\.db was closed: .* Open it again"):
            await asyncio.wait_for(asked, 20)


@pytest.mark.parametrize("opening", ["open_store", "open_saver"])
async def test_cancelling_an_opening_leaves_no_thread_or_task(
    home: Installation, opening: str
) -> None:
    async def opened() -> None:
        async with getattr(persistence, opening)(home):
            pass

    threads, tasks = set(threading.enumerate()), asyncio.all_tasks()
    for turns in range(12):
        running = asyncio.create_task(opened())
        for _ in range(turns):
            await asyncio.sleep(0)
        await asyncio.sleep(0.001 * turns)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    pool = {one for one in threading.enumerate() if one.name.startswith("asyncio_")}
    assert set(threading.enumerate()) - threads - pool == set()
    assert asyncio.all_tasks() == tasks
