"""Mem0 on LangChain embeddings and on the table of memories. Importing this imports Mem0.

Mem0 stores facts as they are given and keeps a history of their changes. Its extraction, which
needs a chat model, and its search are not used.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from langchain_core.embeddings import Embeddings
from mem0.configs.base import MemoryConfig
from mem0.configs.vector_stores.faiss import FAISSConfig
from mem0.embeddings.base import EmbeddingBase
from mem0.embeddings.configs import EmbedderConfig
from mem0.llms.base import LLMBase
from mem0.llms.configs import LlmConfig
from mem0.memory import main, telemetry
from mem0.memory.main import Memory
from mem0.memory.storage import SQLiteManager
from mem0.utils import spacy_models
from mem0.utils.factory import EmbedderFactory, LlmFactory, VectorStoreFactory
from mem0.vector_stores.base import VectorStoreBase
from mem0.vector_stores.configs import VectorStoreConfig

from memory.errors import InputError, MemoryStoreError, ModelError
from memory.facts.table import History, MemoryTable, Row, Vector, unit
from memory.storage.sqlite import compact, use_wal

PROVIDER = "circadian"
"""Mem0's provider name of the embedder and of the model that it must not use."""

COLLECTION = "facts"
"""The one collection. Mem0's own entity collection is not kept."""

KIND = {"kind": "fact"}
"""The only rows of the table that Mem0 sees and writes."""

Embedding = Sequence[float] | Vector


class LangChainEmbedder(EmbeddingBase):
    """Any LangChain `Embeddings`, loaded on first use.

    Mem0 embeds text by text; `ready` supplies vectors that were embedded together before.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._load: Callable[[], Embeddings] = config.model
        self._ready: Mapping[str, Embedding | None] = {}

    @contextmanager
    def ready(self, vectors: Mapping[str, Embedding | None]) -> Iterator[None]:
        """Use these vectors inside. Not for two threads at once.

        None for a text keeps the vector that its fact has, if any.
        """
        self._ready = vectors
        try:
            yield
        finally:
            self._ready = {}

    def embed(self, text: str, memory_action: str | None = None) -> Embedding | None:
        """The vector of one text."""
        if text in self._ready:
            return self._ready[text]
        return self._load().embed_documents([text])[0]


class NoChatModel(LLMBase):
    """Takes the place of the chat model that Mem0 requires."""

    def generate_response(self, *args: Any, **settings: Any) -> str:
        """Raise ModelError."""
        raise ModelError("Mem0 has no chat model here: facts are stored as they are given")


class FactsConfig(FAISSConfig):
    """Mem0's FAISS settings, with the open table under the store."""

    table: Any


class FactStore(VectorStoreBase):
    """Mem0's vector store on the table of memories, under Mem0's provider name "faiss".

    It does what Mem0 asks for when it adds, updates or deletes a fact. Searching and listing go
    past Mem0, through `SemanticMemory`. Rows of other kinds are never returned, changed or removed.
    """

    def __init__(self, *, collection_name: str, table: MemoryTable, **settings: Any) -> None:
        if collection_name != COLLECTION:
            raise ValueError(f"there is one collection, {COLLECTION!r}, and no {collection_name!r}")
        self._table = table
        self._dimension = int(settings["embedding_model_dims"])

    def insert(
        self,
        vectors: Sequence[Embedding],
        payloads: Sequence[Mapping[str, Any]] | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        """Add rows, all or none. A row whose operation id exists in its scope is ignored."""
        if payloads is None or ids is None:
            raise ValueError("a fact needs an id and a payload")
        with self._table.transaction():
            for fact_id, vector, payload in zip(ids, vectors, payloads, strict=True):
                self._table.insert(fact_id, unit(vector, self._dimension), _kept(payload))

    def update(
        self,
        vector_id: str,
        vector: Embedding | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> None:
        """Replace one fact's vector, payload or both."""
        if self.get(vector_id) is not None:
            given = None if vector is None else unit(vector, self._dimension)
            self._table.update(vector_id, given, None if payload is None else _kept(payload))

    def delete(self, vector_id: str) -> None:
        """Remove one fact."""
        self._table.delete({"id": vector_id, **KIND})

    def get(self, vector_id: str) -> Row | None:
        """One fact, or None. Mem0 reads its id and its payload."""
        return next(iter(self._table.select({"id": vector_id, **KIND})), None)

    def _refuse(self, *args: Any, **settings: Any) -> NoReturn:
        raise InputError(
            "facts are searched, listed and removed through SemanticMemory, not through Mem0"
        )

    create_col = search = keyword_search = list_cols = delete_col = col_info = list = reset = (
        _refuse
    )


def _kept(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A fact's payload without the field that Mem0 derives from others."""
    return {k: v for k, v in payload.items() if k != "text_lemmatized"} | KIND


class FileHistory(SQLiteManager):
    """Mem0's history in an SQLite file: written after the facts, and erased with them."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        use_wal(self.connection)
        # A power cut may cost its last rows: the facts themselves are in the table.
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.connection.execute("PRAGMA secure_delete = ON")
        self.connection.execute("CREATE INDEX IF NOT EXISTS history_of ON history (memory_id)")
        self._held: list[dict[str, Any]] | None = None

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Write the changes added inside together at the end, unless there was an error."""
        self._held = []
        try:
            yield
            self.batch_add_history(self._held)
        finally:
            self._held = None

    def add_history(
        self,
        memory_id: str,
        old_memory: str | None,
        new_memory: str | None,
        event: str,
        **details: Any,
    ) -> None:
        """Add one change. A deletion removes all changes of the memory: they hold its text."""
        if event == "DELETE":
            with self._lock, self.connection:
                self.connection.execute("DELETE FROM history WHERE memory_id = ?", (memory_id,))
        elif self._held is None:
            super().add_history(memory_id, old_memory, new_memory, event, **details)
        else:
            row = {"memory_id": memory_id, "old_memory": old_memory, "new_memory": new_memory}
            self._held.append({**row, "event": event, **details})

    def scrub(self) -> None:
        """Rewrite the file, so that deleted content is neither in it nor in its log."""
        try:
            with self._lock:
                compact(self.connection)
        except sqlite3.Error as error:
            raise MemoryStoreError(f"Mem0's history at {self.db_path}: {error}") from error

    def close(self) -> None:
        """Close the file. May be called twice."""
        closing: Callable[[], object] = super().close
        closing()


@dataclass(frozen=True)
class Mem0:
    """Mem0, with the parts of it that a write prepares."""

    memory: Memory
    table: MemoryTable
    embedder: LangChainEmbedder
    history: History

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Make the writes inside atomic; the history follows them."""
        with self.table.lock, self.history.batch(), self.table.transaction():
            yield

    def add(self, text: str, ids: Mapping[str, str], metadata: dict[str, Any]) -> None:
        """Write one fact as it is given, under Mem0's `user_id` and `agent_id`."""
        self.memory.add([{"role": "user", "content": text}], **ids, metadata=metadata, infer=False)

    def delete(self, fact_id: str) -> None:
        """Remove one fact."""
        forget: Callable[[str], object] = self.memory.delete
        forget(fact_id)


def open_mem0(
    table: MemoryTable,
    *,
    load_embeddings: Callable[[], Embeddings],
    dimension: int,
    folder: Path,
    open_history: Callable[[], History] | None = None,
) -> Mem0:
    """Mem0 over `table`, with its own files in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    EmbedderFactory.provider_to_class[PROVIDER] = f"{__name__}.{LangChainEmbedder.__name__}"
    LlmFactory.register_provider(PROVIDER, f"{__name__}.{NoChatModel.__name__}")
    VectorStoreFactory.provider_to_class["faiss"] = f"{__name__}.{FactStore.__name__}"
    _do_without_spacy()
    store: Any = FactsConfig(
        collection_name=COLLECTION,
        path=str(folder),
        distance_strategy="cosine",
        normalize_L2=False,
        embedding_model_dims=dimension,
        table=table,
    )
    model = {"model": load_embeddings, "embedding_dims": dimension}
    # model_construct: Mem0's validators know only the names of its own providers.
    config = MemoryConfig(
        vector_store=VectorStoreConfig.model_construct(provider="faiss", config=store),
        embedder=EmbedderConfig.model_construct(provider=PROVIDER, config=model),
        llm=LlmConfig.model_construct(provider=PROVIDER, config={"model": None}),
        history_db_path=":memory:",
    )
    memory = Memory(config)
    memory.db.close()
    history: Any = open_history() if open_history else FileHistory(folder / "history.db")
    memory.db = history
    return Mem0(memory, table, memory.embedding_model, history)


def _do_without_spacy() -> None:
    """Let Mem0 neither look for entities in a text nor store any, and report nothing to anybody.

    Where spaCy's model is not installed, Mem0 would even download it inside the first write.
    """
    spacy_models._load_failed_full = spacy_models._load_failed_lemma = True
    # Its variable is read where it is imported, which may have been before the product.
    for module in (main, telemetry):
        vars(module)["MEM0_TELEMETRY"] = False
