"""Mem0 as it comes: its own FAISS provider, its own search. Importing this imports Mem0.

Say first, with `settle_mem0`, where it may write; and open it while no memory of the product is
open in the process: the product puts its own vector store in the place of that provider.
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
    """Any LangChain `Embeddings`."""

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
    """In the place of a chat model: texts are stored as they are given."""

    def generate_response(
        self,
        messages: Sequence[Mapping[str, str]],
        tools: Sequence[Any] | None = None,
        tool_choice: str = "auto",
        **settings: Any,
    ) -> str:
        """Never asked."""
        raise NotImplementedError


@contextmanager
def opened(folder: Path, embeddings: Embeddings, dimension: int) -> Iterator[Memory]:
    """A memory of its own in `folder`."""
    EmbedderFactory.provider_to_class[PROVIDER] = f"{__name__}.{Embedder.__name__}"
    LlmFactory.register_provider(PROVIDER, f"{__name__}.{NoModel.__name__}")
    VectorStoreFactory.provider_to_class["faiss"] = ITSELF
    # It warns that its own FAISS provider finds no words.
    logging.getLogger("mem0").setLevel(logging.ERROR)
    folder.mkdir(parents=True, exist_ok=True)
    store = {
        "collection_name": "memories",
        "path": str(folder / "faiss"),
        "distance_strategy": "cosine",
        "embedding_model_dims": dimension,
    }
    model = {"model": embeddings, "embedding_dims": dimension}
    # model_construct: Mem0's own validators know the names of its own providers only.
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
    """Store one text as it is given."""
    said = [{"role": "user", "content": text}]
    memory.add(said, user_id=USER, metadata=metadata, infer=False)


def search(memory: Memory, query: str, limit: int) -> list[dict[str, Any]]:
    """Its own search, nearest first, whatever the score."""
    answer = memory.search(query, filters={"user_id": USER}, top_k=limit, threshold=0.0)
    found: list[dict[str, Any]] = answer["results"]
    return found
