"""Episodes again: after a kill, a failing embedder, and a change of the rules."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore

from graph.agent import open_agent
from memory.errors import MemoryStoreError
from memory.facts.semantic import SemanticMemory
from memory.journal import entries as journal
from memory.operations.apply import apply_operations
from memory.recall import episodes
from memory.recall.episodes import episode_of, index_entries
from memory.records.operations import add_entry, score_entry
from tests.support.facts import ANA, WordEmbeddings, draft, memory_at
from tests.support.recalling import Failing, entry, marks, rows, write


class Killed(BaseException):
    """As if the process had been killed there."""


@pytest.mark.parametrize("at", ["put_episodes", "embed_waiting"])
@pytest.mark.parametrize("before", [True, False])
async def test_after_a_kill_at_any_point_the_same_is_done_again(
    store: InMemoryStore,
    memory: SemanticMemory,
    monkeypatch: pytest.MonkeyPatch,
    at: str,
    before: bool,
) -> None:
    done = getattr(memory, at)

    async def dies(*args: Any) -> None:
        if not before:
            await done(*args)
        raise Killed

    await write(store, entry("harp"), entry("mill", minutes=1))
    with monkeypatch.context() as patched:
        patched.setattr(memory, at, dies)
        with pytest.raises(Killed):
            await index_entries(store, memory, ANA)
    await index_entries(store, memory, ANA)
    assert [row.payload["data"] for row in rows(memory)] == ["harp", "mill"]
    assert await marks(store) == []
    assert await memory.count_unembedded(ANA) == 0


async def test_a_kill_between_rows_and_marks_makes_no_second_row(
    store: InMemoryStore, memory: SemanticMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(*args: Any) -> None:
        raise Killed

    await write(store, entry("mill"))
    await index_entries(store, memory, ANA)
    await write(store, entry("harp", minutes=1))
    with monkeypatch.context() as patched:
        patched.setattr(episodes, "write_batch", dies)
        with pytest.raises(Killed):
            await index_entries(store, memory, ANA)
    assert (len(rows(memory)), len(await marks(store))) == (2, 1)
    await index_entries(store, memory, ANA)
    assert len(rows(memory)) == 2
    assert await marks(store) == []


async def test_an_entry_is_written_to_the_index_with_its_vector_and_embedded_once(
    store: InMemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embeddings, harp = WordEmbeddings(), entry("harp")
    memory = memory_at(tmp_path, cast(Embeddings, embeddings))
    monkeypatch.setattr(memory, "_keep_vectors", None)
    added = [add_entry(harp, "heard"), add_entry(entry("mill", minutes=1), "heard")]
    for changes in (added, [score_entry(harp, 9, "of weight")]):
        await apply_operations(changes, store=store, semantic=memory, scope=ANA)
    assert [row.payload["data"] for row in rows(memory)] == ["harp", "mill"]
    assert await memory.count_unembedded(ANA) == 0
    assert (len(embeddings.calls), await marks(store)) == (1, [])
    memory.close()


async def test_an_entry_that_cannot_be_indexed_is_written_and_indexed_with_the_next(
    store: InMemoryStore, memory: SemanticMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*args: Any) -> None:
        raise MemoryStoreError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(memory, "put_episodes", fails)
        await apply_operations(
            [add_entry(entry("harp"), "heard")], store=store, semantic=memory, scope=ANA
        )
    assert len(await journal.newest(store, ANA)) == len(await marks(store)) == 1
    await apply_operations(
        [add_entry(entry("mill", minutes=1), "heard")], store=store, semantic=memory, scope=ANA
    )
    assert [row.payload["data"] for row in rows(memory)] == ["harp", "mill"]


async def test_entries_that_a_crash_left_unindexed_are_found_once_the_agent_is_opened(
    tmp_path: Path,
) -> None:
    async with open_agent(tmp_path, model="offline", embedder="offline") as agent:
        puts = journal.puts(agent.scope, entry("harp"))
        await agent.store.abatch(puts)
        assert await agent.recall("harp") == []
    async with open_agent(tmp_path, model="offline") as agent:
        assert [hit["text"] for hit in await agent.recall("harp")] == ["harp"]
        assert await agent.resources.semantic.count_unembedded(agent.scope) == 1
        await agent.ainvoke({"request": "tick"})
        assert await agent.resources.semantic.count_unembedded(agent.scope) == 0


async def test_another_file_in_place_of_a_lost_index_gets_the_whole_journal(
    store: InMemoryStore, tmp_path: Path
) -> None:
    first = memory_at(tmp_path)
    await write(store, entry("harp"))
    await index_entries(store, first, ANA)
    first.close()
    await write(store, entry("mill", minutes=1))
    other = tmp_path / "other"
    await asyncio.to_thread(other.mkdir)
    second = memory_at(other)
    await index_entries(store, second, ANA)
    assert [row.payload["data"] for row in rows(second)] == ["harp", "mill"]
    second.close()


@pytest.mark.parametrize("wrong", [True, False])
async def test_where_the_embedder_fails_entries_are_found_by_words_and_embedded_later(
    store: InMemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: bool
) -> None:
    async def short(texts: list[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]

    embeddings = Failing()
    memory, added = memory_at(tmp_path, cast(Embeddings, embeddings)), add_entry(entry("harp"), "")
    with monkeypatch.context() as patched:
        if wrong:
            patched.setattr(embeddings, "aembed_documents", short)
        await apply_operations([added], store=store, semantic=memory, scope=ANA)
    assert await marks(store) == []
    assert await memory.count_unembedded(ANA) == len(rows(memory)) == 1
    embeddings.down = False
    await index_entries(store, memory, ANA)
    assert await memory.count_unembedded(ANA) == 0
    memory.close()


async def test_what_is_new_is_embedded_at_once_and_of_what_waits_no_more_than_a_batch(
    store: InMemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episodes, "BATCH", 2)
    embeddings = Failing()
    memory = memory_at(tmp_path, cast(Embeddings, embeddings))
    old = [episode_of(entry(f"old{number}")) for number in range(6)]
    await memory.put_episodes(ANA, old)
    embeddings.down = False
    await write(store, *(entry(f"new{number}", minutes=number) for number in range(3)))
    await index_entries(store, memory, ANA)
    assert [len(call) for call in embeddings.calls] == [2, 2]
    assert [*embeddings.calls[0], embeddings.calls[1][0]] == ["new2", "new1", "new0"]
    assert await memory.count_unembedded(ANA) == 5
    memory.close()


async def test_a_journal_from_before_there_were_marks_is_indexed_once(
    store: InMemoryStore, memory: SemanticMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = [entry("harp"), entry("mill", minutes=60 * 24 * 3)]
    for one in old:
        await store.abatch(
            [put for put in journal.puts(ANA, one) if "unindexed" not in put.namespace]
        )
    await index_entries(store, memory, ANA)
    assert [row.payload["data"] for row in rows(memory)] == ["harp", "mill"]

    async def none(*args: Any) -> list[Any]:
        raise AssertionError("the journal is read as a whole again")

    monkeypatch.setattr(journal, "days", none)
    await index_entries(store, memory, ANA)


async def test_after_texts_are_analysed_otherwise_all_entries_are_indexed_anew(
    store: InMemoryStore, memory: SemanticMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(store, entry("Which harp?", speaker="Ben"), entry("Mine", minutes=1))
    [fact] = await memory.add(ANA, [draft("a", "Ana keeps bees")])
    await index_entries(store, memory, ANA)
    monkeypatch.setattr(episodes, "ANALYSIS_VERSION", 99)
    monkeypatch.setattr(episodes, "entry_terms", lambda text, speaker, before: ["otherwise"])
    await index_entries(store, memory, ANA)
    [found] = memory.lookup(
        ANA, [(["otherwise"], None)], kinds=["episode"], limit=9, include_superseded=True
    )
    assert len(found.worded) == 2
    assert await memory.get(ANA, fact["id"]) == fact
