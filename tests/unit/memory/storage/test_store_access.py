"""One way to list, count and write, on any store: the fast one, the stock one and the test's."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from graph.persistence import open_store
from memory.storage import access as store_access
from memory.storage.access import count_items, list_items, write_batch, write_new
from tests.support import homes
from tests.support.homes import home_of

NS = ("local", "t", "journal")
KINDS = [*homes.KINDS, "stock", "in memory"]


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BaseStore]:
    if request.param == "in memory":
        yield InMemoryStore()
    elif request.param == "stock":
        async with AsyncSqliteStore.from_conn_string(str(tmp_path / "s.db")) as stock:
            await stock.setup()
            yield stock
    else:
        async with open_store(home_of(request, tmp_path)) as ours:
            yield ours


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_access, "PAGE", 3)


async def test_a_listing_has_one_namespace_in_key_order(store: BaseStore) -> None:
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


async def test_a_count_matches_whole_labels(store: BaseStore) -> None:
    await write_batch(store, [PutOp((*NS, str(n)), "k", {}) for n in range(7)])
    beside = ("local", "t", "journals"), ("LOCAL", "t", "journal"), ("local", "t", "journal%", "x")
    await write_batch(store, [PutOp(one, "k", {}) for one in (NS, *beside)])
    assert await count_items(store, NS) == 8
    assert await count_items(store, ("local",)) == 10
    assert await count_items(store, ("loc",)) == 0
    assert await count_items(store, ()) == 11


async def test_a_batch_writes_and_deletes(store: BaseStore) -> None:
    await write_batch(store, [PutOp(NS, "a", {}), PutOp(NS, "b", {})])
    await write_batch(store, [PutOp(NS, "a", None), PutOp(NS, "c", {})])
    await write_batch(store, [])
    assert [item.key for item in await list_items(store, NS)] == ["b", "c"]


async def test_existing_values_are_not_overwritten(store: BaseStore) -> None:
    await write_batch(store, [PutOp(NS, "a", {"n": 1})])
    puts = [PutOp(NS, "c", {"n": 2}), PutOp(NS, "a", {"n": 2}), PutOp(NS, "b", {"n": 2})]
    assert await write_new(store, puts) == [{"n": 2}, {"n": 1}, {"n": 2}]
    assert await write_new(store, [PutOp(NS, "b", {"n": 3})]) == [{"n": 2}]
    assert [item.value["n"] for item in await list_items(store, NS)] == [1, 2, 2]


@pytest.mark.parametrize("store", homes.KINDS, indirect=True)
async def test_our_stores_look_and_write_in_one_step_so_that_the_first_of_two_writers_wins(
    store: BaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write_batch(store, [PutOp(NS, "b", {"n": 1})])
    monkeypatch.setattr(store, "abatch", None)
    assert await write_new(store, [PutOp(NS, "b", {"n": 2})]) == [{"n": 1}]
