"""Writing the same fact from the same source twice is one fact, in both databases."""

import asyncio
from contextlib import ExitStack
from pathlib import Path

import pytest

from memory.facts.semantic import SemanticMemory
from memory.records.records import Fact, FactDraft, Scope
from tests.support.facts import ANA, BEN, draft, memory_at, running, texts
from tests.support.memories import Memories


@pytest.fixture
def memory(memories: Memories) -> SemanticMemory:
    return memories.open()


def of_one_source(op: str, text: str, **changes: object) -> FactDraft:
    sources = {"source_entries": ["e1", "e2"], "source_events": ["v1"]}
    return draft(op, text, **{**sources, **changes})


async def test_the_same_words_from_the_same_sources_are_one_fact(memory: SemanticMemory) -> None:
    [first] = await memory.add(ANA, [of_one_source("a", "Ana paints boats.", trust=0.6)])
    again = of_one_source("b", "  ana  paints\nBOATS. ", source_entries=["e2", "e1", "e2"])
    assert await memory.add(ANA, [again]) == [first]
    assert texts(await memory.all(ANA)) == ["Ana paints boats."]
    assert await memory.by_op(ANA, ["a", "b"]) == {"a": first, "b": first}
    assert len(await memory.keywords(ANA, "boats", 5)) == 1


async def test_two_of_one_batch_are_one_fact(memory: SemanticMemory) -> None:
    [first, other, second] = await memory.add(
        ANA, [of_one_source("a", "red fox"), draft("x", "owl"), of_one_source("b", "Red fox")]
    )
    assert (first, first["op"]) == (second, "a")
    assert texts(await memory.all(ANA)) == ["red fox", other["text"]]


@pytest.mark.parametrize(
    "other",
    [
        of_one_source("b", "Ana paints boats!"),
        of_one_source("b", "Ana paints boats", source_entries=["e1"]),
        of_one_source("b", "Ana paints boats", source_events=["v2"]),
        of_one_source("b", "Ana paints boats", source_entries=["v1"], source_events=["e1", "e2"]),
    ],
)
async def test_other_words_or_sources_are_another_fact(
    memory: SemanticMemory, other: FactDraft
) -> None:
    [first] = await memory.add(ANA, [of_one_source("a", "Ana paints boats")])
    [second] = await memory.add(ANA, [other])
    assert first["id"] != second["id"]
    assert await memory.count(ANA) == 2


async def test_another_agent_has_a_fact_of_its_own(memory: SemanticMemory) -> None:
    [first] = await memory.add(ANA, [of_one_source("a", "red fox")])
    for scope in (BEN, Scope(ANA.user, BEN.thread), Scope(BEN.user, ANA.thread)):
        [own] = await memory.add(scope, [of_one_source("b", "red fox")])
        assert own["id"] != first["id"]
        assert await memory.by_op(scope, ["a"]) == {}
    assert await memory.by_op(ANA, ["b"]) == {}


async def test_an_invalid_fact_is_no_duplicate(memory: SemanticMemory) -> None:
    [old] = await memory.add(ANA, [of_one_source("a", "red fox")])
    await memory.add(ANA, [of_one_source("b", "red fox")])
    await memory.update(ANA, old["id"], {"invalid_at": "2026-03-03T00:00Z"})
    [new] = await memory.add(ANA, [of_one_source("c", "red fox")])
    assert new["id"] != old["id"]
    again = await memory.add(ANA, [of_one_source(op, "red fox") for op in "abc"])
    assert [fact["id"] for fact in again] == [old["id"], old["id"], new["id"]], "applied again"
    assert await memory.count(ANA) == 2


async def test_a_changed_fact_is_compared_by_its_current_text(memory: SemanticMemory) -> None:
    [fact] = await memory.add(ANA, [of_one_source("a", "red fox")])
    changed = await memory.update(ANA, fact["id"], {"text": "blue whale"})
    [before, now] = await memory.add(
        ANA, [of_one_source("b", "red fox"), of_one_source("c", "blue whale")]
    )
    assert (before["id"] != fact["id"], now) == (True, changed)


async def test_tasks_that_write_the_same_at_once_write_one(memory: SemanticMemory) -> None:
    drafts = [[of_one_source(f"op-{number}", "red fox")] for number in range(8)]
    written = await asyncio.gather(*(memory.add(ANA, one) for one in drafts))
    assert len({facts[0]["id"] for facts in written}) == await memory.count(ANA) == 1
    known = await memory.by_op(ANA, [f"op-{number}" for number in range(8)])
    facts: list[Fact] = list(known.values())
    assert len(facts) == 8


WRITER = """
import asyncio, sys
from pathlib import Path
from tests.support.facts import ANA, draft, memory_at
async def main():
    memory = memory_at(Path(sys.argv[1]))
    sources = {"source_entries": ["e"], "source_events": ["v"]}
    for number in range(20):
        op = f"{sys.argv[2]}-{number}"
        [fact] = await memory.add(ANA, [draft(op, f"fact {number}", **sources)])
        print(fact["id"], flush=True)
    memory.close()
asyncio.run(main())
"""


async def test_processes_that_write_the_same_at_once_write_one(tmp_path: Path) -> None:
    with ExitStack() as stack:
        writers = [stack.enter_context(running(WRITER, str(tmp_path), name)) for name in "abc"]
        said = [writer.communicate(timeout=120) for writer in writers]
    ids = [out.split() for out, _ in said]
    assert len(ids[0]) == 20, said
    assert ids[0] == ids[1] == ids[2]
    memory = memory_at(tmp_path)
    assert texts(await memory.all(ANA)) == [f"fact {number}" for number in range(20)]
    memory.close()
