"""Semantic memory on Mem0 and on both databases."""

import asyncio
import threading
from functools import partial
from typing import Any

import pytest

from memory.errors import InputError, MemoryStoreError, ModelError
from memory.facts.semantic import SemanticMemory
from memory.records.records import Fact, Scope
from tests.support.facts import ANA, BEN, WordEmbeddings, draft, nearest_facts, texts, vector_of
from tests.support.memories import Memories


async def test_every_field_of_a_fact_comes_back(memory: SemanticMemory) -> None:
    given = draft(
        "op-1",
        'Ana\'s "boat" is\nblue \U0001f6a4',
        source_entries=["e1", "e2"],
        source_events=["v2", "v1"],
        speaker="Ana López",
        entities=["Ana", "boat"],
        trust=0.6,
        importance=9,
    )
    [fact] = await memory.add(ANA, [given])
    made = {"invalid_at": None, "superseded_by": None, "access_count": 0, "last_access": None}
    assert fact == {**given, **made, "id": fact["id"]}
    assert await memory.get(ANA, fact["id"]) == fact
    assert await memory.all(ANA) == [fact]
    assert await memory.by_op(ANA, ["op-1", "op-2"]) == {"op-1": fact}
    assert [one for one, _ in await nearest_facts(memory, ANA, "boat", 1)] == [fact]
    assert [one for one, _ in await memory.keywords(ANA, "boat", 1)] == [fact]


async def test_facts_outlive_the_process_that_wrote_them(
    memory: SemanticMemory, memories: Memories
) -> None:
    written = await memory.add(ANA, [draft("a", "red fox"), draft("b", "blue whale")])
    memory.close()
    again = memories.open()
    assert await again.all(ANA) == written
    assert texts([one for one, _ in await nearest_facts(again, ANA, "whale", 1)]) == ["blue whale"]
    assert await memory.count(ANA) == 2, "closed, it opens again when used"


async def test_the_same_operation_twice_is_one_fact(
    memory: SemanticMemory, embeddings: WordEmbeddings
) -> None:
    first = await memory.add(ANA, [draft("a", "red fox"), draft("b", "blue whale")])
    second = await memory.add(
        ANA, [draft("b", "changed"), draft("c", "owl"), draft("a", "changed"), draft("c", "hawk")]
    )
    assert second == [first[1], second[1], first[0], second[1]]
    assert texts(await memory.all(ANA)) == ["red fox", "blue whale", "owl"]
    await memory.add(ANA, [draft("a", "red fox")])
    assert embeddings.calls == [["red fox", "blue whale"], ["owl", "hawk"]]


async def test_the_same_operation_in_two_threads_is_one_fact(memory: SemanticMemory) -> None:
    ops = [f"op-{number}" for number in range(5)]
    results: list[list[Fact]] = []

    def write() -> None:
        drafts = [draft(op, f"fact of {op}") for op in ops]
        results.append(asyncio.run(memory.add(ANA, drafts)))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(one == results[0] for one in results)
    assert await memory.count(ANA) == 5


async def test_new_texts_are_embedded_in_one_call(
    memory: SemanticMemory, embeddings: WordEmbeddings
) -> None:
    await memory.add(ANA, [draft(str(one), f"text {one % 3}") for one in range(6)])
    assert embeddings.calls == [["text 0", "text 1", "text 2"]]


async def test_one_agents_facts_are_closed_to_every_other(memory: SemanticMemory) -> None:
    [fact] = await memory.add(ANA, [draft("a", "red fox")])
    for other in (BEN, Scope(ANA.user, BEN.thread), Scope(BEN.user, ANA.thread)):
        assert await memory.get(other, fact["id"]) is None
        assert await memory.by_op(other, ["a"]) == {}
        assert (await memory.all(other), await memory.count(other)) == ([], 0)
        assert await nearest_facts(memory, other, "red fox", 5) == []
        assert await memory.keywords(other, "red fox", 5) == []
        with pytest.raises(InputError, match="no fact"):
            await memory.update(other, fact["id"], {"trust": 0.1})
        with pytest.raises(InputError, match="no fact"):
            await memory.delete(other, fact["id"])
        [own] = await memory.add(other, [draft("a", "of another")])
        assert own["id"] != fact["id"]
    assert await memory.all(ANA) == [fact]


async def test_ids_with_whitespace_or_nothing_are_scopes_of_their_own(
    memory: SemanticMemory,
) -> None:
    users = ["ana b", "ana%20b", "ana\tb", " ana b", "ana b ", "anab", "", " ", "%", "\u00a0"]
    for user in users:
        await memory.add(Scope(user, "the agent"), [draft("a", f"of {user!r}")])
    for user in users:
        assert texts(await memory.all(Scope(user, "the agent"))) == [f"of {user!r}"]


async def test_an_update_changes_what_is_named_and_nothing_else(
    memory: SemanticMemory, embeddings: WordEmbeddings
) -> None:
    old, other = await memory.add(ANA, [draft("a", "red fox"), draft("b", "blue whale")])
    new = await memory.update(
        ANA, old["id"], {"invalid_at": "2026-03-03T00:00:00+00:00", "superseded_by": other["id"]}
    )
    assert new == {**old, "invalid_at": new["invalid_at"], "superseded_by": other["id"]}
    assert await memory.all(ANA) == [new, other]
    assert len(embeddings.calls) == 1, "the text stays, so does its vector"
    [(found, score)] = await nearest_facts(memory, ANA, "red fox", 1, include_superseded=True)
    assert (found, round(score, 3)) == (new, 1.0)


async def test_a_new_text_is_embedded_and_found_by_its_words(
    memory: SemanticMemory, embeddings: WordEmbeddings
) -> None:
    [old] = await memory.add(ANA, [draft("a", "red fox")])
    new = await memory.update(ANA, old["id"], {"text": "blue whale"})
    assert new == {**old, "text": "blue whale"}
    assert embeddings.calls == [["red fox"], ["blue whale"]]
    [(found, score)] = await nearest_facts(memory, ANA, "blue whale", 1)
    assert (found, round(score, 3)) == (new, 1.0)
    assert await memory.keywords(ANA, "fox", 5) == []
    assert [one for one, _ in await memory.keywords(ANA, "whale", 5)] == [new]


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "x"},
        {"op": "x"},
        {"colour": "red"},
        {"importance": "high"},
        {"speaker": 3},
        {"access_count": 5},
        {"last_access": "2026-03-02"},
    ],
)
async def test_a_change_that_breaks_the_form_changes_nothing(
    memory: SemanticMemory, changes: dict[str, Any]
) -> None:
    [fact] = await memory.add(ANA, [draft("a", "red fox")])
    with pytest.raises(InputError):
        await memory.update(ANA, fact["id"], changes)
    assert await memory.all(ANA) == [fact]


async def test_a_superseded_fact_leaves_recall_and_keeps_its_record(memory: SemanticMemory) -> None:
    old, new = await memory.add(ANA, [draft("a", "red fox"), draft("b", "red panda")])
    await memory.update(
        ANA, old["id"], {"invalid_at": "2026-03-03T00:00Z", "superseded_by": new["id"]}
    )
    for look in (partial(nearest_facts, memory), memory.keywords):
        assert texts([one for one, _ in await look(ANA, "red", 5)]) == ["red panda"]
        everything = await look(ANA, "red", 5, include_superseded=True)
        assert sorted(texts([one for one, _ in everything])) == ["red fox", "red panda"]
    assert await memory.count(ANA) == 2


async def test_a_deleted_fact_leaves_no_text_behind(memory: SemanticMemory) -> None:
    gone, kept = await memory.add(ANA, [draft("a", "red fox"), draft("b", "blue whale")])
    await memory.update(ANA, gone["id"], {"text": "red panda"})
    await memory.delete(ANA, gone["id"])
    assert await memory.all(ANA) == [kept]
    assert await memory.keywords(ANA, "red", 5) == []
    with pytest.raises(InputError, match="no fact"):
        await memory.delete(ANA, gone["id"])
    [again] = await memory.add(ANA, [draft("a", "red fox")])
    assert again["id"] != gone["id"]


@pytest.mark.parametrize(
    "broken",
    [
        draft("a", "  "),
        draft("a", "fox", source_entries=[], source_events=[]),
        draft("a", "fox", trust=float("nan")),
        draft("a", "fox", importance="high"),
        draft("a", "half a pair \ud83d"),
        {"op": "a", "text": "fox"},
    ],
)
async def test_a_broken_draft_is_refused_with_its_whole_batch(
    memory: SemanticMemory, embeddings: WordEmbeddings, broken: Any
) -> None:
    with pytest.raises(InputError):
        await memory.add(ANA, [draft("b", "blue whale"), broken])
    assert await memory.count(ANA) == 0
    assert embeddings.calls == []


async def test_an_error_in_the_middle_of_a_batch_leaves_none_of_it(
    memory: SemanticMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await memory.add(ANA, [draft("a", "red fox")])
    from memory.facts.mem0 import FactStore

    insert = FactStore.insert

    def fail_at_owl(self: FactStore, vectors: Any, payloads: Any, ids: Any) -> None:
        if payloads[0]["data"] == "owl":
            raise OSError("disk is full")
        insert(self, vectors, payloads, ids)

    monkeypatch.setattr(FactStore, "insert", fail_at_owl)
    with pytest.raises(MemoryStoreError, match="disk is full"):
        await memory.add(ANA, [draft("b", "blue whale"), draft("c", "owl")])
    assert texts(await memory.all(ANA)) == ["red fox"]
    monkeypatch.undo()
    await memory.add(ANA, [draft("b", "blue whale"), draft("c", "owl")])
    assert texts(await memory.all(ANA)) == ["red fox", "blue whale", "owl"]


class BrokenEmbeddings(WordEmbeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return {"few": [vector_of("x")], "short": [[1.0]] * len(texts)}[texts[0]]


@pytest.mark.parametrize(("first", "says"), [("few", "1 vectors for 2"), ("short", "shape")])
async def test_what_a_broken_embedder_gives_is_not_stored(
    memories: Memories, first: str, says: str
) -> None:
    memory = memories.open(BrokenEmbeddings())
    with pytest.raises((MemoryStoreError, ModelError), match=says):
        await memory.add(ANA, [draft("a", first), draft("b", "other")])
    assert await memory.count(ANA) == 0
