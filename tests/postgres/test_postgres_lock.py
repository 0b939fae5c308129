"""The locks of a database: shared connections, lost connections, and who holds a lock."""

import asyncio
import logging
import os
import random
import time
from contextlib import AsyncExitStack, suppress
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from memory.errors import BusyError, DatabaseDown
from memory.installation import database as locks
from memory.installation.database import (
    Database,
    LockConnections,
    hold_agent,
    hold_server,
    open_database,
)
from memory.installation.folder import WriterLock
from memory.storage.postgres.connections import Address, address_of, lock_key
from tests.support.lock_connections import connections, cut_off, gone
from tests.support.postgres import Postgres


def installed(url: str) -> Address:
    open_database(SecretStr(url), offline=True).close()
    return address_of(SecretStr(url))


@pytest.fixture
def address(postgres_url: str) -> Address:
    return installed(postgres_url)


def agent_lock(address: Address, thread: str, *, timeout: float = 30.0) -> WriterLock:
    """A lock that has the connection to itself."""
    return hold_agent(LockConnections(), address, thread, patience=timeout)


def server_lock(address: Address, *, timeout: float = 30.0) -> WriterLock:
    return hold_server(address, patience=timeout)


async def run_under(lock: WriterLock) -> asyncio.Task[None]:
    began = asyncio.Event()

    async def run() -> None:
        async with lock:
            began.set()
            await asyncio.sleep(30)

    running = asyncio.create_task(run())
    await began.wait()
    return running


async def test_a_run_that_loses_its_lock_stops_with_database_down(
    address: Address, admin: psycopg.Connection[Any]
) -> None:
    running = await run_under(agent_lock(address, "t"))
    assert cut_off(admin) == 1
    await asyncio.wait({running}, timeout=3.0)
    assert running.done()
    with pytest.raises(DatabaseDown, match=r"closed the connection .* run again, and it goes"):
        await running
    assert not running.cancelled()
    async with agent_lock(address, "t", timeout=0):
        pass


async def test_a_run_that_ends_as_the_lock_is_lost_keeps_its_result(address: Address) -> None:
    connections = LockConnections()

    async def run(error: Exception | None) -> str:
        async with hold_agent(connections, address, "t"):
            [claim] = connections[asyncio.get_running_loop()].claims.values()
            claim.lose()  # as its connection's end would
            if error is not None:
                raise error
        await asyncio.sleep(0)
        return "done"

    assert await asyncio.create_task(run(None)) == "done"
    with pytest.raises(ValueError, match="its own"):
        await asyncio.create_task(run(ValueError("its own")))


async def test_a_cancelled_run_raises_cancelled_error(address: Address) -> None:
    running = await run_under(agent_lock(address, "t"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    async with agent_lock(address, "t", timeout=0):
        pass


async def test_a_server_retakes_a_lost_lock(
    address: Address, admin: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with server_lock(address):
            assert cut_off(admin) == 1
            for _ in range(250):
                if "is taken again" not in caplog.text:
                    await asyncio.sleep(0.02)
            with pytest.raises(BusyError, match=r"\(server\)"):
                await agent_lock(address, "t", timeout=0).__aenter__()
            assert cut_off(admin) >= 1
    assert "closed the connection that held the server's lock" in caplog.text
    async with agent_lock(address, "t", timeout=2.0):
        pass


async def test_the_error_names_the_host_of_a_remote_holder(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_host", lambda: "pelican")
    held = agent_lock(address, "t")
    async with held:
        monkeypatch.setattr(locks, "_host", lambda: "heron")
        with pytest.raises(BusyError, match=r"process \d+ \(circadian\) on pelican: wait"):
            await agent_lock(address, "t", timeout=0).__aenter__()


async def test_the_error_names_the_connection_of_a_foreign_holder(
    address: Address, admin: psycopg.Connection[Any]
) -> None:
    admin.execute("SET application_name = 'psql'")
    admin.execute("SELECT pg_advisory_lock(%s)", (lock_key("agent", "t"),))
    with pytest.raises(BusyError, match=rf"in use by connection {admin.info.backend_pid} \(psql\)"):
        await agent_lock(address, "t", timeout=0).__aenter__()


async def test_locks_of_two_databases_are_independent(postgres: Postgres, address: Address) -> None:
    other = postgres.database()
    async with (
        agent_lock(address, "t", timeout=0),
        agent_lock(installed(other), "t", timeout=0),
        server_lock(address_of(SecretStr(postgres.url())), timeout=0),
    ):
        pass
    postgres.drop(other)


async def test_an_agent_waits_only_briefly_for_a_server(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "SERVER_PATIENCE", 0.2)
    async with server_lock(address):
        began = time.monotonic()
        with pytest.raises(BusyError):
            await agent_lock(address, "t", timeout=20.0).__aenter__()
        assert 0.2 <= time.monotonic() - began < 5


async def test_a_database_that_is_down_is_reported_within_three_seconds(
    own_postgres: Postgres,
) -> None:
    address = installed(own_postgres.database())
    own_postgres.stop()
    for lock in (agent_lock(address, "t"), server_lock(address)):
        began = time.monotonic()
        with pytest.raises(DatabaseDown, match="cannot be reached"):
            await lock.__aenter__()
        assert time.monotonic() - began < 3


async def test_more_agents_than_max_connections_share_one_connection(
    home: Database, elsewhere: Database, admin: psycopg.Connection[Any]
) -> None:
    [limit] = admin.execute("SELECT current_setting('max_connections')::int").fetchone() or [0]
    locks = [home.agent_lock(f"t{number}") for number in range(limit + 20)]
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(lock) for lock in locks))
        assert connections(admin) == 1
        with pytest.raises(BusyError, match=rf"by process {os.getpid()} \(circadian\): wait"):
            await elsewhere.agent_lock("t7", timeout=0).__aenter__()
        with pytest.raises(BusyError, match=rf"by process {os.getpid()} \(circadian\): wait"):
            await home.agent_lock("t7", timeout=0).__aenter__()
        with pytest.raises(BusyError):
            await elsewhere.server_lock(timeout=0).__aenter__()
    assert await gone(admin)
    async with elsewhere.server_lock(timeout=1.0):
        pass


async def test_a_released_lock_is_free_while_others_stay_held(
    home: Database, elsewhere: Database
) -> None:
    async with home.agent_lock("stays"):
        async with home.agent_lock("goes"):
            pass
        async with elsewhere.agent_lock("goes", timeout=0), home.agent_lock("third", timeout=0):
            with pytest.raises(BusyError):
                await home.agent_lock("goes", timeout=0).__aenter__()
        with pytest.raises(BusyError):
            await elsewhere.agent_lock("stays", timeout=0).__aenter__()
        with pytest.raises(BusyError):
            await elsewhere.server_lock(timeout=0).__aenter__()


async def test_a_lost_connection_stops_every_holder_and_nobody_else(
    home: Database, admin: psycopg.Connection[Any]
) -> None:
    all_hold, released, held = asyncio.Event(), asyncio.Event(), 0

    async def run(number: int) -> None:
        nonlocal held
        async with home.agent_lock(f"t{number}"):
            held += 1
            if held == 10:
                all_hold.set()
            await asyncio.sleep(30)

    async def bystander() -> str:
        async with home.agent_lock("ended"):
            pass
        released.set()
        await all_hold.wait()
        await asyncio.sleep(0.5)
        return "undisturbed"

    runs = [asyncio.create_task(run(number)) for number in range(10)]
    other = asyncio.create_task(bystander())
    await all_hold.wait()
    await released.wait()
    cut_off(admin)
    async with asyncio.timeout(5.0):
        ended = await asyncio.gather(*runs, return_exceptions=True)
    assert [type(one) for one in ended] == [DatabaseDown] * 10
    assert all("closed the connection that held the lock" in str(one) for one in ended)
    assert await other == "undisturbed"
    async with home.agent_lock("t3", timeout=0):
        assert connections(admin) == 1
    assert await gone(admin)


async def test_an_attempt_on_a_lost_connection_opens_another(
    home: Database, admin: psycopg.Connection[Any]
) -> None:
    task = await run_under(home.agent_lock("a"))
    cut_off(admin)  # and nothing else runs before the next line asks
    async with home.agent_lock("b", timeout=0):
        with pytest.raises(DatabaseDown):
            await task
        assert connections(admin) == 1


async def test_a_lost_lock_is_taken_here_only_after_its_run_has_ended(
    home: Database, admin: psycopg.Connection[Any]
) -> None:
    holding, told = asyncio.Event(), []

    async def first() -> None:
        async with home.agent_lock("t", timeout=5.0):
            holding.set()
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                await asyncio.sleep(0.3)  # what it does to end
                told.append("first ended")
                raise

    async def second() -> None:
        async with home.agent_lock("t", timeout=5.0):
            told.append("second began")
            await asyncio.sleep(0.1)
            with pytest.raises(BusyError):
                await home.agent_lock("t", timeout=0).__aenter__()

    runs = asyncio.create_task(first())
    await holding.wait()
    waits = asyncio.create_task(second())
    await asyncio.sleep(0.1)
    cut_off(admin)
    with pytest.raises(DatabaseDown):
        await runs
    await waits
    assert told == ["first ended", "second began"]
    assert await gone(admin)


async def test_cancelling_at_random_points_never_breaks_exclusion(
    home: Database, elsewhere: Database, admin: psycopg.Connection[Any]
) -> None:
    chance, inside = random.Random(7), set[str]()

    async def use(lock: WriterLock, thread: str) -> None:
        async with lock:
            assert thread not in inside
            inside.add(thread)
            try:
                await asyncio.sleep(0.002)
            finally:
                inside.remove(thread)

    async def live(number: int) -> None:
        thread = f"t{number % 5}"
        for _ in range(6):
            lock = chance.choice((home, elsewhere)).agent_lock(thread, timeout=20.0)
            task = asyncio.create_task(use(lock, thread))
            if chance.random() < 0.5:
                await asyncio.sleep(chance.random() * 0.02)
                task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async with home.agent_lock("stays"):
        await asyncio.gather(*(live(number) for number in range(20)))
        with pytest.raises(BusyError):
            await elsewhere.agent_lock("stays", timeout=0).__aenter__()
        for number in range(5):
            async with elsewhere.agent_lock(f"t{number}", timeout=1.0):
                pass
    assert await gone(admin)


async def test_cancelling_the_question_for_the_holder_keeps_other_locks(
    home: Database, elsewhere: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_HOLDERS", "SELECT pg_sleep(0.3)::text AS name, %s::bigint AS pid")
    async with elsewhere.agent_lock("theirs"), home.agent_lock("stays"):
        waits = asyncio.create_task(home.agent_lock("theirs", timeout=0).__aenter__())
        await asyncio.sleep(0.1)
        assert not waits.done()
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        with pytest.raises(BusyError):
            await elsewhere.agent_lock("stays", timeout=0).__aenter__()
        async with home.agent_lock("another", timeout=0):
            await asyncio.sleep(0.2)  # in which a loss would arrive


@pytest.mark.parametrize("steps", range(1, 6))
async def test_a_lost_connection_is_noticed_after_an_interrupted_statement(
    home: Database, admin: psycopg.Connection[Any], steps: int
) -> None:
    runs = await run_under(home.agent_lock("a"))
    lock = home.agent_lock("b")
    await lock.__aenter__()
    others = asyncio.all_tasks()
    gives = asyncio.create_task(lock.__aexit__(None, None, None))
    for _ in range(steps):
        await asyncio.sleep(0)
    for task in asyncio.all_tasks() - others:  # as who ends all tasks of the loop does
        task.cancel()
    with suppress(asyncio.CancelledError):
        await gives
    cut_off(admin)
    async with asyncio.timeout(3.0):
        with pytest.raises(DatabaseDown):
            await runs


def test_each_event_loop_has_its_own_connection(home: Database) -> None:
    async def hold() -> None:
        async with home.agent_lock("t", timeout=5.0):
            await asyncio.to_thread(asyncio.run, refused())

    async def refused() -> None:
        with pytest.raises(BusyError):
            await home.agent_lock("t", timeout=0).__aenter__()
        async with home.agent_lock("other", timeout=0):
            pass

    asyncio.run(hold())
    asyncio.run(hold())


async def test_agents_share_one_failed_attempt_to_connect(
    home: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, tried, late = locks.connect, [], asyncio.Event()

    async def hang(*given: Any) -> Any:
        tried.append(given)
        if len(tried) > 1:
            await asyncio.sleep(5)
        await asyncio.sleep(0.1)
        late.set()
        raise psycopg.OperationalError("no answer")

    monkeypatch.setattr(locks, "connect", hang)
    waits = [asyncio.create_task(home.agent_lock(f"t{n}").__aenter__()) for n in range(8)]
    await late.wait()
    comes_later = asyncio.create_task(home.agent_lock("late").__aenter__())
    async with asyncio.timeout(3.0):
        ended = await asyncio.gather(*waits, return_exceptions=True)
    assert [(type(one), "no answer" in str(one)) for one in ended] == [(DatabaseDown, True)] * 8
    await asyncio.sleep(0.05)
    assert (len(tried), comes_later.done()) == (2, False)
    comes_later.cancel()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.wait({comes_later})
    monkeypatch.setattr(locks, "connect", connect)
    async with home.agent_lock("t3", timeout=0), home.agent_lock("late", timeout=0):
        pass


async def test_a_run_that_loses_its_lock_does_not_wait_for_a_hanging_database(
    home: Database, admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, holding = locks.connect, asyncio.Event()
    hangs, answers = asyncio.Event(), asyncio.Event()

    async def hang(*given: Any) -> Any:
        hangs.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(answers.wait(), 5)
        return await connect(*given)

    async def run() -> None:
        async with home.agent_lock("t"):
            holding.set()
            try:
                await asyncio.sleep(30)
            finally:
                await hangs.wait()

    runs = asyncio.create_task(run())
    await holding.wait()
    monkeypatch.setattr(locks, "connect", hang)
    cut_off(admin)
    other = home.agent_lock("other", timeout=5.0)
    waits = asyncio.create_task(other.__aenter__())
    async with asyncio.timeout(3.0):
        with pytest.raises(DatabaseDown, match="closed the connection"):
            await runs
    assert not waits.done()
    answers.set()
    await waits
    async with home.agent_lock("t", timeout=0):
        pass
    await other.__aexit__(None, None, None)
    assert await gone(admin)
