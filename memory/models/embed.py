"""Embedders: the offline one, fastembed, and the one place where embedders are called."""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from operator import mul
from typing import Any

from langchain_core.embeddings import Embeddings
from tenacity import AsyncRetrying

from memory.errors import ModelError
from memory.models.breaker import Breaker
from memory.models.retry import Service, persist, retrying
from memory.text import content_stems, stem, words


class FastEmbedEmbeddings(Embeddings):
    """A model of fastembed; the first use downloads it. Raises ImportError or ValueError."""

    def __init__(self, model: str) -> None:
        fastembed: Any = importlib.import_module("fastembed")
        try:
            self._model = fastembed.TextEmbedding(model_name=model)
        except OSError as error:
            raise ValueError(f"its files cannot be fetched: {error}") from error

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text, in order."""
        return [vector.tolist() for vector in self._model.embed(texts)]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query: some models embed those in another way than documents."""
        vector: list[float] = next(iter(self._model.query_embed(text))).tolist()
        return vector


# The offline embedder: feature hashing, no model, no network.
#
# It compares words and parts of words, not meanings: "car" and "automobile" are strangers to it.
# Method: Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask Learning".

DIMENSION = 256

_STEM_WEIGHT = 1.0

_TRIGRAM_WEIGHT = 0.25

FEW = 4
"""Texts that are embedded in less time than a hand-off to a thread takes."""


class HashingEmbeddings(Embeddings):
    """Signed hashing of word stems and character trigrams to 256 dimensions.

    Deterministic; sublinear weights; stop words dropped unless nothing else is there; L2 norm 1.
    A text without a word is the zero vector, which is like nothing.
    """

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text, in order."""
        return [_vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """One vector; a question and a document are embedded alike."""
        return _vector(text)

    async def aembed_query(self, text: str) -> list[float]:
        """The same at once: LangChain would hand it to a thread, which takes longer."""
        return _vector(text)

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """A few at once, likewise; many in a thread."""
        if len(texts) <= FEW:
            return self.embed_documents(texts)
        return await super().aembed_documents(texts)


def _vector(text: str) -> list[float]:
    stems = content_stems(text) or [stem(word) for word in words(text)]
    vector = [0.0] * DIMENSION
    for word, count in Counter(stems).items():
        weight = 1.0 + math.log(count)
        for index, signed in _features(word):
            vector[index] += weight * signed
    norm = math.sqrt(math.fsum(map(mul, vector, vector)))
    return [value / norm for value in vector] if norm else vector


@lru_cache(maxsize=65_536)
def _features(word: str) -> tuple[tuple[int, float], ...]:
    """(index, signed weight) of a stem and of its trigrams, the ends of the word marked."""
    padded = f"^{word}$"
    trigrams = [padded[at : at + 3] for at in range(len(padded) - 2)]
    share = _TRIGRAM_WEIGHT / math.sqrt(len(trigrams))
    return (_hashed(f"w:{word}", _STEM_WEIGHT), *(_hashed(f"t:{t}", share) for t in trigrams))


def _hashed(feature: str, weight: float) -> tuple[int, float]:
    digest = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
    return digest % DIMENSION, weight if digest >> 63 else -weight


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
        whom=Service.of(embeddings, "embedder"),
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
        whom=Service.of(embeddings, "embedder"),
        breaker=breaker,
    )
    if len(vectors) != len(texts):
        raise ModelError(f"the embedder gave {len(vectors)} vectors for {len(texts)} texts")
    return vectors
