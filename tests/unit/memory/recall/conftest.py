"""A semantic memory of one test, and a store beside it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore

from memory.facts.semantic import SemanticMemory
from tests.support.facts import memory_at
from tests.support.recalling import Asking


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[SemanticMemory]:
    opened = memory_at(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def asking(memory: SemanticMemory, store: InMemoryStore) -> Asking:
    return Asking(memory, store)
