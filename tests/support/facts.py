"""Facts for tests: a small deterministic embedder, drafts, and writers that can be killed."""

import os
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
from langchain_core.embeddings import Embeddings

from memory.facts.semantic import SemanticMemory
from memory.facts.sqlite.table import SqliteTable
from memory.facts.table import fact_of
from memory.records.records import Fact, FactDraft, Scope
from tests.support.forked import forked_python
from tests.support.source_files import ROOT

DIMENSION = 64
ANA = Scope("ana", "thread-1")
BEN = Scope("ben", "thread-2")


class WordEmbeddings(Embeddings):
    """A direction per word, by its checksum; keeps the calls made to it."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(list(texts))
        return [vector_of(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return vector_of(text)


def vector_of(text: str) -> list[float]:
    """A text is the sum of its words, and a word a direction of its own."""
    vector = np.zeros(DIMENSION)
    for word in text.casefold().split():
        vector += np.random.default_rng(zlib.crc32(word.encode())).normal(size=DIMENSION)
    return [float(one) for one in vector]


def draft(op: str, text: str, **changes: Any) -> FactDraft:
    record = {
        "op": op,
        "text": text,
        "source_entries": [f"entry_{op}"],
        "source_events": [f"event_{op}"],
        "speaker": None,
        "entities": [],
        "trust": 0.9,
        "importance": 5,
        "created": "2026-03-02T09:00:00+00:00",
        "valid_from": "2026-03-01T08:00:00+00:00",
    }
    return cast(FactDraft, {**record, **changes})


def memory_at(folder: Path, embeddings: Embeddings | None = None, **options: Any) -> SemanticMemory:
    embeddings = embeddings or WordEmbeddings()
    return SemanticMemory(
        lambda: SqliteTable(folder / "facts.db", model="words", dimension=DIMENSION),
        mem0_dir=folder / "mem0",
        dimension=DIMENSION,
        embeddings=lambda: embeddings,
        **options,
    )


async def nearest_facts(
    memory: SemanticMemory,
    scope: Scope,
    query: str,
    limit: int,
    *,
    include_superseded: bool = False,
) -> list[tuple[Fact, float]]:
    [found] = memory.lookup(
        scope,
        [([], await memory.embed_query(query))],
        kinds=["fact"],
        limit=limit,
        include_superseded=include_superseded,
    )
    return [(fact_of(row), score) for row, score in found.near]


def texts(facts: Sequence[Fact]) -> list[str]:
    return [fact["text"] for fact in facts]


@contextmanager
def running(
    code: str, *arguments: str, python: str | None = None, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """Run `code` in another process, with a pipe from its output; killed at the end."""
    process = subprocess.Popen(
        [python or forked_python(), "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)


def acknowledged(process: subprocess.Popen[str], count: int) -> list[str]:
    """The lines that `process` prints until it is killed, which is after `count` of them."""
    assert process.stdout is not None
    lines = [process.stdout.readline().strip() for _ in range(count)]
    process.kill()
    rest = process.stdout.read()
    assert all(lines), process.communicate(timeout=30)[1]
    return lines + rest.split("\n")[: rest.count("\n")]
