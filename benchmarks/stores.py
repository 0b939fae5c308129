"""The memories that are compared, each in its own process.

    python -m benchmarks.stores NAME FOLDER

This process reads one JSON command per line and answers each with one line. `{"load": [first,
count]}` stores facts in bulk, `{"add": number}` and `{"recall": number}` time one call, and
`{"size": true}` measures memory and disk.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import resource
import sqlite3
import sys
import time
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from langchain_core.embeddings import Embeddings

from benchmarks.minilm import Absent
from benchmarks.tables import CIRCADIAN
from benchmarks.words import asked, told

if TYPE_CHECKING:
    from mem0.memory.main import Memory

    from graph.api import AsyncAgent
    from memory.records import FactDraft

# Each system is imported in its own process only, so that memory figures hold no other system.
MEM0 = "Mem0"
LANGGRAPH = "LangGraph SqliteStore"
DIMENSION = 384
TOP = 10
BATCH = 500
STAMP = "2026-01-01T00:00:00+00:00"


class Noise(Embeddings):
    """Random vectors from the checksums of texts: nearly free, and without meaning."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector of DIMENSION numbers per text."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a text; the same text has the same vector."""
        chosen = np.random.default_rng(zlib.crc32(text.encode()))
        vector: list[float] = chosen.standard_normal(DIMENSION, np.float32).tolist()
        return vector


class Store(Protocol):
    """A memory to be measured."""

    def load(self, numbers: range) -> None:
        """Store the facts of these numbers in bulk."""
        ...

    def add(self, number: int) -> None:
        """Store one fact."""
        ...

    def recall(self, number: int) -> int:
        """Ask about the fact of this number; returns how many memories were found."""
        ...


class Circadian:
    """An agent's semantic memory and recall."""

    def __init__(self, runner: asyncio.Runner, agent: AsyncAgent) -> None:
        self._runner, self._agent = runner, agent
        self._semantic = agent.resources.semantic

    def load(self, numbers: range) -> None:
        """Store them in batches."""
        for start in range(0, len(numbers), BATCH):
            self._write(numbers[start : start + BATCH])

    def add(self, number: int) -> None:
        """Store one fact through semantic memory."""
        self._write([number])

    def recall(self, number: int) -> int:
        """The whole recall: words and meaning, facts and journal."""
        return len(self._runner.run(self._agent.recall(asked(number), TOP)))

    def _write(self, numbers: range | list[int]) -> None:
        drafts = [draft(number, told(number)) for number in numbers]
        self._runner.run(self._semantic.add(self._agent.scope, drafts))


def draft(number: int, text: str) -> FactDraft:
    """Fact number `number` in the form that semantic memory takes."""
    from memory.records import operation_id

    return {
        "op": operation_id("benchmark", str(number)),
        "text": text,
        "source_entries": [f"event_20260101_{number}"],
        "source_events": [f"e{number}"],
        "speaker": "Ada",
        "entities": ["Ada"],
        "trust": 0.9,
        "importance": 5,
        "created": STAMP,
        "valid_from": STAMP,
    }


@contextmanager
def circadian(folder: Path) -> Iterator[Store]:
    """Open an agent with a free embedder."""
    from benchmarks.models import FixedModel
    from graph.agent import open_agent

    opening = open_agent(folder, model=FixedModel(), embedder=Noise())
    with asyncio.Runner() as runner:
        agent = runner.run(opening.__aenter__())
        yield Circadian(runner, agent)
        runner.run(opening.__aexit__(None, None, None))


class Mem0:
    """Mem0 with its own FAISS provider."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def load(self, numbers: range) -> None:
        """Store them in one call of the vector store, because each call rewrites the whole file."""
        texts = [told(number) for number in numbers]
        payloads = [{"data": text, "user_id": "ada", "created_at": STAMP} for text in texts]
        ids = [str(uuid.UUID(int=number)) for number in numbers]
        self._memory.vector_store.insert(Noise().embed_documents(texts), payloads, ids)

    def add(self, number: int) -> None:
        """Mem0's `add`, without extraction."""
        from benchmarks import mem0_own

        mem0_own.add(self._memory, told(number))

    def recall(self, number: int) -> int:
        """Its `search`: by meaning alone."""
        from benchmarks import mem0_own

        return len(mem0_own.search(self._memory, asked(number), TOP))


@contextmanager
def mem0(folder: Path) -> Iterator[Store]:
    """Open Mem0, unchanged except for the embedder."""
    from memory.facts.semantic import settle_mem0

    settle_mem0(folder)
    from benchmarks import mem0_own

    with mem0_own.opened(folder, Noise(), DIMENSION) as memory:
        yield Mem0(memory)


class LangGraph:
    """LangGraph's own store with its vector index."""

    NAMESPACE = ("ada", "facts")

    def __init__(self, store: Any) -> None:
        self._store = store

    def load(self, numbers: range) -> None:
        """Store them in batches."""
        from langgraph.store.base import PutOp

        for start in range(0, len(numbers), BATCH):
            self._store.batch(
                PutOp(self.NAMESPACE, str(number), {"text": told(number)})
                for number in numbers[start : start + BATCH]
            )

    def add(self, number: int) -> None:
        """Store one fact with `put`."""
        self._store.put(self.NAMESPACE, str(number), {"text": told(number)})

    def recall(self, number: int) -> int:
        """Its `search`: by meaning alone."""
        return len(self._store.search(self.NAMESPACE, query=asked(number), limit=TOP))


@contextmanager
def langgraph(folder: Path) -> Iterator[Store]:
    """Open SqliteStore, unchanged except for the embedder.

    Raises Absent if SQLite cannot load extensions.
    """
    from langgraph.store.sqlite import SqliteStore

    connection = _extensible().connect(
        folder / "store.db", check_same_thread=False, isolation_level=None
    )
    store = SqliteStore(connection, index={"dims": DIMENSION, "embed": Noise(), "fields": ["text"]})
    store.setup()
    yield LangGraph(store)
    connection.close()


def _extensible() -> Any:
    """A module like sqlite3 that can load extensions, as the index needs."""
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    try:
        return importlib.import_module("pysqlite3")
    except ImportError:
        raise Absent(
            "its index needs loadable extensions, which this Python's sqlite3 lacks; "
            "pip install pysqlite3-binary has them"
        ) from None


OPENING: dict[str, Callable[[Path], AbstractContextManager[Store]]] = {
    CIRCADIAN: circadian,
    MEM0: mem0,
    LANGGRAPH: langgraph,
}


def answer(store: Store, folder: Path, command: dict[str, Any]) -> Any:
    """Carry out one command; returns seconds, or sizes in bytes."""
    if "size" in command:
        files = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        return {"memory_bytes": resident(), "disk_bytes": files}
    [(name, value)] = command.items()
    given = range(value[0], sum(value)) if name == "load" else value
    work = getattr(store, name)
    began = time.perf_counter()
    work(given)
    return time.perf_counter() - began


def resident() -> int:
    """Bytes of memory that this process holds; without /proc, the most that it ever held."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Answer commands until the input ends."""
    # Output of libraries goes to stderr: stdout is for answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(said: Any) -> None:
        answers.write(f"{json.dumps(said)}\n")
        answers.flush()

    name, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True)
    try:
        with OPENING[name](folder) as store:
            tell({"ready": True})
            for line in sys.stdin:
                tell(answer(store, folder, json.loads(line)))
    except Absent as error:
        tell({"absent": str(error)})


if __name__ == "__main__":
    main()
