"""The writer's lock in a database: what happens when its connection is lost, and who holds it."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from memory.errors import BusyError, DatabaseDown
from memory.postgres import lock as locks
from memory.postgres.address import Address, address_of
from memory.postgres.lock import DatabaseAgentLock, DatabaseServerLock, LockConnections
from memory.postgres.schema import lock_key
from tests.lock_connections import cut_off
from tests.postgres import Postgres


@pytest.fixture
def address(postgres_url: str) -> Address:
    return address_of(SecretStr(postgres_url))


def agent_lock(address: Address, thread: str, **options: Any) -> DatabaseAgentLock:
    """A lock that has the connection to itself."""
    return DatabaseAgentLock(LockConnections(address), thread, **options)


async def test_a_run_whose_lock_was_lost_is_stopped_and_told_why(
    address: Address, admin: psycopg.Connection[Any]
) -> None:
    began, went_on = asyncio.Event(), asyncio.Event()

    async def run() -> None:
        async with agent_lock(address, "t"):
            began.set()
            await asyncio.sleep(30)
            went_on.set()

    running = asyncio.create_task(run())
    await began.wait()
    assert cut_off(admin) == 1
    await asyncio.wait({running}, timeout=3.0)
    assert running.done()
    with pytest.raises(DatabaseDown, match=r"closed the connection .* run again, and it goes"):
        await running
    assert not went_on.is_set()
    assert not running.cancelled()
    async with agent_lock(address, "t", timeout=0):
        pass


async def test_a_block_that_ended_before_it_could_be_stopped_ends_as_it_did(
    address: Address, admin: psycopg.Connection[Any]
) -> None:
    async def run(error: Exception | None) -> str:
        lock = agent_lock(address, "t")
        async with lock:
            lock._lost()  # as its connection's end would
            if error is not None:
                raise error
        await asyncio.sleep(0)
        return "done"

    assert await asyncio.create_task(run(None)) == "done"
    with pytest.raises(ValueError, match="its own"):
        await asyncio.create_task(run(ValueError("its own")))


async def test_a_run_that_is_cancelled_by_a_person_is_just_cancelled(address: Address) -> None:
    async def run() -> None:
        async with agent_lock(address, "t"):
            await asyncio.sleep(30)

    running = asyncio.create_task(run())
    await asyncio.sleep(0.1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    async with agent_lock(address, "t", timeout=0):
        pass


async def test_a_server_takes_its_lock_again(
    address: Address,
    admin: psycopg.Connection[Any],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    retaken, retake = asyncio.Event(), DatabaseServerLock._retaken

    async def told(self: DatabaseServerLock) -> Any:
        try:
            return await retake(self)
        finally:
            retaken.set()

    with caplog.at_level(logging.WARNING):
        async with DatabaseServerLock(address):
            monkeypatch.setattr(DatabaseServerLock, "_retaken", told)
            assert cut_off(admin) == 1
            async with asyncio.timeout(5.0):
                await retaken.wait()
            with pytest.raises(BusyError, match=r"\(server\)"):
                await agent_lock(address, "t", timeout=0).acquire()
            assert cut_off(admin) >= 1
    assert "closed the connection that held the server's lock" in caplog.text
    async with agent_lock(address, "t", timeout=2.0):
        pass


async def test_a_holder_on_another_host_is_named_with_it(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_host", lambda: "pelican")
    held = agent_lock(address, "t", role="chat")
    async with held:
        monkeypatch.setattr(locks, "_host", lambda: "heron")
        with pytest.raises(BusyError, match=r"process \d+ \(chat\) on pelican: wait"):
            await agent_lock(address, "t", timeout=0).acquire()


async def test_a_holder_that_is_none_of_ours_is_named_by_its_connection(
    address: Address, admin: psycopg.Connection[Any]
) -> None:
    admin.execute("SET application_name = 'psql'")
    admin.execute("SELECT pg_advisory_lock(%s)", (lock_key("agent", "t"),))
    with pytest.raises(BusyError, match=rf"in use by connection {admin.info.backend_pid} \(psql\)"):
        await agent_lock(address, "t", timeout=0).acquire()


async def test_the_same_thread_in_another_database_is_another_agent(
    postgres: Postgres, address: Address
) -> None:
    other = postgres.database()
    async with (
        agent_lock(address, "t", timeout=0),
        agent_lock(address_of(SecretStr(other)), "t", timeout=0),
        DatabaseServerLock(address_of(SecretStr(postgres.url())), timeout=0),
    ):
        pass
    postgres.drop(other)


async def test_a_server_is_waited_for_only_as_long_as_its_restart_takes(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "SERVER_PATIENCE", 0.2)
    async with DatabaseServerLock(address):
        began = time.monotonic()
        with pytest.raises(BusyError):
            await agent_lock(address, "t", timeout=20.0).acquire()
        assert 0.2 <= time.monotonic() - began < 5


async def test_a_database_that_is_down_gives_no_lock(own_postgres: Postgres) -> None:
    address = address_of(SecretStr(own_postgres.database()))
    own_postgres.stop()
    for lock in (agent_lock(address, "t"), DatabaseServerLock(address)):
        began = time.monotonic()
        with pytest.raises(DatabaseDown, match="cannot be reached"):
            await lock.acquire()
        assert time.monotonic() - began < 3
