"""Semantic memory for tests, on both databases: facts written through Mem0.

The fixtures are registered for every test by conftest.py: `memories` is each of the two in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from langchain_core.embeddings import Embeddings

from memory.facts.semantic import SemanticMemory
from tests.support import facts
from tests.support.facts import DIMENSION, WordEmbeddings
from tests.support.tables import DATABASES

if TYPE_CHECKING:
    from memory.storage.postgres.connections import BlockingPool


class Memories:
    def __init__(self, folder: Path, pool: BlockingPool | None) -> None:
        self._folder, self._pool = folder, pool
        self.opened: list[SemanticMemory] = []

    def open(self, embeddings: Embeddings | None = None) -> SemanticMemory:
        """Open it, as another process would; closed after the test."""
        if self._pool is None:
            self.opened.append(facts.memory_at(self._folder, embeddings))
            return self.opened[-1]
        from memory.facts.postgres.table import PostgresTable

        used = embeddings or WordEmbeddings()
        table = PostgresTable(self._pool, model="words", dimension=DIMENSION)
        memory = SemanticMemory(
            lambda: table,
            mem0_dir=self._folder / "mem0",
            dimension=DIMENSION,
            embeddings=lambda: used,
        )
        self.opened.append(memory)
        return memory


@pytest.fixture(scope="module")
def semantic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SemanticMemory]:
    """One in a file, for all tests of a module."""
    made = facts.memory_at(tmp_path_factory.mktemp("facts"))
    yield made
    made.close()


@pytest.fixture(params=DATABASES)
def memories(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memories]:
    """An empty database, each of the two in turn."""
    postgres = request.param == "postgres"
    made = Memories(tmp_path, request.getfixturevalue("postgres_pool") if postgres else None)
    yield made
    for memory in made.opened:
        memory.close()


@pytest.fixture
def embeddings() -> WordEmbeddings:
    return WordEmbeddings()


@pytest.fixture
def memory(memories: Memories, embeddings: WordEmbeddings) -> SemanticMemory:
    return memories.open(embeddings)
