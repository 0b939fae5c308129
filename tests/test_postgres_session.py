"""The locks of many agents by one connection: kept apart, given back, and all lost with it."""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import AsyncExitStack, suppress
from typing import Any

import psycopg
import pytest

from memory.errors import BusyError, DatabaseDown
from memory.postgres import lock as locks
from memory.postgres.database import Database
from memory.postgres.lock import DatabaseAgentLock
from tests.lock_connections import connections, cut_off, gone


async def test_more_agents_than_a_database_takes_connections_share_one(
    home: Database, elsewhere: Database, admin: psycopg.Connection[Any]
) -> None:
    [limit] = admin.execute("SELECT current_setting('max_connections')::int").fetchone() or [0]
    locks = [home.agent_lock(f"t{number}") for number in range(limit + 20)]
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(lock) for lock in locks))
        assert connections(admin) == 1
        with pytest.raises(BusyError, match=rf"by process {os.getpid()} \(circadian\): wait"):
            await elsewhere.agent_lock("t7", timeout=0).acquire()
        with pytest.raises(BusyError, match=rf"by process {os.getpid()} \(circadian\): wait"):
            await home.agent_lock("t7", timeout=0).acquire()
        with pytest.raises(BusyError):
            await elsewhere.server_lock(timeout=0).acquire()
    assert await gone(admin)
    async with elsewhere.server_lock(timeout=1.0):
        pass


async def test_what_one_gives_back_is_free_while_the_others_keep_theirs(
    home: Database, elsewhere: Database
) -> None:
    async with home.agent_lock("stays"):
        async with home.agent_lock("goes"):
            pass
        async with elsewhere.agent_lock("goes", timeout=0), home.agent_lock("third", timeout=0):
            with pytest.raises(BusyError):
                await home.agent_lock("goes", timeout=0).acquire()
        with pytest.raises(BusyError):
            await elsewhere.agent_lock("stays", timeout=0).acquire()
        with pytest.raises(BusyError):
            await elsewhere.server_lock(timeout=0).acquire()


async def test_when_the_connection_is_lost_each_run_is_stopped_and_nobody_else(
    home: Database, admin: psycopg.Connection[Any]
) -> None:
    all_hold, held = asyncio.Event(), 0

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
        await all_hold.wait()
        await asyncio.sleep(0.5)
        return "undisturbed"

    runs = [asyncio.create_task(run(number)) for number in range(10)]
    other = asyncio.create_task(bystander())
    await all_hold.wait()
    cut_off(admin)
    async with asyncio.timeout(5.0):
        ended = await asyncio.gather(*runs, return_exceptions=True)
    assert [type(one) for one in ended] == [DatabaseDown] * 10
    assert all("closed the connection that held the lock" in str(one) for one in ended)
    assert await other == "undisturbed"
    async with home.agent_lock("t3", timeout=0):
        assert connections(admin) == 1
    assert await gone(admin)


async def test_who_comes_as_the_connection_is_lost_gets_the_lock_by_another(
    home: Database, admin: psycopg.Connection[Any]
) -> None:
    holding = asyncio.Event()

    async def run() -> None:
        async with home.agent_lock("a"):
            holding.set()
            await asyncio.sleep(30)

    task = asyncio.create_task(run())
    await holding.wait()
    cut_off(admin)  # and nothing else runs before the next line asks
    async with home.agent_lock("b", timeout=0):
        with pytest.raises(DatabaseDown):
            await task
        assert connections(admin) == 1


async def test_a_run_that_lost_its_lock_has_ended_before_the_next_one_here_begins(
    home: Database, admin: psycopg.Connection[Any]
) -> None:
    lock, told = home.agent_lock("t", timeout=5.0), []
    holding = asyncio.Event()

    async def first() -> None:
        async with lock:
            holding.set()
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                await asyncio.sleep(0.3)  # what it does to end
                told.append("first ended")
                raise

    async def second() -> None:
        async with lock:
            told.append("second began")
            await asyncio.sleep(0.1)
            with pytest.raises(BusyError):
                await home.agent_lock("t", timeout=0).acquire()

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


async def test_those_who_are_cancelled_at_any_point_take_nothing_from_the_others(
    home: Database, elsewhere: Database, admin: psycopg.Connection[Any]
) -> None:
    chance, inside = random.Random(7), set[str]()

    async def use(lock: DatabaseAgentLock, thread: str) -> None:
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
            await elsewhere.agent_lock("stays", timeout=0).acquire()
        for number in range(5):
            async with elsewhere.agent_lock(f"t{number}", timeout=1.0):
                pass
    assert await gone(admin)


async def test_who_is_cancelled_as_it_asks_for_the_holder_takes_nothing_from_the_others(
    home: Database, elsewhere: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_HOLDERS", "SELECT pg_sleep(0.3)::text AS name, %s::bigint AS pid")
    async with elsewhere.agent_lock("theirs"), home.agent_lock("stays"):
        waits = asyncio.create_task(home.agent_lock("theirs", timeout=0).acquire())
        await asyncio.sleep(0.1)
        assert not waits.done()
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        with pytest.raises(BusyError):
            await elsewhere.agent_lock("stays", timeout=0).acquire()
        async with home.agent_lock("another", timeout=0):
            await asyncio.sleep(0.2)  # in which a loss would arrive


@pytest.mark.parametrize("steps", range(1, 6))
async def test_a_statement_that_is_broken_off_leaves_no_lost_connection_unnoticed(
    home: Database, admin: psycopg.Connection[Any], steps: int
) -> None:
    holding = asyncio.Event()

    async def run() -> None:
        async with home.agent_lock("a"):
            holding.set()
            await asyncio.sleep(30)

    runs = asyncio.create_task(run())
    await holding.wait()
    lock = home.agent_lock("b")
    await lock.acquire()
    others = asyncio.all_tasks()
    gives = asyncio.create_task(lock.release())
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


def test_each_event_loop_has_a_connection_of_its_own(home: Database) -> None:
    async def hold() -> None:
        async with home.agent_lock("t", timeout=5.0):
            await asyncio.to_thread(asyncio.run, refused())

    async def refused() -> None:
        with pytest.raises(BusyError):
            await home.agent_lock("t", timeout=0).acquire()
        async with home.agent_lock("other", timeout=0):
            pass

    asyncio.run(hold())
    asyncio.run(hold())
