"""Connections to PostgreSQL: cut off, short of, refused; and what may stand in a text."""

import asyncio
from typing import Any

import psycopg
import pytest
from langgraph.store.base import PutOp
from pydantic import SecretStr

from graph.persistence import open_saver, open_store
from memory.errors import DatabaseDown, MemoryStoreError, accepting
from memory.events import inbox
from memory.installation.database import Database
from memory.storage.postgres import connections as pools
from memory.storage.postgres.connections import BlockingPool, Pool, address_of, transaction
from tests.support.lock_connections import home as home
from tests.support.saver_graph import Story, thread

INBOX, OTHER = ("local", "t", inbox.INBOX), ("local", "t", "other")


async def test_lost_connections_are_replaced_without_an_error(home: Database) -> None:
    async with open_store(home) as store, open_saver(home) as saver:
        graph = Story().compile(saver)
        for _ in range(3):
            await graph.ainvoke({}, thread())
            await store.aput(OTHER, "a", {})
            with pytest.raises(DatabaseDown):
                async with Pool(home.address) as pool, transaction(pool) as cursor:
                    await cursor.execute(
                        "SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity"
                        " WHERE datname = current_database() ORDER BY pid = pg_backend_pid()"
                    )
        assert (await graph.aget_state(thread())).values["count"] == 333


def test_a_thread_never_gets_a_connection_that_the_server_closed(home: Database) -> None:
    with BlockingPool(home.address) as pool:
        for _ in range(3):
            with pool.connection() as conn, psycopg.connect(home.address.conninfo) as other:
                other.execute("SELECT pg_terminate_backend(%s, 2000)", (conn.info.backend_pid,))
            with pool.connection() as conn:
                conn.execute("SELECT 1")


async def test_a_connection_lost_during_commit_is_reported_as_uncertain(home: Database) -> None:
    async with open_store(home) as store:
        pool: Any = getattr(store, "pool", None)
        async with transaction(pool) as cursor:
            await cursor.execute(
                "CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
            )
            await cursor.execute(
                "CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON store DEFERRABLE INITIALLY DEFERRED"
                " FOR EACH ROW WHEN (NEW.key = 'cut') EXECUTE FUNCTION cut()"
            )
        with (
            accepting(),
            pytest.raises(
                DatabaseDown, match="it is unknown whether what was just sent was accepted"
            ),
        ):
            await store.abatch([PutOp(INBOX, "cut", {})])
        with pytest.raises(DatabaseDown, match="the work in hand stopped there"):
            await store.abatch([PutOp(INBOX, "cut", {})])
        await store.aput(INBOX, "a", {})


async def test_callers_wait_for_each_other_without_a_timeout(
    home: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(pools._POOLED, "timeout", 1.0)
    async with Pool(address_of(SecretStr(home.address.conninfo))) as pool:

        async def one() -> None:
            async with transaction(pool) as cursor:
                await cursor.execute("SELECT pg_sleep(0.5)")

        await asyncio.gather(*(one() for _ in range(4 * pools.SIZE)))


async def test_nul_characters_are_replaced(home: Database) -> None:
    text = "a nul \0 and \\u0000 and a \\ before it \\\0"
    kept = text.replace("\0", "\ufffd")
    async with open_store(home) as store, open_saver(home) as saver:
        await store.aput(OTHER, "a", {"text": text, "\0": [text]})
        found = await store.aget(OTHER, "a")
        assert found is not None
        assert found.value == {"text": kept, "\ufffd": [kept]}
        graph = Story().compile(saver)
        await graph.ainvoke({"blob": text}, thread())
        assert (await graph.aget_state(thread())).values["blob"] == kept


async def test_a_refused_statement_is_one_line_with_the_database(home: Database) -> None:
    async with Pool(home.address) as pool:
        with pytest.raises(MemoryStoreError) as refused:
            async with transaction(pool) as cursor:
                await cursor.execute("SELECT nothing FROM nowhere")
    assert not isinstance(refused.value, DatabaseDown)
    assert str(refused.value).startswith(f"the database {home.name} refused (relation")
    assert "\n" not in str(refused.value)
