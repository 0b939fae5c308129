"""Mem0's own `Memory` over the table: the calls that semantic memory makes, in both databases."""

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


def changes(mem0: Any, fact_id: str) -> list[tuple[str, str]]:
    return [(row["event"], row["new_memory"]) for row in mem0.history(fact_id)]


async def test_mem0_tells_the_history_of_a_fact(semantic: SemanticMemory) -> None:
    first, second = await semantic.add(ANA, [draft("a", "red fox"), draft("b", "blue whale")])
    mem0: Any = semantic.open_mem0().memory
    assert mem0.get(first["id"])["memory"] == "red fox"
    await semantic.update(ANA, first["id"], {"text": "green owl"})
    assert changes(mem0, first["id"]) == [("ADD", "red fox"), ("UPDATE", "green owl")]
    await semantic.delete(ANA, first["id"])
    assert (changes(mem0, first["id"]), len(changes(mem0, second["id"]))) == ([], 1)
    assert mem0.get(first["id"]) is None
    with pytest.raises(ValueError, match="not found"):
        mem0.delete(first["id"])


def test_mem0_has_no_chat_model(semantic: SemanticMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mem0.memory.main.MEM0_TELEMETRY", True)  # as if imported before
    mem0: Any = semantic.open_mem0().memory
    with pytest.raises(ModelError, match="chat model"):
        mem0.llm.generate_response([])
