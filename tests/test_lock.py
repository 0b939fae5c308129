"""The writer's lock, between handles of one process and between processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memory.errors import BusyError
from memory.lock import AgentLock, FolderLock
from tests.source_files import ROOT

HOLDER = """
import asyncio, sys
from pathlib import Path
from memory.lock import AgentLock, FolderLock
async def main():
    kind, folder, thread = sys.argv[1:]
    locks = Path(folder)
    lock = AgentLock(locks, thread, role="chat") if kind == "agent" else FolderLock(locks)
    async with lock:
        print("held", flush=True)
        sys.stdin.read()
asyncio.run(main())
"""


@contextmanager
def holder(kind: str, locks: Path, thread: str = "t") -> Iterator[subprocess.Popen[str]]:
    """A second process that has the lock until it is killed or its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, kind, str(locks), thread],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def agent(locks: Path, thread: str = "t", timeout: float = 0.0) -> AgentLock:
    return AgentLock(locks, thread, timeout=timeout)


def folder(locks: Path, timeout: float = 0.0) -> FolderLock:
    return FolderLock(locks, timeout=timeout)


def agent_file(locks: Path) -> Path:
    return next(locks.glob("agent-*.lock"))


async def test_two_handles_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    async with agent(tmp_path):
        with pytest.raises(BusyError):
            await agent(tmp_path).acquire()


async def test_two_agents_of_one_folder_run_side_by_side(tmp_path: Path) -> None:
    async with agent(tmp_path, "a"), agent(tmp_path, "b"):
        pass


async def test_a_folder_and_its_agents_exclude_each_other(tmp_path: Path) -> None:
    async with agent(tmp_path):
        with pytest.raises(BusyError):
            await folder(tmp_path).acquire()
    async with folder(tmp_path):
        with pytest.raises(BusyError):
            await agent(tmp_path).acquire()
        with pytest.raises(BusyError):
            await folder(tmp_path).acquire()


async def test_a_refused_agent_lock_keeps_no_hold_on_the_folder(tmp_path: Path) -> None:
    async with agent(tmp_path):
        with pytest.raises(BusyError):
            await agent(tmp_path).acquire()
    async with folder(tmp_path):
        pass


async def test_the_lock_is_free_after_an_exception_in_its_block(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="broken"):
        async with agent(tmp_path):
            raise RuntimeError("broken")
    async with agent(tmp_path):
        pass


async def test_releasing_twice_is_harmless(tmp_path: Path) -> None:
    lock = agent(tmp_path)
    await lock.acquire()
    lock.release()
    lock.release()
    async with agent(tmp_path):
        pass


async def test_a_waiter_gets_the_lock_as_soon_as_it_is_released(tmp_path: Path) -> None:
    first, second = agent(tmp_path), agent(tmp_path, timeout=5.0)
    await first.acquire()
    waiting = asyncio.create_task(second.acquire())
    await asyncio.sleep(0.02)
    assert not waiting.done()
    first.release()
    await asyncio.wait_for(waiting, 1.0)
    second.release()


async def test_a_cancelled_waiter_does_not_take_the_lock_afterwards(tmp_path: Path) -> None:
    for _ in range(20):
        attempt = asyncio.create_task(agent(tmp_path).acquire())
        await asyncio.sleep(0)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
    async with agent(tmp_path, timeout=2.0):
        pass


async def test_tasks_that_share_a_handle_take_turns(tmp_path: Path) -> None:
    shared, inside = agent(tmp_path, timeout=5.0), 0

    async def work() -> None:
        nonlocal inside
        async with shared:
            inside += 1
            assert inside == 1
            await asyncio.sleep(0.01)
            with pytest.raises(BusyError):
                await agent(tmp_path).acquire()
            inside -= 1

    await asyncio.gather(*(work() for _ in range(4)))


async def test_a_waiter_that_shares_the_handle_and_gives_up_leaves_the_holder_its_lock(
    tmp_path: Path,
) -> None:
    shared = agent(tmp_path, timeout=0.1)
    async with shared:
        with pytest.raises(BusyError):
            await shared.acquire()
        waiting = asyncio.create_task(shared.acquire())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        await asyncio.sleep(0.02)
        with pytest.raises(BusyError):
            await agent(tmp_path).acquire()


async def test_a_thread_id_may_hold_anything(tmp_path: Path) -> None:
    odd = "../a b/\n" + "x" * 500
    async with agent(tmp_path / "locks", odd):
        with pytest.raises(BusyError) as refused:
            await agent(tmp_path / "locks", odd).acquire()
    assert "\n" not in str(refused.value)
    assert os.listdir(tmp_path) == ["locks"]


async def test_the_error_names_the_process_that_runs_the_agent(tmp_path: Path) -> None:
    with holder("agent", tmp_path) as process:
        with pytest.raises(BusyError) as refused:
            await agent(tmp_path, timeout=0.1).acquire()
        assert str(refused.value) == (
            f"the agent with thread 't' is in use by process {process.pid} (chat): "
            "wait until it has ended, or stop it"
        )


async def test_the_error_names_the_server_that_has_the_folder(tmp_path: Path) -> None:
    with holder("folder", tmp_path) as process:
        with pytest.raises(BusyError, match=rf"agent .* process {process.pid} \(server\)"):
            await agent(tmp_path).acquire()
        with pytest.raises(BusyError, match=rf"folder .* process {process.pid} \(server\)"):
            await folder(tmp_path).acquire()


async def test_a_server_is_told_which_agent_is_running(tmp_path: Path) -> None:
    async with folder(tmp_path):  # its name stays in the file
        pass
    async with agent(tmp_path, "idle"):
        pass
    with (
        holder("agent", tmp_path) as process,
        pytest.raises(BusyError, match=rf"process {process.pid} \(chat\)"),
    ):
        await folder(tmp_path).acquire()


@pytest.mark.parametrize("kind", ["agent", "folder"])
async def test_the_lock_of_a_killed_process_is_free(tmp_path: Path, kind: str) -> None:
    with holder(kind, tmp_path) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        async with folder(tmp_path):
            pass
        async with agent(tmp_path):
            pass


async def test_the_lock_of_a_process_that_ends_is_taken_by_the_one_that_waits(
    tmp_path: Path,
) -> None:
    with holder("agent", tmp_path) as process:
        waiting = asyncio.create_task(agent(tmp_path, timeout=10.0).acquire())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        assert process.stdin is not None
        process.stdin.close()
        await waiting


async def test_a_longer_name_left_by_an_earlier_holder_is_not_shown(tmp_path: Path) -> None:
    async with AgentLock(tmp_path, "t", role="a role with a longer name"):
        pass
    async with AgentLock(tmp_path, "t", role="tick"):
        with pytest.raises(BusyError, match=rf"by process {os.getpid()} \(tick\): wait"):
            await agent(tmp_path).acquire()


async def test_a_lock_file_that_cannot_be_opened_leaves_nothing_held(tmp_path: Path) -> None:
    async with agent(tmp_path):
        pass
    file = agent_file(tmp_path)
    file.unlink()
    file.mkdir()
    with pytest.raises(IsADirectoryError):
        await agent(tmp_path).acquire()
    file.rmdir()
    async with folder(tmp_path):
        pass
