"""PostgreSQL's store alone: shared statements, reads without a transaction, items that expire."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langgraph.store.base import GetOp, Item, PutOp
from psycopg.errors import QueryCanceled
from psycopg_pool import PoolTimeout
from pydantic import SecretStr

from graph.persistence import open_store
from memory.errors import MemoryStoreError
from memory.installation.database import open_database
from memory.storage.postgres import store as stores
from memory.storage.postgres.connections import LANES, Shared

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


async def test_calls_at_once_share_statements_and_a_bad_one_fails_alone(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(open_database(SecretStr(postgres_url), embedder="offline")) as store:
        pool: Any = getattr(store, "pool", None)
        sent = count(monkeypatch, pool)

        async def put(number: int) -> None:
            await store.abatch(
                [PutOp(WHERE, "bad\0" if number == 7 else f"{number}", {"n": number})]
            )

        ended = await asyncio.gather(*map(put, range(20)), return_exceptions=True)
        assert [number for number, one in enumerate(ended) if one is not None] == [7]
        assert isinstance(ended[7], MemoryStoreError)
        assert sent() == LANES + 1 + 18, "alone again, after they were refused together"
        await asyncio.gather(*map(put, range(20, 40)))
        assert sent() <= LANES + 2

        async def get(name: str) -> Any:
            look: Any = store
            [item], [listed] = await look.alook([GetOp(WHERE, name)], [WHERE])
            listed[int(name) - 20].value["changed"] = True
            return item.value["n"], sum(one.value.get("changed", False) for one in listed)

        names = [f"{number}" for number in range(20, 40)]
        assert [*await asyncio.gather(*map(get, [*names, "20"]))] == [
            *((int(name), 1) for name in names),
            (20, 1),
        ]
        assert sent() <= LANES + 2


async def test_a_cancelled_callers_part_is_not_sent_any_more_or_ends_first() -> None:
    sent, gates = list[list[str]](), [asyncio.Event() for _ in range(LANES + 1)]

    async def send(parts: Sequence[str]) -> Sequence[str]:
        sent.append([*parts])
        await gates[len(sent) - 1].wait()
        return parts

    shared = Shared(send)
    first = [asyncio.create_task(shared(f"first {number}")) for number in range(LANES)]
    await asyncio.sleep(0)
    dropped, late, other = (asyncio.create_task(shared(one)) for one in ("gone", "late", "other"))
    await asyncio.sleep(0)
    dropped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dropped
    gates[0].set()
    await first[0]
    await asyncio.sleep(0.01)
    late.cancel()
    await asyncio.sleep(0.01)
    assert not late.done()
    for gate in gates:
        gate.set()
    assert await asyncio.gather(*first, other) == ["first 0", "first 1", "other"]
    assert late.cancelled()
    assert sent == [["first 0"], ["first 1"], ["late", "other"]]


async def test_what_the_database_refuses_one_caller_is_told_to_that_one_alone() -> None:
    gate, cancelled = asyncio.Event(), QueryCanceled("canceling statement due to lock timeout")

    async def send(parts: Sequence[str]) -> Sequence[str]:
        await gate.wait()
        if "locked" in parts:
            raise cancelled
        return parts

    shared = Shared(send)
    calls = [asyncio.create_task(shared(one)) for one in ("a", "b", "c", "locked", "d")]
    await asyncio.sleep(0)
    gate.set()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert ended == ["a", "b", "c", cancelled, "d"]


async def test_who_waits_for_a_database_that_gives_no_connection_is_told_with_the_others() -> None:
    gate, down, sent = asyncio.Event(), PoolTimeout("couldn't get a connection"), list[str]()

    async def send(parts: Sequence[str]) -> Sequence[str]:
        sent.extend(parts)
        await gate.wait()
        raise down

    shared = Shared(send)
    calls = [asyncio.create_task(shared(f"{number}")) for number in range(LANES + 3)]
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.gather(*calls, return_exceptions=True) == [down] * (LANES + 3)
    assert sent == [f"{number}" for number in range(LANES)]


def count(monkeypatch: pytest.MonkeyPatch, pool: Any) -> Callable[[], int]:
    """Counts the statements that are sent by cursors of the pool since it was asked last."""
    seen, cursor = list[None](), pool.cursor

    def counted() -> Any:
        seen.append(None)
        return cursor()

    monkeypatch.setattr(pool, "cursor", counted)

    def since() -> int:
        found = len(seen)
        seen.clear()
        return found

    return since
