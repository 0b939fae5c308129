"""PostgreSQL's store alone: reads that need no transaction, and items that expire."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from langgraph.store.base import GetOp, Item, PutOp
from pydantic import SecretStr

from graph.persistence import open_store
from memory.installation.database import open_database
from memory.storage.postgres import store as stores
from memory.storage.postgres.connections import transaction

WHERE, ELSEWHERE = ("ada", "t", "here"), ("ada", "t", "there")


async def test_reads_begin_no_transaction(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(open_database(SecretStr(postgres_url), embedder="offline")) as store:
        await store.abatch([PutOp(WHERE, "a", {"n": 1}), PutOp(ELSEWHERE, "a", {"n": 2})])
        monkeypatch.setattr(stores, "transaction", None)
        gets = [GetOp(ELSEWHERE, "a"), GetOp(WHERE, "none"), GetOp(WHERE, "a"), GetOp(WHERE, "a")]
        found = await store.abatch(gets)
        values = [item.value if isinstance(item, Item) else item for item in found]
        assert values == [{"n": 2}, None, {"n": 1}, {"n": 1}]
        assert [item.namespace for item in found if isinstance(item, Item)] == [
            ELSEWHERE,
            WHERE,
            WHERE,
        ]


async def test_puts_are_one_statement_whose_last_value_counts(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(open_database(SecretStr(postgres_url), embedder="offline")) as store:
        await store.abatch([PutOp(WHERE, name, {"n": 1}) for name in "abcd"])
        before = await store.aget(WHERE, "b")
        monkeypatch.setattr(stores, "transaction", None)
        puts = [("c", None), ("c", {"n": 3}), ("d", {"n": 4}), ("b", {"n": 2}), ("d", None)]
        other = [PutOp(ELSEWHERE, "e", {"n": 2}), PutOp(WHERE, "a", None)]
        await store.abatch([*(PutOp(WHERE, *put) for put in puts), *other])
        gets = [GetOp(WHERE, name) for name in "abcd"] + [GetOp(ELSEWHERE, "e")]
        found = await store.abatch(gets)
        values = [item.value["n"] if isinstance(item, Item) else None for item in found]
        assert values == [None, 2, 3, None, 2]
        assert isinstance(found[1], Item)
        assert before is not None
        assert found[1].created_at == before.created_at
        assert found[1].updated_at > before.updated_at


async def test_reading_an_expiring_item_renews_it(postgres_url: str) -> None:
    async with open_store(open_database(SecretStr(postgres_url), embedder="offline")) as store:
        await store.abatch([PutOp(WHERE, "a", {"n": 1}, ttl=60), PutOp(WHERE, "b", {"n": 2})])

        async def expiry() -> datetime:
            pool: Any = getattr(store, "pool", None)
            async with transaction(pool) as cursor:
                await cursor.execute("SELECT expires_at FROM store WHERE key = 'a'")
                [row] = await cursor.fetchall()
            return row["expires_at"]  # type: ignore[no-any-return] # of a row

        before = await expiry()
        await store.abatch([GetOp(WHERE, "b")])
        await store.abatch([GetOp(WHERE, "a", refresh_ttl=False)])
        assert await expiry() == before
        found = await store.abatch([GetOp(WHERE, "a"), GetOp(WHERE, "b")])
        assert [item.value for item in found if isinstance(item, Item)] == [{"n": 1}, {"n": 2}]
        assert await expiry() > before
