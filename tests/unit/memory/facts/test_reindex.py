"""Embedding everything anew: after another embedder, after a kill, beside other writers."""

from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_core.embeddings import Embeddings

from graph.use_cases.memories import BATCH, embed_in_batches
from memory.errors import ServiceDown
from memory.facts.semantic import SemanticMemory
from memory.facts.sqlite.table import SqliteTable
from tests.support.facts import (
    ANA,
    BEN,
    DIMENSION,
    WordEmbeddings,
    acknowledged,
    draft,
    memory_at,
    nearest_facts,
    running,
    texts,
)
from tests.support.tables import Open

MakeMemory = Callable[..., SemanticMemory]


@pytest.fixture
def make_memory(open_table: Open, tmp_path: Path) -> MakeMemory:
    """Makes semantic memories of several embedders over one table."""

    def make(
        embeddings: Embeddings, *, model: str = "words", dimension: int = DIMENSION
    ) -> SemanticMemory:
        return SemanticMemory(
            lambda: open_table(model=model, dimension=dimension),
            mem0_dir=tmp_path / "mem0",
            dimension=dimension,
            embeddings=lambda: embeddings,
        )

    return make


class Shorter(WordEmbeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [one[: DIMENSION // 2] for one in super().embed_documents(texts)]

    def embed_query(self, text: str) -> list[float]:
        return super().embed_query(text)[: DIMENSION // 2]


async def test_a_new_embedder_embeds_everything_again(make_memory: MakeMemory) -> None:
    old = make_memory(WordEmbeddings())
    facts = await old.add(ANA, [draft(f"{n}", f"red fox {n}") for n in range(3)])
    await old.add(BEN, [draft("a", "blue whale")])
    old.close()
    shorter = Shorter()
    new = make_memory(shorter, model="shorter", dimension=DIMENSION // 2)
    assert await nearest_facts(new, ANA, "red fox 1", 5) == []
    assert len(await new.keywords(ANA, "fox", 5)) == 3, "by words meanwhile"
    assert await new.update(ANA, facts[0]["id"], {"trust": 0.5}) == {**facts[0], "trust": 0.5}
    assert shorter.calls == [], "what is not embedded needs no vector to be changed"
    seen: list[tuple[int, int]] = []
    assert await embed_in_batches(new, lambda done, total: seen.append((done, total))) == (4, 0)
    assert seen == [(0, 4), (4, 4)]
    assert len(shorter.calls) == 1
    [(fact, score)] = await nearest_facts(new, ANA, "red fox 1", 1)
    assert (fact, round(score, 3)) == (facts[1], 1.0)
    assert await embed_in_batches(new) == (0, 0)
    new.close()


async def test_each_batch_is_one_call_and_stays_when_the_next_fails(
    make_memory: MakeMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.use_cases.memories.BATCH", 4)
    old = make_memory(WordEmbeddings())
    await old.add(ANA, [draft(f"{n}", f"fact {n}") for n in range(10)])
    old.close()
    embeddings = WordEmbeddings()
    new = make_memory(embeddings, model="other")
    embed = embeddings.embed_documents

    def third_fails(texts: list[str]) -> list[list[float]]:
        if len(embeddings.calls) == 2:
            raise ServiceDown("no answer from the embedder")
        return embed(texts)

    monkeypatch.setattr(embeddings, "embed_documents", third_fails)
    seen: list[tuple[int, int]] = []
    with pytest.raises(ServiceDown):
        await embed_in_batches(new, lambda done, total: seen.append((done, total)))
    assert seen == [(0, 10), (4, 10), (8, 10)]
    assert [len(call) for call in embeddings.calls] == [4, 4]
    monkeypatch.setattr(embeddings, "embed_documents", embed)
    assert await embed_in_batches(new) == (2, 0)
    assert [len(call) for call in embeddings.calls] == [4, 4, 2]
    new.close()


async def test_memories_written_meanwhile_are_embedded_too(
    make_memory: MakeMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = make_memory(WordEmbeddings())
    [gone, *_] = await old.add(ANA, [draft(f"{n}", f"fact {n}") for n in range(3)])
    embeddings = WordEmbeddings()
    new = make_memory(embeddings, model="other")
    embed = embeddings.embed_documents
    table = old.open_table()

    def meanwhile(texts: list[str]) -> list[list[float]]:
        if not embeddings.calls:
            [row] = table.select({"op": "1"})
            table.insert("late", None, {**row.payload, "op": "late", "data": "fact late"})
            table.delete({"id": gone["id"]})
        return embed(texts)

    monkeypatch.setattr(embeddings, "embed_documents", meanwhile)
    assert (await embed_in_batches(new))[1] == 0
    assert texts([fact for fact, _ in await nearest_facts(new, ANA, "fact late", 1)]) == [
        "fact late"
    ]
    assert len(await nearest_facts(new, ANA, "fact", 9)) == 3
    for one in (old, new):
        one.close()


REINDEXER = """
import asyncio, sys, time
from pathlib import Path
from graph.use_cases import memories
from memory.facts import SemanticMemory
from memory.facts.sqlite.table import SqliteTable
from tests.support.facts import DIMENSION, WordEmbeddings
memories.BATCH = 3
folder = Path(sys.argv[1])
opened = SemanticMemory(
    lambda: SqliteTable(folder / "facts.db", model="other", dimension=DIMENSION),
    mem0_dir=folder / "mem0", dimension=DIMENSION, embeddings=WordEmbeddings,
)
def told(done, total):
    print(done, total, flush=True)
    if done > 60:
        time.sleep(60)  # the test kills it, however late
asyncio.run(memories.embed_in_batches(opened, told))
"""


async def test_a_killed_reindexing_continues(tmp_path: Path) -> None:
    memory = memory_at(tmp_path)
    await memory.add(ANA, [draft(f"{n}", f"fact {n}") for n in range(300)])
    left = [300]
    for _ in range(3):
        with running(REINDEXER, str(tmp_path)) as process:
            lines = acknowledged(process, 4)
        done, total = (int(one) for one in lines[0].split())
        assert (done, total) == (0, left[-1])
        # Whole batches may have been written before the kill, and not yet told.
        other = SqliteTable(tmp_path / "facts.db", model="other", dimension=DIMENSION)
        left.append(other.count_unembedded({}))
        other.close()
        assert (total - left[-1]) % 3 == 0
        assert left[-1] <= total - int(lines[-1].split()[0])
    assert left[-1] < left[0] - 20
    memory.close()


def test_a_batch_is_neither_a_single_text_nor_a_whole_memory() -> None:
    assert 16 <= BATCH <= 1_000
