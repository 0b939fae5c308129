"""The offline embedder: feature hashing, no model, no network.

It compares words and parts of words, not meanings: "car" and "automobile" are strangers to it.
Method: Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask Learning".
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from hashlib import blake2b

from langchain_core.embeddings import Embeddings

from memory.models.words import content_stems, stem, words

DIMENSION = 256

_STEM_WEIGHT = 1.0
_TRIGRAM_WEIGHT = 0.25


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


def _vector(text: str) -> list[float]:
    stems = content_stems(text) or [stem(word) for word in words(text)]
    vector = [0.0] * DIMENSION
    for one, count in Counter(stems).items():
        weight = 1.0 + math.log(count)
        for index, signed in _features(one):
            vector[index] += weight * signed
    norm = math.sqrt(math.fsum(value * value for value in vector))
    return [value / norm for value in vector] if norm else vector


@lru_cache(maxsize=65_536)
def _features(one: str) -> tuple[tuple[int, float], ...]:
    """(index, signed weight) of a stem and of its trigrams, the ends of the word marked."""
    padded = f"^{one}$"
    trigrams = [padded[at : at + 3] for at in range(len(padded) - 2)]
    share = _TRIGRAM_WEIGHT / math.sqrt(len(trigrams))
    return (_hashed(f"w:{one}", _STEM_WEIGHT), *(_hashed(f"t:{t}", share) for t in trigrams))


def _hashed(feature: str, weight: float) -> tuple[int, float]:
    digest = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
    return digest % DIMENSION, weight if digest >> 63 else -weight
