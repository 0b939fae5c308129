"""Mem0 on LangChain models and on the table of memories. Importing this imports Mem0."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from mem0.configs.base import MemoryConfig
from mem0.embeddings.base import EmbeddingBase
from mem0.embeddings.configs import EmbedderConfig
from mem0.llms.base import LLMBase
from mem0.llms.configs import LlmConfig
from mem0.memory.main import Memory
from mem0.memory.utils import remove_code_blocks
from mem0.utils import spacy_models
from mem0.utils.factory import EmbedderFactory, LlmFactory, VectorStoreFactory
from mem0.vector_stores.configs import VectorStoreConfig
from pydantic import BaseModel, ValidationError

from memory.errors import ModelError
from memory.vectorstore.history import History
from memory.vectorstore.mem0_history import FileHistory
from memory.vectorstore.mem0_store import COLLECTION, FactsConfig
from memory.vectorstore.table import MemoryTable, Vector

PROVIDER = "circadian"
"""Mem0's provider name of the two model adapters."""

Embedding = list[float] | Vector


class LangChainEmbedder(EmbeddingBase):
    """Any LangChain `Embeddings`, loaded when first asked.

    Mem0 asks text by text; `ready` answers from one batch.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._load: Callable[[], Embeddings] = config.model
        self._ready: Mapping[str, Embedding | None] = {}

    @contextmanager
    def ready(self, vectors: Mapping[str, Embedding | None]) -> Iterator[None]:
        """Inside, the texts in `vectors` cost no call. Not for two threads at once.

        None for a text: the vector that stands, or does not stand, is kept.
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
        if memory_action == "search":
            return self._load().embed_query(text)
        return self._load().embed_documents([text])[0]

    def embed_batch(
        self, texts: Sequence[str], memory_action: str | None = "add"
    ) -> list[list[float]]:
        """The vectors of many texts, in one call."""
        return self._load().embed_documents(list(texts))


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


class FactMemory(Memory):
    """Mem0 whose history stays what it is when everything is removed."""

    def reset(self) -> None:
        """Remove every fact of every scope, and the history."""
        self.db.reset()
        self.vector_store.reset()


@dataclass(frozen=True)
class Mem0:
    """Mem0, and the parts under it on which a write is prepared."""

    memory: FactMemory
    table: MemoryTable
    embedder: LangChainEmbedder
    history: History

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Everything inside is one write: all of it or nothing, and then its history."""
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
    chat_model: BaseChatModel | None = None,
    open_history: Callable[[], History] | None = None,
) -> Mem0:
    """Mem0 over `table`, with its own files in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    EmbedderFactory.provider_to_class[PROVIDER] = f"{__name__}.{LangChainEmbedder.__name__}"
    LlmFactory.register_provider(PROVIDER, f"{__name__}.{LangChainChat.__name__}")
    VectorStoreFactory.provider_to_class["faiss"] = "memory.vectorstore.mem0_store.FactStore"
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
    # model_construct: Mem0's own validators know the names of its own providers only.
    config = MemoryConfig(
        vector_store=VectorStoreConfig.model_construct(provider="faiss", config=store),
        embedder=EmbedderConfig.model_construct(provider=PROVIDER, config=model),
        llm=LlmConfig.model_construct(provider=PROVIDER, config={"model": chat_model}),
        history_db_path=":memory:",
    )
    memory = FactMemory(config)
    memory.db.close()
    history: Any = open_history() if open_history else FileHistory(folder / "history.db")
    memory.db = history
    return Mem0(memory, table, memory.embedding_model, history)


def _do_without_spacy() -> None:
    """Without it Mem0 looks for no entities in a text, nor stores any: profiles are kept elsewhere.

    Where spaCy's model is not installed, Mem0 would even fetch it inside the first write.
    """
    spacy_models._load_failed_full = spacy_models._load_failed_lemma = True
