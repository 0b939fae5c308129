"""Forgetting and moving on PostgreSQL: the same as in files."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from graph.api import AsyncAgent
from graph.use_cases import export_memory, import_memory
from graph.use_cases.forgetting import forget, forget_fact
from memory.errors import InputError
from memory.storage import checkpoints
from memory.storage.postgres.connections import BlockingPool
from memory.transfer.transfer import line_of
from tests.support.agents import entries, said
from tests.support.clock import Clock
from tests.support.lives import BENS, ZORAS, at_home, live
from tests.support.postgres import Postgres


@pytest.fixture(scope="module")
def life(postgres: Postgres) -> Iterator[tuple[str, datetime]]:
    clock = Clock()
    url = postgres.database()

    async def once() -> None:
        async with at_home(None, clock) as handle:
            await live(handle, clock)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "CHUNK", 2)
        patch.setenv("CIRCADIAN_DATABASE_URL", url)
        asyncio.run(once())
    yield url, clock.now
    postgres.drop(url)


@pytest.fixture
def postgres_url(postgres: Postgres, life: tuple[str, datetime], clock: Clock) -> Iterator[str]:
    url, now = life
    clock.set(now)
    own = postgres.copy(url)
    yield own
    postgres.drop(own)


@pytest.fixture
async def agent(
    postgres_url: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[AsyncAgent]:
    monkeypatch.setattr(checkpoints, "CHUNK", 2)
    monkeypatch.setenv("CIRCADIAN_DATABASE_URL", postgres_url)
    async with at_home(None, clock) as handle:
        yield handle


def holding(postgres: Postgres, words: tuple[str, ...], url: str) -> list[str]:
    """`file: word`; what is written is in the files once a checkpoint is made."""
    postgres.execute("CHECKPOINT")
    spelled = {form for word in words for form in (word, word.capitalize())}
    return [
        f"{file.name}: {form}"
        for form in spelled
        for file in postgres.files_with(form.encode(), url)
    ]


async def test_no_table_holds_a_byte_of_the_forgotten_and_the_other_stays(
    agent: AsyncAgent, postgres: Postgres, postgres_url: str, postgres_pool: BlockingPool
) -> None:
    with postgres_pool.connection() as connection:
        chunks = connection.execute("SELECT messages FROM circadian_chunks").fetchall()
    assert ZORAS[0].encode() in b"".join(packed for (packed,) in chunks).lower()
    assert holding(postgres, ZORAS[:1], postgres_url)
    counts = (await forget(agent.context, "zora", dry_run=True))["counts"]
    assert (await forget(agent.context, "zora"))["counts"] == counts
    assert counts["facts"] == 3
    assert holding(postgres, ZORAS, postgres_url) == []
    assert holding(postgres, BENS[:1], postgres_url)
    facts = await agent.resources.semantic.all(agent.scope)
    assert [fact["speaker"] for fact in facts] == ["Ben"] * 3
    assert not [one for one in await entries(agent) if "compaction" in one["tags"]]
    out = await agent.ainvoke(said("Do my tomatoes grow?", sender="Ben"))
    assert out["report"]["failures"] == []
    await forget_fact(agent.context, facts[0]["id"])
    assert len(await agent.resources.semantic.all(agent.scope)) == 2


async def test_no_statistics_are_left_of_a_table_that_a_forget_leaves_empty(
    agent: AsyncAgent, postgres: Postgres, postgres_url: str, postgres_pool: BlockingPool
) -> None:
    with postgres_pool.connection() as connection:
        connection.execute("ANALYZE")
    assert holding(postgres, ZORAS[:1], postgres_url)
    await forget(agent.context, "ben")
    await forget(agent.context, "zora")
    assert await agent.resources.semantic.all(agent.scope) == []
    assert holding(postgres, (*ZORAS, *BENS), postgres_url) == []


async def test_no_vector_of_the_forgotten_is_left(
    agent: AsyncAgent, postgres: Postgres, postgres_url: str, postgres_pool: BlockingPool
) -> None:
    def vectors() -> dict[str, bytes]:
        with postgres_pool.connection() as connection:
            found = connection.execute(
                "SELECT id, vector_send(embedding) FROM memory_vectors JOIN memories USING (seq)"
            ).fetchall()
        # Sent in network order, kept in that of the machine; the first four bytes are its length.
        return {id_: np.frombuffer(sent[4:], ">f4").astype("<f4").tobytes() for id_, sent in found}

    before = vectors()
    await forget(agent.context, "zora")
    left = vectors()
    gone = set(before.values()) - set(left.values())
    assert gone
    assert left
    postgres.execute("CHECKPOINT")
    assert all(postgres.files_with(one, postgres_url) for one in set(left.values()))
    assert [len(postgres.files_with(one, postgres_url)) for one in gone] == [0] * len(gone)


async def test_a_memory_moves_from_a_database_to_a_folder_and_back(
    agent: AsyncAgent, tmp_path: Path, clock: Clock
) -> None:
    lines = [line_of(record) async for record in export_memory(agent.context)]
    async with at_home(tmp_path / "data", clock) as other:
        await import_memory(other.context, lines)
        assert [line_of(record) async for record in export_memory(other.context)][1:] == lines[1:]
    async with at_home(None, clock, "back") as back:
        with pytest.raises(InputError, match=r"another agent .* has the same facts"):
            await import_memory(back.context, lines)
        await forget(agent.context, "Zora")
        await forget(agent.context, "Ben")
        assert await agent.resources.semantic.all(agent.scope) == []
        done = await import_memory(back.context, lines)
        assert len(await back.resources.semantic.all(back.scope)) == 6
        assert await import_memory(back.context, lines) == {**done, "already": True}
