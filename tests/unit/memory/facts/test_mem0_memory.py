"""Mem0's own `Memory` on our store: what its users call, with its filters, in both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory.errors import ModelError
from memory.facts.semantic import SemanticMemory
from tests.support.facts import ANA, DIMENSION, WordEmbeddings, draft
from tests.support.tables import Open


@pytest.fixture
def semantic(open_table: Open, tmp_path: Path) -> Iterator[SemanticMemory]:
    opened = SemanticMemory(
        lambda: open_table(dimension=DIMENSION),
        mem0_dir=tmp_path / "mem0",
        dimension=DIMENSION,
        embeddings=WordEmbeddings,
    )
    yield opened
    opened.close()


@pytest.fixture
def mem0(semantic: SemanticMemory) -> Any:
    """Three facts of Ana and one of Ben, written by Mem0's own `add`."""
    memory = semantic.open_mem0().memory
    told = [("ana", "red fox", 0.9), ("ana", "red panda", 0.5), ("ana", "blue whale", 0.2)]
    for user, text, trust in [*told, ("ben", "red fox of ben", 0.9)]:
        message = [{"role": "user", "content": text}]
        memory.add(message, user_id=user, agent_id="x", infer=False, metadata={"trust": trust})
    return memory


def texts(found: Any) -> list[str]:
    return [one["memory"] for one in found["results"]]


def found(mem0: Any, query: str, **filters: Any) -> list[str]:
    return texts(mem0.search(query, filters={"user_id": "ana", **filters}, threshold=0.0))


def listed(mem0: Any, user: str = "ana", **filters: Any) -> list[str]:
    return texts(mem0.get_all(filters={"user_id": user, **filters}))


def test_a_search_gives_the_nearest_first_and_nothing_of_another(mem0: Any) -> None:
    assert found(mem0, "red fox")[:2] == ["red fox", "red panda"]
    assert "red fox of ben" not in found(mem0, "red fox of ben")
    [best, *_] = mem0.search("red panda", filters={"user_id": "ana"}, explain=True)["results"]
    assert best["score_details"]["bm25_score"] > 0, "by words and meaning together"
    assert best["metadata"] == {"trust": 0.5, "kind": "fact"}
    assert mem0.get(best["id"])["memory"] == "red panda"
    assert mem0.get("nobody") is None


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"trust": 0.5}, {"red panda"}),
    ({"trust": [0.5, 0.9]}, {"red fox", "red panda"}),
    ({"trust": {"gte": 0.5}}, {"red fox", "red panda"}),
    ({"trust": {"gt": 0.2, "lt": 0.9}}, {"red panda"}),
    ({"AND": [{"trust": {"gte": 0.5}}, {"trust": {"lte": 0.5}}]}, {"red panda"}),
    ({"speaker": ["Ana"]}, set()),
]


def test_equality_lists_and_ranges_filter_search_and_get_all(mem0: Any) -> None:
    for filters, expected in FILTERS:
        assert set(found(mem0, "red fox panda blue whale", **filters)) == expected, filters
        if "AND" not in filters:  # which Mem0 resolves in a search alone
            assert set(listed(mem0, **filters)) == expected, filters


@pytest.mark.parametrize(
    ("filters", "named"),
    [
        ({"trust": {"ne": 0.5}}, "ne"),
        ({"data": {"contains": "fox"}}, "data"),
        ({"trust": "*"}, "trust"),
        ({"OR": [{"trust": 0.2}]}, r"'\$?or'"),
        ({"NOT": [{"trust": 0.2}]}, r"'\$?not'"),
        ({"trust": {"about": 0.5}}, "operator"),
    ],
)
def test_any_other_filter_is_an_error_that_names_it(
    mem0: Any, filters: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        mem0.search("fox", filters={"user_id": "ana", **filters})
    with pytest.raises(ValueError, match=f"(?i){named}"):
        mem0.get_all(filters={"user_id": "ana", **filters})


def test_mem0_has_no_chat_model(mem0: Any) -> None:
    with pytest.raises(ModelError, match="chat model"):
        mem0.llm.generate_response([])


def test_an_update_is_found_and_its_history_told(mem0: Any) -> None:
    [old, *_] = mem0.get_all(filters={"user_id": "ana"})["results"]
    mem0.update(old["id"], text="green owl", metadata={"trust": 0.1})
    assert found(mem0, "green owl")[0] == "green owl"
    assert listed(mem0) == ["green owl", "red panda", "blue whale"]
    assert mem0.get(old["id"])["metadata"]["trust"] == 0.1
    changes = [(one["event"], one["new_memory"]) for one in mem0.history(old["id"])]
    assert changes == [("ADD", "red fox"), ("UPDATE", "green owl")]


def test_a_deletion_takes_one_memory_and_its_history(mem0: Any) -> None:
    [first, second, _] = mem0.get_all(filters={"user_id": "ana"})["results"]
    mem0.delete(first["id"])
    assert listed(mem0) == ["red panda", "blue whale"]
    assert (mem0.history(first["id"]), len(mem0.history(second["id"]))) == ([], 1)
    with pytest.raises(ValueError, match="not found"):
        mem0.delete(first["id"])


def test_delete_all_takes_all_of_one_user_and_nothing_else(mem0: Any) -> None:
    mem0.delete_all(user_id="ana")
    assert (listed(mem0), listed(mem0, "ben")) == ([], ["red fox of ben"])


async def test_a_reset_takes_all_facts_and_the_history_and_goes_on(
    mem0: Any, semantic: SemanticMemory
) -> None:
    [one, *_] = mem0.get_all(filters={"user_id": "ben"})["results"]
    mem0.reset()
    assert listed(mem0) == listed(mem0, "ben") == mem0.history(one["id"]) == []
    [fact] = await semantic.add(ANA, [draft("a", "a new fact")])
    assert [row["event"] for row in mem0.history(fact["id"])] == ["ADD"]
    await semantic.delete(ANA, fact["id"])
    assert mem0.history(fact["id"]) == []
