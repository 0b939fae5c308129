"""The locks of many agents by one connection, where it is slow to come, or does not come."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from memory.errors import DatabaseDown
from memory.postgres import lock as locks
from memory.postgres.database import Database
from tests.lock_connections import cut_off, gone


async def test_one_failed_attempt_to_connect_is_the_answer_to_all_who_waited_for_it(
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
    waits = [asyncio.create_task(home.agent_lock(f"t{n}").acquire()) for n in range(8)]
    await late.wait()
    comes_later = asyncio.create_task(home.agent_lock("late").acquire())
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


async def test_a_run_that_lost_its_lock_ends_without_waiting_for_a_database_that_hangs(
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
    waits = asyncio.create_task(other.acquire())
    async with asyncio.timeout(3.0):
        with pytest.raises(DatabaseDown, match="closed the connection"):
            await runs
    assert not waits.done()
    answers.set()
    await waits
    async with home.agent_lock("t", timeout=0):
        pass
    await other.release()
    assert await gone(admin)


async def test_who_is_cancelled_while_the_connection_is_made_leaves_no_lock_behind(
    home: Database, elsewhere: Database, admin: psycopg.Connection[Any]
) -> None:
    for _ in range(3):
        waits = asyncio.create_task(home.agent_lock("t").acquire())
        await asyncio.sleep(0.001)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        async with elsewhere.agent_lock("t", timeout=1.0):
            pass
        async with home.agent_lock("t", timeout=1.0):
            pass
    assert await gone(admin)
