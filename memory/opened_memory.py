"""What semantic memory stands on, opened when first used: its table, the embedder, and Mem0."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel

from memory.breaker import Breaker, Breakers, guarded
from memory.errors import CircuitOpen, MemoryStoreError
from memory.models.embed import embed_query, embed_texts
from memory.vectorstore.history import History
from memory.vectorstore.table import MemoryTable, Vector
from memory.vectorstore.vectors import unit

if TYPE_CHECKING:
    from memory.vectorstore.mem0_adapters import Mem0

Params = ParamSpec("Params")
Result = TypeVar("Result")

EMBEDDED_CHARS = 4_000
"""Characters of a text that are embedded: an embedder refuses a text that is longer than it takes,
and would refuse it every time."""


class OpenedMemory:
    """Opens nothing before it is used, and again after it was closed.

    Raises MemoryStoreError where the table cannot be read or written, or failed so often that it is
    left alone; ModelError where the embedder gives no vectors.
    """

    breakers: Breakers | None = None
    """Those of the installation, set by whoever opens it."""

    def __init__(
        self,
        open_table: Callable[[], MemoryTable],
        *,
        mem0_dir: Path,
        dimension: int,
        embeddings: Callable[[], Embeddings],
        chat_model: BaseChatModel | None = None,
        open_history: Callable[[], History] | None = None,
    ) -> None:
        """Stand on the table that `open_table` makes, with Mem0's own files in `mem0_dir`.

        `embeddings` is called once, when a text must be embedded; its vectors have `dimension`
        numbers. Mem0 needs no `chat_model` here: facts are written as they are given. What it keeps
        of every change is in a file in `mem0_dir`, unless `open_history` opens another history.
        """
        self._load_table, self._mem0_dir, self._dimension = open_table, mem0_dir, dimension
        self._load_embeddings, self._chat_model = embeddings, chat_model
        self._load_history = open_history
        self._opening = threading.RLock()
        self._embeddings: Embeddings | None = None
        self._table: MemoryTable | None = None
        self._mem0: Mem0 | None = None

    async def embed_query(self, text: str) -> Vector | None:
        """The vector of a query, of length 1; None where the embedder sees nothing in it."""
        embeddings = await asyncio.to_thread(self.open_embeddings)
        given = await embed_query(embeddings, text[:EMBEDDED_CHARS], breaker=self._embedder_breaker)
        vector = unit(given, self._dimension)
        return vector if vector.any() else None

    def close(self) -> None:
        """Close the table, once a write in hand is done; a later call opens it again."""
        with self._opening:
            mem0, table = self._mem0, self._table
            self._mem0 = self._table = None
        # Outside of the lock: nobody waits for it who only wants to open the table again.
        if table is not None:
            table.close()
        if mem0 is not None:
            mem0.history.close()

    async def run(
        self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
    ) -> Result:
        """Do blocking work in a thread; what goes wrong with a file is a MemoryStoreError."""

        async def send() -> Result:
            try:
                return await asyncio.to_thread(work, *args, **kwargs)
            except (sqlite3.Error, OSError) as error:
                raise MemoryStoreError(f"semantic memory: {error}") from error

        breaker = self.breakers.memory if self.breakers else None
        try:
            return await guarded(breaker, send, failure=MemoryStoreError)
        except CircuitOpen as error:
            raise MemoryStoreError(str(error)) from error

    @property
    def _embedder_breaker(self) -> Breaker | None:
        return self.breakers.embedder if self.breakers else None

    async def embed(self, texts: Sequence[str]) -> dict[str, Vector]:
        """The vectors of `texts`, each embedded once, all in one call. A blank one is like nothing.

        Raises MemoryStoreError for what is no vector of this memory.
        """
        distinct = list(dict.fromkeys(text for text in texts if text.strip()))
        vectors = {text: np.zeros(self._dimension, dtype=np.float32) for text in texts}
        if distinct:
            embeddings = await asyncio.to_thread(self.open_embeddings)
            cut = [text[:EMBEDDED_CHARS] for text in distinct]
            given = await embed_texts(embeddings, cut, breaker=self._embedder_breaker)
            pairs = zip(distinct, given, strict=True)
            vectors |= {text: unit(vector, self._dimension) for text, vector in pairs}
        return vectors

    @contextmanager
    def writing(self) -> Iterator[Mem0]:
        """Mem0, with all that is written meanwhile in one transaction. Blocking."""
        mem0 = self.open_mem0()
        with mem0.writing():
            yield mem0

    def open_table(self) -> MemoryTable:
        """The table, opened where it is not. Blocking."""
        with self._opening:
            if self._table is None:
                self._table = self._load_table()
            return self._table

    def open_embeddings(self) -> Embeddings:
        """The embedder, loaded where it is not. Blocking. Raises InputError without its key."""
        with self._opening:
            if self._embeddings is None:
                self._embeddings = self._load_embeddings()
            return self._embeddings

    def open_mem0(self) -> Mem0:
        """Mem0 is slow to import (a second), so only a write does it."""
        with self._opening:
            if self._mem0 is None:
                settle_mem0(self._mem0_dir)
                from memory.vectorstore.mem0_adapters import open_mem0

                self._mem0 = open_mem0(
                    self.open_table(),
                    load_embeddings=self.open_embeddings,
                    dimension=self._dimension,
                    folder=self._mem0_dir,
                    chat_model=self._chat_model,
                    open_history=self._load_history,
                )
            return self._mem0


def settle_mem0(folder: Path) -> None:
    """Mem0 reads these once, when imported: no telemetry, and no file of its own in the home."""
    if "mem0" not in sys.modules:
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ["MEM0_DIR"] = str(folder)
