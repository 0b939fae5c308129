"""Mem0's vector store over the table of memories, in both databases."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memory.errors import MemoryStoreError
from memory.facts.semantic import settle_mem0
from memory.facts.table import MemoryTable
from tests.support.tables import DIMENSION, direction, ids, payload, scope


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
    """Three facts of Ana, and an episode of hers that says the same as the first."""
    rows = [payload("ana", op, f"text {op}") for op in "abc"]
    vectors = [direction(1.0), direction(0.0, 1.0), direction(0.0, 0.0, 1.0)]
    store.insert(vectors, payloads=rows, ids=["one", "two", "three"])
    table.insert("episode", direction(1.0), payload("ana", "a", "text a", kind="episode"))
    return store


def names(found: Any) -> list[str]:
    return [one.id for one in found]


def test_what_mem0_puts_in_comes_out(filled: Any) -> None:
    assert filled.get("one").payload["data"] == "text a"
    assert names(filled.search("", [0.1, 1.0, *[0.0] * 6], 2, scope("ana"))) == ["two", "one"]
    assert names(filled.keyword_search("texts C", 5, scope("ana")))[0] == "three"
    assert names(filled.list(scope("ana"))[0]) == ["one", "two", "three"]
    assert names(filled.list(scope("ana"), top_k=1)[0]) == ["one"]
    assert names(filled.list()[0]) == ["one", "two", "three"]
    assert filled.list_cols() == ["facts"]
    assert filled.col_info() == {"name": "facts", "count": 3, "dimension": 8, "distance": "cosine"}


def test_an_update_changes_one_fact_and_a_deletion_removes_one(filled: Any) -> None:
    filled.update("two", vector=[3.0, 4.0, *[0.0] * 6])
    filled.update("three", payload=payload("ana", "c", "text c", speaker="Ana"))
    filled.delete("one")
    assert filled.get("one") is None
    assert filled.get("two").payload["data"] == "text b"
    assert filled.get("three").payload["speaker"] == "Ana"
    found = filled.search("", [0.6, 0.8, *[0.0] * 6], 5, scope("ana"))
    assert [(one.id, round(one.score, 3)) for one in found] == [("two", 1.0), ("three", 0.0)]


def test_several_searches_at_once_are_the_same_as_one_by_one(filled: Any) -> None:
    queries = [list(direction(1.0)), list(direction(0.0, 1.0))]
    both = filled.search_batch(["", ""], queries, top_k=2, filters=scope("ana"))
    assert both == [filled.search("", query, 2, scope("ana")) for query in queries]
    assert [names(one)[0] for one in both] == ["one", "two"]


def test_mem0_sees_and_changes_facts_alone(filled: Any, table: MemoryTable) -> None:
    everything = [
        filled.list()[0],
        filled.search("", direction(1.0), 9, scope("ana")),
        filled.keyword_search("text", 9, scope("ana")),
    ]
    for found in everything:
        assert sorted(names(found)) == ["one", "three", "two"]
    with pytest.raises(ValueError, match="episode"):
        filled.list({"kind": "episode"})
    assert filled.get("episode") is None
    before = table.select({"kind": "episode"})
    filled.update("episode", direction(0.0, 1.0), payload("ana", "a", "changed"))
    filled.delete("episode")
    filled.insert([direction(1.0)], [payload("ana", "z", "x", kind="episode")], ["claimed"])
    assert filled.get("claimed").payload["kind"] == "fact"
    filled.delete_col()
    assert table.select({}) == before


def test_a_reset_leaves_an_empty_collection_that_works(filled: Any, table: MemoryTable) -> None:
    filled.reset()
    assert filled.list()[0] == []
    assert filled.search("", direction(1.0), 5, scope("ana")) == []
    filled.insert([direction(1.0)], payloads=[payload("ana", "a", "text")], ids=["anew"])
    assert names(filled.search("", direction(1.0), 5, scope("ana"))) == ["anew"]
    assert ids(table.select({"kind": "episode"})) == ["episode"]


def test_there_is_one_collection_of_one_dimension(store: Any, mem0_store: ModuleType) -> None:
    store.create_col("facts", DIMENSION, "cosine")
    for asked in (("facts", DIMENSION + 1, "cosine"), ("others", DIMENSION, "cosine")):
        with pytest.raises(ValueError, match="8, cosine"):
            store.create_col(*asked)
    with pytest.raises(ValueError, match="one collection"):
        mem0_store.FactStore(
            collection_name="facts_entities", table=None, embedding_model_dims=DIMENSION
        )


def test_rows_of_one_insert_are_written_together_or_not_at_all(store: Any) -> None:
    rows = [payload("ana", "a", "text"), payload("ana", "b", "text")]
    with pytest.raises(MemoryStoreError):
        store.insert([direction(1.0), [1.0]], payloads=rows, ids=["one", "two"])
    assert store.col_info()["count"] == 0
    for missing in ({"payloads": rows}, {"ids": ["one", "two"]}):
        with pytest.raises(ValueError, match="needs an id"):
            store.insert([direction(1.0)] * 2, **missing)
    with pytest.raises(ValueError, match="filter"):
        store.list({"trust": {"about": 1}})
