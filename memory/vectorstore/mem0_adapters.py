"""Mem0 on LangChain models and on our facts table. Importing this imports Mem0."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from mem0.configs.base import MemoryConfig
from mem0.embeddings.base import EmbeddingBase
from mem0.embeddings.configs import EmbedderConfig
from mem0.llms.base import LLMBase
from mem0.llms.configs import LlmConfig
from mem0.memory.main import Memory
from mem0.memory.storage import SQLiteManager
from mem0.memory.utils import remove_code_blocks
from mem0.utils import spacy_models
from mem0.utils.factory import EmbedderFactory, LlmFactory, VectorStoreFactory
from mem0.vector_stores.configs import VectorStoreConfig
from pydantic import BaseModel, ValidationError

from memory.errors import ModelError
from memory.sqlite.wal import use_wal
from memory.vectorstore.faiss_index import FactsIndex, Vector
from memory.vectorstore.mem0_store import COLLECTION, FactsConfig
from memory.vectorstore.sqlite import FactsDb

PROVIDER = "circadian"
"""Mem0's provider name of the two model adapters."""

Embedding = list[float] | Vector


class LangChainEmbedder(EmbeddingBase):
    """Any LangChain `Embeddings`. Mem0 asks text by text; `ready` answers from one batch."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._embeddings: Embeddings = config.model
        self._ready: Mapping[str, Embedding] = {}

    @contextmanager
    def ready(self, vectors: Mapping[str, Embedding]) -> Iterator[None]:
        """Inside, the texts in `vectors` cost no call. Not for two threads at once."""
        self._ready = vectors
        try:
            yield
        finally:
            self._ready = {}

    def embed(self, text: str, memory_action: str | None = None) -> Embedding:
        """The vector of one text."""
        if text in self._ready:
            return self._ready[text]
        if memory_action == "search":
            return self._embeddings.embed_query(text)
        return self._embeddings.embed_documents([text])[0]

    def embed_batch(
        self, texts: Sequence[str], memory_action: str | None = "add"
    ) -> list[list[float]]:
        """The vectors of many texts, in one call."""
        return self._embeddings.embed_documents(list(texts))


class Extracted(BaseModel):
    """One memory that Mem0's extraction prompt asks for."""

    text: str


class Extraction(BaseModel):
    """What Mem0's extraction prompt asks for."""

    memory: list[Extracted]


class LangChainChat(LLMBase):
    """Any LangChain chat model.

    Mem0 takes a broken answer for "nothing to remember"; here it is a ModelError.
    """

    def generate_response(
        self,
        messages: Sequence[Mapping[str, str]],
        tools: Sequence[Any] | None = None,
        tool_choice: str = "auto",
        response_format: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> str:
        """The model's answer as text; with a response format, JSON of that shape."""
        model: object = self.config.model
        if not isinstance(model, BaseChatModel) or tools:
            raise ModelError("Mem0 asked for a chat model, or for tools, that it was not given")
        answer = model.invoke([(one["role"], one["content"]) for one in messages])
        text: str = remove_code_blocks(str(answer.text))
        if response_format is not None:
            _check_extraction(text)
        elif not text:
            raise ModelError("the model gave Mem0 an empty answer")
        return text


def _check_extraction(text: str) -> None:
    try:
        Extraction.model_validate_json(text)
    except ValidationError as error:
        raise ModelError(f"the model gave Mem0 a broken extraction: {text[:200]!r}") from error


class BatchedHistory(SQLiteManager):
    """Mem0's history of changes: written after the facts it tells of, and erased with them."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        use_wal(self.connection)
        # A power cut may cost its last rows: the facts themselves are in the table.
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self._held: list[dict[str, Any]] | None = None

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Hold what is added inside, and write it at the end unless there was an error."""
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
        """Keep one change. A deletion takes the fact's rows away: they hold its text."""
        if event == "DELETE":
            self._erase(memory_id)
        elif self._held is None:
            super().add_history(memory_id, old_memory, new_memory, event, **details)
        else:
            row = {"memory_id": memory_id, "old_memory": old_memory, "new_memory": new_memory}
            self._held.append({**row, "event": event, **details})

    def close(self) -> None:
        """Close the file. Twice is the same as once."""
        closing: Callable[[], object] = super().close
        closing()

    def _erase(self, memory_id: str) -> None:
        with self._lock, self.connection:
            self.connection.execute("DELETE FROM history WHERE memory_id = ?", (memory_id,))


@dataclass(frozen=True)
class Mem0:
    """Mem0, and the parts under it on which a write is prepared."""

    memory: Memory
    db: FactsDb
    embedder: LangChainEmbedder
    history: BatchedHistory

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Everything inside is one write: all of it or nothing, and then its history."""
        with self.db.lock, self.history.batch(), self.db.transaction():
            yield

    def add(self, text: str, ids: Mapping[str, str], metadata: dict[str, Any]) -> None:
        """Write one fact as it is given, under Mem0's `user_id` and `agent_id`."""
        self.memory.add([{"role": "user", "content": text}], **ids, metadata=metadata, infer=False)

    def delete(self, fact_id: str) -> None:
        """Remove one fact."""
        forget: Callable[[str], object] = self.memory.delete
        forget(fact_id)

    def stored_vector(self, fact_id: str) -> Vector:
        """The vector of a fact that stands."""
        return np.frombuffer(self.db.vector(fact_id) or b"", dtype=np.float32)


def open_mem0(
    db: FactsDb,
    index: FactsIndex,
    *,
    embeddings: Embeddings,
    dimension: int,
    folder: Path,
    chat_model: BaseChatModel | None = None,
) -> Mem0:
    """Mem0 over `db` and `index`, with its own files in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    EmbedderFactory.provider_to_class[PROVIDER] = f"{__name__}.{LangChainEmbedder.__name__}"
    LlmFactory.register_provider(PROVIDER, f"{__name__}.{LangChainChat.__name__}")
    VectorStoreFactory.provider_to_class["faiss"] = "memory.vectorstore.mem0_store.SQLiteFaissStore"
    _keep_spacy_from_downloading()
    table: Any = FactsConfig(
        collection_name=COLLECTION,
        path=str(folder),
        distance_strategy="cosine",
        normalize_L2=False,
        embedding_model_dims=dimension,
        db=db,
        index=index,
    )
    model = {"model": embeddings, "embedding_dims": dimension}
    # model_construct: Mem0's own validators know the names of its own providers only.
    config = MemoryConfig(
        vector_store=VectorStoreConfig.model_construct(provider="faiss", config=table),
        embedder=EmbedderConfig.model_construct(provider=PROVIDER, config=model),
        llm=LlmConfig.model_construct(provider=PROVIDER, config={"model": chat_model}),
        history_db_path=str(folder / "history.db"),
    )
    memory = Memory(config)
    memory.db.close()
    memory.db = BatchedHistory(config.history_db_path)
    return Mem0(memory, db, memory.embedding_model, memory.db)


def _keep_spacy_from_downloading() -> None:
    """Where spaCy's model is not installed, Mem0 fetches it inside the first write."""
    if find_spec("en_core_web_sm") is None:
        spacy_models._load_failed_full = spacy_models._load_failed_lemma = True
