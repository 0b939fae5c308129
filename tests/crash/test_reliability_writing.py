"""Writers that are killed, and writers in a crowd: what they were told is written, stands whole."""

import asyncio
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from memory.facts.semantic import SemanticMemory
from memory.storage.sqlite.files import quick_check
from tests.support.facts import ANA, BEN, draft
from tests.support.writers import BATCH, Told, Where, opened, whole, writer

LINES = 40
"""Lines that a writer tells before it is killed, at most: two for each of its writes."""
A_WRITE = 0.02
"""Seconds: so that a writer dies anywhere in a write, and not where it tells of it."""
THREADS, PROCESSES = 10, 3
FACTS = 12
"""That each of a crowd writes, three at a time; it changes every third and removes every fourth."""


@pytest.fixture(params=["a folder", "a database"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Where]:
    if request.param == "a folder":
        yield Where(tmp_path)
        assert quick_check(tmp_path / "data" / "facts.db") is None
    else:
        yield Where(tmp_path, request.getfixturevalue("postgres_url"))


@pytest.mark.parametrize(
    "kills", [pytest.param(3), pytest.param(20, marks=pytest.mark.slow)], ids=str
)
async def test_what_killed_writers_acknowledged_is_there_and_none_of_it_is_torn(
    where: Where, kills: int
) -> None:
    chance = random.Random(kills)
    told: dict[str, str | None] = {}
    for number in range(kills):
        with writer(where, f"w{number}") as process:
            process.until(chance.randint(3, LINES))
            await asyncio.sleep(chance.uniform(0.0, A_WRITE))
            now = process.kill()
        with opened(where) as memory:
            told |= now.facts | await in_hand(memory, now)
            await as_told(memory, told, just=now)
    assert sum(text is not None for text in told.values()) > kills
    with opened(where) as memory:
        await whole(memory, await memory.all(ANA))


async def in_hand(memory: SemanticMemory, told: Told) -> dict[str, str | None]:
    """What of the write that was in hand is there: all of it or nothing."""
    if told.begun is None:
        return {}
    kind, value = told.begun
    facts = {fact["id"]: fact["text"] for fact in await memory.all(ANA)}
    if kind == "add":
        added = {one: text for one, text in facts.items() if text in value}
        assert len(added) in (0, BATCH)
        return dict(added)
    if kind == "update":
        one, text = value
        assert facts[one] in (text, told.facts[one])
        return {one: facts[one]}
    return {value: facts.get(value)}


async def as_told(memory: SemanticMemory, told: dict[str, str | None], just: Told) -> None:
    """The facts are those that were acknowledged, and those of the last writer are whole."""
    facts = await memory.all(ANA)
    assert {one["id"]: one["text"] for one in facts} == {
        one: text for one, text in told.items() if text is not None
    }
    assert await memory.count(ANA) == len(facts)
    await whole(memory, [one for one in facts if one["id"] in just.facts])


def test_a_crowd_of_threads_and_processes_mixes_nothing_up(where: Where) -> None:
    names = [f"thread{number}" for number in range(THREADS)]
    told: dict[str, str | None] = {}
    with opened(where) as memory, ExitStack() as stack:
        asyncio.run(memory.add(BEN, [draft("ben", "ben keeps copper lanterns")]))
        others = [
            stack.enter_context(writer(where, f"process{number}", in_a_crowd))
            for number in range(PROCESSES)
        ]
        with ThreadPoolExecutor(THREADS) as pool:
            for facts in pool.map(lambda name: asyncio.run(in_a_crowd(memory, name)), names):
                told |= facts
        for process in others:
            told |= process.ended().facts
    with opened(where) as memory:
        asyncio.run(is_exactly(memory, told))


async def is_exactly(memory: SemanticMemory, told: dict[str, str | None]) -> None:
    """The facts of the crowd are there, each whole, and so is the one of somebody else."""
    expected = {one: text for one, text in told.items() if text is not None}
    assert len(told) == (THREADS + PROCESSES) * FACTS
    assert len(expected) == (THREADS + PROCESSES) * FACTS * 3 // 4
    facts = await memory.all(ANA)
    assert {fact["id"]: fact["text"] for fact in facts} == expected
    assert await memory.count(ANA) == len(expected)
    await whole(memory, facts)
    assert [fact["text"] for fact in await memory.all(BEN)] == ["ben keeps copper lanterns"]
    await whole(memory, await memory.all(BEN), BEN)


async def in_a_crowd(
    memory: SemanticMemory, name: str, tell: Callable[[tuple[str, Any]], None] | None = None
) -> dict[str, str | None]:
    """Write, read back, change and remove facts of one's own; what became of each."""
    facts: dict[str, str | None] = {}
    for start in range(0, FACTS, 3):
        own = [f"{name}n{number}" for number in range(start, start + 3)]
        added = await memory.add(ANA, [draft(one, f"{one} copper lantern") for one in own])
        assert [fact["op"] for fact in added] == own
        await whole(memory, added)
        facts |= {fact["id"]: fact["text"] for fact in added}
        changed = added[0]
        text = f"{changed['op']}changed copper meadow"
        updated = await memory.update(ANA, changed["id"], {"text": text})
        await whole(memory, [updated])
        facts[changed["id"]] = text
    for one in list(facts)[::4]:
        await memory.delete(ANA, one)
        assert await memory.get(ANA, one) is None
        facts[one] = None
    if tell is not None:
        tell(("done", facts))
    return facts
