"""Mem0 on LangChain's chat models: its own extraction, which the product does not use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from memory.errors import ModelError
from memory.semantic import SemanticMemory
from tests.facts import WordEmbeddings, memory_at


def extraction(memory: SemanticMemory) -> Any:
    return memory.open_mem0().memory.add("I moved to Lisbon", user_id="ana")


@pytest.mark.parametrize(
    "answer",
    ["", "I cannot", '{"memory": ["a"]}', '{"memory": [{"text": 1}]}', '{"memo', "[]", "{}"],
)
def test_a_broken_answer_to_mem0_is_an_error_and_not_an_empty_memory(
    tmp_path: Path, answer: str
) -> None:
    memory = memory_at(tmp_path, chat_model=FakeListChatModel(responses=[answer]))
    with pytest.raises(Exception, match="broken extraction") as caught:
        extraction(memory)
    assert isinstance(caught.value.__cause__, ModelError)
    memory.close()


def test_mem0_works_on_any_langchain_chat_model(tmp_path: Path) -> None:
    answer = '```json\n{"memory": [{"text": "Ana lives in Lisbon"}, {"text": "Ana moved"}]}\n```'
    embeddings = WordEmbeddings()
    memory = memory_at(tmp_path, embeddings, chat_model=FakeListChatModel(responses=[answer]))
    results = extraction(memory)["results"]
    assert [one["memory"] for one in results] == ["Ana lives in Lisbon", "Ana moved"]
    assert embeddings.calls == [["Ana lives in Lisbon", "Ana moved"]]
    memory.close()


def test_mem0_without_a_chat_model_says_so(tmp_path: Path) -> None:
    memory = memory_at(tmp_path)
    with pytest.raises(Exception, match="chat model"):
        extraction(memory)
    memory.close()
