"""One way to list, count and write, on any store: the fast one, the stock one and the test's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from graph.persistence import open_store
from memory import store_access
from memory.store_access import count_items, list_items, write_batch

NS = ("local", "t", "journal")
KINDS = ["circadian", "stock", "in memory"]


@asynccontextmanager
async def opened(kind: str, path: Path) -> AsyncIterator[BaseStore]:
    """A store of each kind that nodes may be given."""
    if kind == "circadian":
        async with open_store(path) as store:
            yield store
    elif kind == "stock":
        async with AsyncSqliteStore.from_conn_string(str(path)) as stock:
            await stock.setup()
            yield stock
    else:
        yield InMemoryStore()


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_access, "PAGE", 3)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_listing_is_of_one_namespace_exactly_and_in_the_order_of_keys(
    tmp_path: Path, kind: str
) -> None:
    async with opened(kind, tmp_path / "s.db") as store:
        keys = ["b", "a", "C", "ä", "e", "d", "10", "9"]
        await write_batch(store, [PutOp(NS, key, {"key": key}) for key in keys])
        await write_batch(store, [PutOp((*NS, "2026"), "below", {}), PutOp(NS[:2], "above", {})])
        found = await list_items(store, NS)
        assert [item.key for item in found] == sorted(keys)
        assert [item.value for item in found] == [{"key": key} for key in sorted(keys)]
        assert {item.namespace for item in found} == {NS}
        newest = await list_items(store, NS, limit=2, newest_first=True)
        assert [item.key for item in newest] == ["ä", "e"]
        assert [item.key for item in await list_items(store, NS, limit=4)] == sorted(keys)[:4]
        assert await list_items(store, ("none",)) == []


@pytest.mark.parametrize("kind", KINDS)
async def test_a_count_covers_a_prefix_by_whole_labels(tmp_path: Path, kind: str) -> None:
    async with opened(kind, tmp_path / "s.db") as store:
        await write_batch(store, [PutOp((*NS, str(n)), "k", {}) for n in range(7)])
        await write_batch(store, [PutOp(NS, "k", {}), PutOp(("local", "t", "journals"), "k", {})])
        assert await count_items(store, NS) == 8
        assert await count_items(store, ("local",)) == 9
        assert await count_items(store, ("loc",)) == 0


@pytest.mark.parametrize("kind", KINDS)
async def test_a_batch_writes_and_deletes(tmp_path: Path, kind: str) -> None:
    async with opened(kind, tmp_path / "s.db") as store:
        await write_batch(store, [PutOp(NS, "a", {}), PutOp(NS, "b", {})])
        await write_batch(store, [PutOp(NS, "a", None), PutOp(NS, "c", {})])
        await write_batch(store, [])
        assert [item.key for item in await list_items(store, NS)] == ["b", "c"]


async def test_a_failed_batch_wrote_nothing(tmp_path: Path) -> None:
    async with opened("circadian", tmp_path / "s.db") as store:
        with pytest.raises(TypeError):
            await write_batch(store, [PutOp(NS, "a", {}), PutOp(NS, "b", {"x": object()})])
        assert await list_items(store, NS) == []
