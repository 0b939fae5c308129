"""The writer's lock, between handles of one process and between processes, in both homes."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from pydantic import SecretStr

from memory.errors import BusyError
from memory.installation.database import open_database
from memory.installation.folder import DataFolder, WriterLock, open_folder
from memory.installation.opening import Installation
from memory.records import LOCAL_USER, thread_id
from tests.support.forked import forks
from tests.support.homes import folder_in, held, url_of
from tests.support.homes import home as home


def hold(where: str, kind: str, thread: str, other: Connection) -> None:
    """Take a lock in this process, say so, and keep it until something is said."""

    async def keep() -> None:
        url = SecretStr(where) if where.startswith("postgresql:") else None
        home = open_folder(Path(where)) if url is None else open_database(url)
        lock = home.agent_lock(thread) if kind == "agent" else home.server_lock()
        async with lock:
            other.send("held")
            await asyncio.to_thread(other.recv)

    asyncio.run(keep())


@contextmanager
def holder(
    kind: str, home: Installation, thread: str = "t"
) -> Iterator[tuple[BaseProcess, Connection]]:
    where = str(home.path) if isinstance(home, DataFolder) else url_of(home)
    ours, theirs = forks().Pipe()
    process = forks().Process(target=hold, args=(where, kind, thread, theirs), daemon=True)
    process.start()
    theirs.close()
    with ours:
        try:
            assert ours.recv() == "held"
            yield process, ours
        finally:
            process.kill()
            process.join()


def agent(home: Installation, thread: str = "t", timeout: float = 0.0) -> WriterLock:
    return home.agent_lock(thread, timeout=timeout)


def server(home: Installation, timeout: float = 0.0) -> WriterLock:
    return home.server_lock(timeout=timeout)


@pytest.mark.parametrize(("holder", "other"), [(agent, agent), (agent, server), (server, agent)])
async def test_handles_of_one_process_exclude_each_other(
    home: Installation, holder: Callable[..., WriterLock], other: Callable[..., WriterLock]
) -> None:
    async with holder(home):
        with pytest.raises(BusyError):
            await other(home).__aenter__()


async def test_an_exclusive_server_lock_excludes_agents_and_servers(home: Installation) -> None:
    async with server(home):
        with pytest.raises(BusyError):
            await home.server_lock(timeout=0.0, alone=True).__aenter__()
    async with home.server_lock(timeout=0.0, alone=True):
        for refused in (agent(home), server(home), home.server_lock(timeout=0.0, alone=True)):
            with pytest.raises(BusyError):
                await refused.__aenter__()
    async with server(home):
        pass


async def test_a_refused_lock_holds_nothing(home: Installation) -> None:
    async with agent(home):
        for refused in (agent(home), server(home)):
            with pytest.raises(BusyError):
                await refused.__aenter__()
        async with agent(home, "other"):
            pass
    async with server(home):
        with pytest.raises(BusyError):
            await agent(home).__aenter__()
    async with server(home):
        pass


async def test_the_lock_is_free_after_an_exception_in_its_block(home: Installation) -> None:
    with pytest.raises(RuntimeError, match="broken"):
        async with agent(home):
            raise RuntimeError("broken")
    async with agent(home):
        pass


async def test_a_waiter_gets_the_lock_as_soon_as_it_is_released(home: Installation) -> None:
    first, second = agent(home), agent(home, timeout=5.0)
    async with first:
        waiting = asyncio.create_task(second.__aenter__())
        await asyncio.sleep(0.1)
        assert not waiting.done()
    async with asyncio.timeout(3.0):
        await waiting
    await second.__aexit__(None, None, None)
    async with agent(home):
        pass


async def test_a_cancelled_waiter_does_not_take_the_lock_afterwards(home: Installation) -> None:
    for turn in range(20):
        lock = agent(home)
        attempt = asyncio.create_task(lock.__aenter__())
        await asyncio.sleep(0.0005 * turn)
        attempt.cancel()
        [done] = await asyncio.gather(attempt, return_exceptions=True)
        if done is None:  # it was quicker
            await lock.__aexit__(None, None, None)
        async with agent(home, timeout=2.0):
            pass


async def test_tasks_take_turns(home: Installation) -> None:
    inside = 0

    async def work() -> None:
        nonlocal inside
        async with agent(home, timeout=10.0):
            inside += 1
            assert inside == 1
            await asyncio.sleep(0.01)
            with pytest.raises(BusyError):
                await agent(home).__aenter__()
            inside -= 1

    await asyncio.gather(*(work() for _ in range(4)))


async def test_a_waiter_that_gives_up_leaves_the_lock_held(home: Installation) -> None:
    async with agent(home):
        with pytest.raises(BusyError):
            await agent(home, timeout=0.1).__aenter__()
        waiting = asyncio.create_task(agent(home, timeout=0.1).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        await asyncio.sleep(0.02)
        with pytest.raises(BusyError):
            await agent(home).__aenter__()


async def test_a_thread_id_may_hold_anything(home: Installation, tmp_path: Path) -> None:
    odd = "../a b/\n" + "x" * 500
    before = os.listdir(tmp_path)
    async with agent(home, odd):
        with pytest.raises(BusyError) as refused:
            await agent(home, odd).__aenter__()
    assert "\n" not in str(refused.value)
    assert os.listdir(tmp_path) == before


async def test_the_error_names_the_process_that_runs_the_agent(home: Installation) -> None:
    with holder("agent", home) as (process, _):
        with pytest.raises(BusyError) as refused:
            await agent(home, timeout=0.1).__aenter__()
        assert str(refused.value) == (
            f"the agent with thread 't' is in use by process {process.pid} (circadian): "
            "wait until it has ended, or stop it"
        )


async def test_the_error_names_the_server(home: Installation) -> None:
    with (
        holder("server", home) as (process, _),
        pytest.raises(BusyError, match=rf"agent .* process {process.pid} \(server\)"),
    ):
        await agent(home).__aenter__()


async def test_the_error_for_a_server_names_the_running_agent(home: Installation) -> None:
    async with server(home):  # its name stays in a folder's file
        pass
    async with agent(home, "idle"):
        pass
    with (
        holder("agent", home) as (process, _),
        pytest.raises(BusyError, match=rf"{home.name} .* process {process.pid} \(circadian\)"),
    ):
        await server(home).__aenter__()


@pytest.mark.parametrize("kind", ["agent", "server"])
async def test_the_lock_of_a_killed_process_is_free(home: Installation, kind: str) -> None:
    with holder(kind, home) as (process, _):
        process.kill()
        process.join()
        async with server(home, timeout=2.0):
            pass
        async with agent(home, timeout=2.0):
            pass


async def test_a_waiter_takes_the_lock_of_a_process_that_ends(home: Installation) -> None:
    with holder("agent", home) as (_, told):
        lock = agent(home, timeout=10.0)
        waiting = asyncio.create_task(lock.__aenter__())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        told.send("end")
        await waiting
        await lock.__aexit__(None, None, None)


async def test_the_error_shows_nothing_of_an_earlier_holder(tmp_path: Path) -> None:
    home = folder_in(tmp_path)
    with held(home.path, role="a role with a longer name"):
        pass
    with held(home.path, role="tick"), pytest.raises(BusyError) as refused:
        await agent(home, thread_id(LOCAL_USER, "default")).__aenter__()
    assert f"by process {os.getpid()} (tick): wait" in str(refused.value)


async def test_a_lock_file_that_cannot_be_opened_leaves_nothing_held(tmp_path: Path) -> None:
    home = folder_in(tmp_path)
    async with agent(home):
        pass
    [file] = home.locks_dir.glob("agent-*.lock")
    file.unlink()
    file.mkdir()
    with pytest.raises(IsADirectoryError):
        await agent(home).__aenter__()
    file.rmdir()
    async with server(home):
        pass
