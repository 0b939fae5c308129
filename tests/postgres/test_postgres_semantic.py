"""Semantic memory that several replicas share in PostgreSQL."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from memory.errors import DatabaseDown
from memory.records.records import Fact, Scope
from memory.storage.postgres.connections import BlockingPool
from tests.support.facts import ANA, BEN, draft, nearest_facts, texts
from tests.support.memories import InPostgres
from tests.support.postgres import Postgres, open_pool

REPLICAS = 3


@pytest.fixture
def shared(postgres_pool: BlockingPool, tmp_path: Path) -> InPostgres:
    return InPostgres(postgres_pool, tmp_path)


async def test_the_same_fact_of_the_same_source_written_by_replicas_at_once_is_one(
    shared: InPostgres,
) -> None:
    replicas = [shared.open() for _ in range(REPLICAS)]
    source = {"source_entries": ["e1"], "source_events": ["v1"]}
    for number in range(8):
        drafts = [draft(f"{number}-{one}", f"fact {number}", **source) for one in range(REPLICAS)]
        written = await asyncio.gather(
            *(memory.add(ANA, [one]) for memory, one in zip(replicas, drafts, strict=True))
        )
        assert len({fact["id"] for [fact] in written}) == 1
    assert texts(await replicas[0].all(ANA)) == [f"fact {number}" for number in range(8)]
    assert shared.history() == [("ADD", f"fact {number}") for number in range(8)]


async def test_replicas_write_search_and_remove_at_once_and_nothing_is_mixed_up(
    shared: InPostgres,
) -> None:
    replicas = [shared.open() for _ in range(REPLICAS)]

    async def live(number: int, scope: Scope) -> list[Fact]:
        memory = replicas[number % REPLICAS]
        for one in range(4):
            text = f"{scope.user} fact{one} of{number}"
            [fact] = await memory.add(scope, [draft(f"{number}-{one}", text)])
            [(found, _)] = await nearest_facts(memory, scope, text, 1)
            assert found == fact
            assert all(
                scope.user in hit["text"] for hit, _ in await memory.keywords(scope, "fact0", 9)
            )
        await memory.delete(scope, fact["id"])
        return await memory.all(scope)

    await asyncio.gather(*(live(number, (ANA, BEN)[number % 2]) for number in range(8)))
    for scope in (ANA, BEN):
        kept = texts(await replicas[0].all(scope))
        assert len(kept) == 4 * 3
        assert all(text.startswith(scope.user) for text in kept)
    assert len(shared.history()) == 2 * 4 * 3


async def test_what_was_accepted_before_the_database_went_down_is_there_afterwards(
    own_postgres: Postgres, tmp_path: Path
) -> None:
    with open_pool(own_postgres.database()) as pool:
        memory = InPostgres(pool, tmp_path).open()
        accepted = await memory.add(ANA, [draft("a", "red fox")])
        own_postgres.crash()
        with pytest.raises(DatabaseDown, match="cannot be reached"):
            await memory.add(ANA, [draft("b", "blue whale")])
        own_postgres.start()
        assert await memory.all(ANA) == accepted
        await memory.add(ANA, [draft("b", "blue whale")])
        assert texts(await memory.all(ANA)) == ["red fox", "blue whale"]
