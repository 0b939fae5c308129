"""Unchanged Mem0: its own FAISS provider, its own search. Importing this imports Mem0.

Call `settle_mem0` first: it sets where Mem0 may write. Open this memory only while the process has
no memory of the product open, because the product replaces that provider by its own vector store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from mem0.configs.base import MemoryConfig
from mem0.embeddings.base import EmbeddingBase
from mem0.embeddings.configs import EmbedderConfig
from mem0.llms.base import LLMBase
from mem0.llms.configs import LlmConfig
from mem0.memory.main import Memory
from mem0.utils.factory import EmbedderFactory, LlmFactory, VectorStoreFactory
from mem0.vector_stores.configs import VectorStoreConfig

PROVIDER = "measured"
USER = "ada"
ITSELF = "mem0.vector_stores.faiss.FAISS"


class Embedder(EmbeddingBase):
    """Mem0's embedder on any LangChain `Embeddings`."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._embeddings: Embeddings = config.model

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """The vector of one text."""
        if memory_action == "search":
            return self._embeddings.embed_query(text)
        return self._embeddings.embed_documents([text])[0]

    def embed_batch(
        self, texts: Sequence[str], memory_action: str | None = "add"
    ) -> list[list[float]]:
        """The vectors of many texts."""
        return self._embeddings.embed_documents(list(texts))


class NoModel(LLMBase):
    """Stands in for a chat model, which storing without extraction never asks."""

    def generate_response(
        self,
        messages: Sequence[Mapping[str, str]],
        tools: Sequence[Any] | None = None,
        tool_choice: str = "auto",
        **settings: Any,
    ) -> str:
        """Mem0 never calls this."""
        raise NotImplementedError


@contextmanager
def opened(folder: Path, embeddings: Embeddings, dimension: int) -> Iterator[Memory]:
    """Open a memory in `folder`."""
    EmbedderFactory.provider_to_class[PROVIDER] = f"{__name__}.{Embedder.__name__}"
    LlmFactory.register_provider(PROVIDER, f"{__name__}.{NoModel.__name__}")
    VectorStoreFactory.provider_to_class["faiss"] = ITSELF
    # Mem0 warns that its FAISS provider cannot search by words.
    logging.getLogger("mem0").setLevel(logging.ERROR)
    folder.mkdir(parents=True, exist_ok=True)
    store = {
        "collection_name": "memories",
        "path": str(folder / "faiss"),
        "distance_strategy": "cosine",
        "embedding_model_dims": dimension,
    }
    model = {"model": embeddings, "embedding_dims": dimension}
    # model_construct: Mem0's validators know only its own providers.
    memory = Memory(
        MemoryConfig(
            vector_store=VectorStoreConfig(provider="faiss", config=store),
            embedder=EmbedderConfig.model_construct(provider=PROVIDER, config=model),
            llm=LlmConfig.model_construct(provider=PROVIDER, config={}),
            history_db_path=str(folder / "history.db"),
        )
    )
    try:
        yield memory
    finally:
        close: Callable[[], object] = memory.close
        close()


def add(memory: Memory, text: str, **metadata: Any) -> None:
    """Store one text without extraction."""
    said = [{"role": "user", "content": text}]
    memory.add(said, user_id=USER, metadata=metadata, infer=False)


def search(memory: Memory, query: str, limit: int) -> list[dict[str, Any]]:
    """Search with Mem0, nearest first, without a threshold."""
    answer = memory.search(query, filters={"user_id": USER}, top_k=limit, threshold=0.0)
    found: list[dict[str, Any]] = answer["results"]
    return found
