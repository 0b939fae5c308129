"""The factories that langgraph.json names."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from blockbuster import blockbuster_ctx

from graph import persistence
from memory.errors import BusyError, FolderError
from memory.folder import open_folder
from memory.lock import AgentLock
from tests.saver_graph import Story, ask, pragma, rows, thread
from tests.source_files import ROOT


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder that the environment names."""
    monkeypatch.setenv("CIRCADIAN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CIRCADIAN_OFFLINE", "true")
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0")
    return tmp_path / "data"


@pytest.fixture
def copies() -> Iterator[list[ModuleType]]:
    """The file loaded twice under names of its own, as a server does."""
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


def test_the_factories_stand_where_the_servers_configuration_says() -> None:
    config = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    for name in ("checkpointer", "store"):
        path, factory = config[name]["path"].split(":")
        assert (ROOT / path).samefile(persistence.__file__)
        assert isinstance(getattr(persistence, factory)(), AbstractAsyncContextManager)


async def test_a_server_opens_the_folder_that_the_environment_names(
    data: Path, copies: list[ModuleType]
) -> None:
    one, two = copies
    async with two.store() as store, one.checkpointer() as saver:
        await store.aput(("a",), "k", {"n": 1})
        await Story(ask).compile(saver).ainvoke({}, thread())
    folder = open_folder(data, offline=True)
    async with persistence.open_store(folder.store_db) as store:
        assert await store.acount(("a",)) == 1
    async with persistence.open_saver(folder.checkpoints_db) as saver:
        assert await rows(saver, "checkpoints", "thread_id = 't'") > 0


async def test_a_server_keeps_the_number_of_checkpoints_that_the_settings_say() -> None:
    async with persistence.checkpointer() as saver:
        assert saver.keep == 50


async def test_while_a_server_has_the_folder_no_other_process_runs_an_agent(data: Path) -> None:
    locks = open_folder(data, offline=True).locks_dir
    async with persistence.checkpointer():
        with pytest.raises(BusyError, match=r"\(server\)"):
            await AgentLock(locks, "t", timeout=0).acquire()
        with pytest.raises(BusyError, match=r"data folder .* \(server\)"):
            async with persistence.checkpointer():
                raise AssertionError("opened")
    async with AgentLock(locks, "t", timeout=0):
        pass


async def test_a_server_does_not_start_while_an_agent_runs(data: Path) -> None:
    locks = open_folder(data, offline=True).locks_dir
    async with AgentLock(locks, "t", role="chat"):
        with pytest.raises(BusyError, match=r"data folder .* \(chat\)"):
            async with persistence.checkpointer():
                raise AssertionError("opened")
    async with persistence.checkpointer():
        pass


async def test_a_database_that_does_not_open_leaves_the_folder_free(data: Path) -> None:
    folder = open_folder(data, offline=True)
    folder.checkpoints_db.write_bytes(b"this is not a database " * 50)
    for _ in range(2):
        with pytest.raises(FolderError, match="not a database"):
            async with persistence.checkpointer():
                raise AssertionError("opened")


async def test_nothing_blocks_the_event_loop(data: Path) -> None:
    with blockbuster_ctx():
        async with persistence.checkpointer() as saver, persistence.store() as store:
            graph = Story().compile(saver)
            for _ in range(2):
                await graph.ainvoke({}, thread())
            await store.aput(("a",), "k", {})
            await store.alist(("a",))
            with pytest.raises(BusyError):
                await AgentLock(data / "locks", "t", timeout=0).acquire()


async def test_a_failing_run_keeps_the_connections_usable(data: Path) -> None:
    async def fail() -> str:
        raise ConnectionError("gone")

    async with persistence.checkpointer() as saver:
        config: Any = thread()
        with pytest.raises(ConnectionError):
            await Story(fail).compile(saver).ainvoke({}, config)
        await Story().compile(saver).ainvoke(None, config)
        assert await pragma(saver, "journal_mode") == "wal"


async def test_cancelled_while_it_opens_a_file_it_leaves_no_thread_behind(tmp_path: Path) -> None:
    async def opened() -> None:
        async with persistence.open_store(tmp_path / "store.db"):
            pass

    before = set(threading.enumerate())
    for turns in range(12):
        opening = asyncio.create_task(opened())
        for _ in range(turns):
            await asyncio.sleep(0)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
    pool = {one for one in threading.enumerate() if one.name.startswith("asyncio_")}
    assert set(threading.enumerate()) - before - pool == set()
