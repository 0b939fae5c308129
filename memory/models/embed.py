"""The one place where embedders are called; a failed call is tried again as a model's is."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.embeddings import Embeddings
from tenacity import AsyncRetrying

from memory.breaker import Breaker
from memory.errors import ModelError
from memory.models.retry import persist, retrying


async def embed_query(
    embeddings: Embeddings,
    text: str,
    policy: AsyncRetrying | None = None,
    *,
    breaker: Breaker | None = None,
) -> list[float]:
    """The vector of a query. Raises ModelError when the embedder gives none."""
    return await persist(
        lambda: embeddings.aembed_query(text),
        policy or retrying(),
        whom="embedder",
        breaker=breaker,
    )


async def embed_texts(
    embeddings: Embeddings,
    texts: Sequence[str],
    policy: AsyncRetrying | None = None,
    *,
    breaker: Breaker | None = None,
) -> list[list[float]]:
    """The vectors of `texts`, in order, in one call. Raises ModelError when any is missing."""
    vectors = await persist(
        lambda: embeddings.aembed_documents(list(texts)),
        policy or retrying(),
        whom="embedder",
        breaker=breaker,
    )
    if len(vectors) != len(texts):
        raise ModelError(f"the embedder gave {len(vectors)} vectors for {len(texts)} texts")
    return vectors
