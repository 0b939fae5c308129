"""Mem0's `Memory` and its vector store over the table of memories, in both databases."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memory.errors import InputError, MemoryStoreError, ModelError
from memory.facts.semantic import SemanticMemory, settle_mem0
from memory.facts.table import MemoryTable
from tests.support.facts import ANA, draft
from tests.support.memories import Memories
from tests.support.tables import DIMENSION, direction, nearest, payload, scope


@pytest.fixture
def mem0_store(tmp_path: Path) -> ModuleType:
    settle_mem0(tmp_path / "mem0")
    from memory.facts import mem0 as mem0_store

    return mem0_store


@pytest.fixture
def store(mem0_store: ModuleType, table: MemoryTable) -> Any:
    return mem0_store.FactStore(
        collection_name="facts", table=table, embedding_model_dims=DIMENSION
    )


@pytest.fixture
def filled(store: Any, table: MemoryTable) -> Any:
    rows = [payload("ana", op, f"text {op}") for op in "abc"]
    vectors = [direction(1.0), direction(0.0, 1.0), direction(0.0, 0.0, 1.0)]
    store.insert(vectors, payloads=rows, ids=["one", "two", "three"])
    table.insert("episode", direction(1.0), payload("ana", "a", "text a", kind="episode"))
    return store


def test_an_update_changes_one_fact_and_a_deletion_removes_one(
    filled: Any, table: MemoryTable
) -> None:
    assert filled.get("one").payload["data"] == "text a"
    filled.update("two", vector=[3.0, 4.0, *[0.0] * 6])
    filled.update("three", payload=payload("ana", "c", "text c", speaker="Ana"))
    filled.delete("one")
    assert filled.get("one") is None
    assert filled.get("two").payload["data"] == "text b"
    assert filled.get("three").payload["speaker"] == "Ana"
    facts = {**scope("ana"), "kind": "fact"}
    found = nearest(table, direction(0.6, 0.8), facts, 5)
    assert [(row.id, round(score, 3)) for row, score in found] == [("two", 1.0), ("three", 0.0)]


def test_mem0_sees_and_changes_facts_alone(filled: Any, table: MemoryTable) -> None:
    assert filled.get("episode") is None
    before = table.select({"kind": "episode"})
    filled.update("episode", direction(0.0, 1.0), payload("ana", "a", "changed"))
    filled.delete("episode")
    filled.insert([direction(1.0)], [payload("ana", "z", "x", kind="episode")], ["claimed"])
    assert filled.get("claimed").payload["kind"] == "fact"
    assert table.select({"kind": "episode"}) == before


def test_there_is_one_collection(mem0_store: ModuleType) -> None:
    with pytest.raises(ValueError, match="one collection"):
        mem0_store.FactStore(
            collection_name="facts_entities", table=None, embedding_model_dims=DIMENSION
        )


def test_mem0_neither_searches_nor_lists(filled: Any) -> None:
    for refused in (filled.search, filled.list, filled.reset):
        with pytest.raises(InputError, match="SemanticMemory"):
            refused()


def test_rows_of_one_insert_are_written_together_or_not_at_all(
    store: Any, table: MemoryTable
) -> None:
    rows = [payload("ana", "a", "text"), payload("ana", "b", "text")]
    with pytest.raises(MemoryStoreError):
        store.insert([direction(1.0), [1.0]], payloads=rows, ids=["one", "two"])
    assert table.count({}) == 0
    for missing in ({"payloads": rows}, {"ids": ["one", "two"]}):
        with pytest.raises(ValueError, match="needs an id"):
            store.insert([direction(1.0)] * 2, **missing)


@pytest.fixture
def semantic(memories: Memories) -> SemanticMemory:
    return memories.open()


async def test_mem0_knows_the_facts_and_keeps_no_history(semantic: SemanticMemory) -> None:
    first, second = await semantic.add(ANA, [draft("a", "red fox"), draft("b", "blue whale")])
    mem0: Any = semantic.open_mem0().memory
    assert mem0.get(first["id"])["memory"] == "red fox"
    await semantic.update(ANA, first["id"], {"text": "green owl"})
    assert mem0.history(first["id"]) == []
    await semantic.delete(ANA, first["id"])
    assert mem0.get(first["id"]) is None
    assert mem0.get(second["id"])["memory"] == "blue whale"
    with pytest.raises(ValueError, match="not found"):
        mem0.delete(first["id"])


def test_mem0_has_no_chat_model(semantic: SemanticMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mem0.memory.main.MEM0_TELEMETRY", True)  # as if imported before
    mem0: Any = semantic.open_mem0().memory
    with pytest.raises(ModelError, match="chat model"):
        mem0.llm.generate_response([])
