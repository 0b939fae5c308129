"""Reads done together beforehand: they save calls, and never show what a write has changed."""

from typing import Any

import pytest
from langgraph.store.base import GetOp, Op, PutOp
from langgraph.store.memory import InMemoryStore

from graph.persistence import open_store
from memory.installation.opening import Installation
from memory.storage import list_items, read_ahead, read_values
from memory.storage.sqlite.store import QUICK_ROWS
from tests.support.homes import home as home

HERE, THERE, MANY = ("ada", "t", "here"), ("ada", "t", "there"), ("ada", "t", "many")


async def test_what_was_read_ahead_is_not_asked_for_again(
    home: Installation, monkeypatch: Any
) -> None:
    async with open_store(home) as store:
        await store.aput(HERE, "b", {"n": 2})
        await store.aput(HERE, "a", {"n": 1})
        await store.aput(THERE, "c", {"n": 3})
        await store.abatch([PutOp(MANY, f"{n:03d}", {"n": n}) for n in range(QUICK_ROWS)])
        ahead = await read_ahead(store, [HERE, MANY], [GetOp(THERE, "c"), GetOp(THERE, "d")])
        with monkeypatch.context() as patched:
            for name in ("abatch", "alist", "alook"):
                patched.setattr(store, name, None)
            gets = [GetOp(THERE, "c"), GetOp(THERE, "d"), GetOp(HERE, "a"), GetOp(HERE, "z")]
            found = await ahead.abatch(gets)
            assert [item and item.value["n"] for item in found] == [3, None, 1, None]  # type: ignore[union-attr]
            asked: Any = {HERE: ["a", "z"], THERE: ["c", "d"]}
            assert await read_values(ahead, asked) == {
                HERE: {"a": {"n": 1}},
                THERE: {"c": {"n": 3}},
            }
            assert [one.key for one in await list_items(ahead, HERE)] == ["a", "b"]
            newest = await list_items(ahead, HERE, limit=1, newest_first=True)
            assert [one.key for one in newest] == ["b"]
            patched.undo()
            await ahead.abatch([PutOp(HERE, "b", None)])
            patched.setattr(store, "alist", None)
            assert [one.key for one in await list_items(ahead, HERE)] == ["a"]
        assert len(await list_items(ahead, MANY)) == QUICK_ROWS


async def test_what_it_wrote_is_known_once_it_is_written(
    home: Installation, monkeypatch: Any
) -> None:
    async with open_store(home) as store:
        await store.aput(HERE, "b", {"n": 2})
        await store.aput(THERE, "c", {"n": 3})
        ahead = await read_ahead(store, [HERE], [GetOp(THERE, "c")])
        refused: list[Op] = [PutOp(HERE, "no", {"n": object()}), PutOp(THERE, "c", None)]
        with pytest.raises(TypeError):
            await ahead.abatch(refused)
        assert [one.key for one in await list_items(ahead, HERE)] == ["b"]
        assert (await ahead.abatch([GetOp(THERE, "c")]))[0] is not None
        ahead = await read_ahead(store, [HERE], [GetOp(THERE, "c")])
        await ahead.abatch([PutOp(HERE, "a", {"n": 4}), PutOp(THERE, "c", None)])
        with monkeypatch.context() as patched:
            for name in ("abatch", "alist", "alook"):
                patched.setattr(store, name, None)
            assert [one.key for one in await list_items(ahead, HERE)] == ["a", "b"]
            found = await ahead.abatch([GetOp(HERE, "a"), GetOp(THERE, "c")])
            assert [item and item.value["n"] for item in found] == [4, None]  # type: ignore[union-attr]


async def test_a_key_that_was_read_is_known(home: Installation, monkeypatch: Any) -> None:
    async with open_store(home) as store:
        await store.aput(HERE, "a", {"n": 1})
        ahead = await read_ahead(store, [])
        gets = [GetOp(HERE, "a"), GetOp(HERE, "b")]
        found = await ahead.abatch(gets)
        with monkeypatch.context() as patched:
            patched.setattr(store, "abatch", None)
            assert await ahead.abatch(gets) == found
        # Reads see what was there before the writes of their batch.
        both: list[Op] = [PutOp(HERE, "b", {"n": 2}), PutOp(HERE, "c", {"n": 3}), GetOp(HERE, "c")]
        assert (await ahead.abatch(both))[2] is None
        found = await ahead.abatch([*gets, GetOp(HERE, "c")])
        assert [item and item.value["n"] for item in found] == [1, 2, 3]  # type: ignore[union-attr]


async def test_a_read_is_not_remembered_where_a_write_came_between(
    home: Installation, monkeypatch: Any
) -> None:
    async with open_store(home) as store:
        await store.aput(HERE, "a", {"n": 1})
        ahead = await read_ahead(store, [])
        plain = store.abatch

        async def overtaken(ops: Any) -> Any:
            found = await plain(ops)
            monkeypatch.undo()
            await ahead.abatch([PutOp(HERE, "a", {"n": 2})])
            return found

        monkeypatch.setattr(store, "abatch", overtaken)
        assert [one and one.value["n"] for one in await ahead.abatch([GetOp(HERE, "a")])] == [1]  # type: ignore[union-attr]
        assert [one and one.value["n"] for one in await ahead.abatch([GetOp(HERE, "a")])] == [2]  # type: ignore[union-attr]


async def test_a_store_that_cannot_is_read_as_always() -> None:
    store = InMemoryStore()
    assert await read_ahead(store, [HERE]) is store
