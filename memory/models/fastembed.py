"""Embedders that run on this machine through fastembed (ONNX): `fastembed:<model>`."""

from __future__ import annotations

import importlib
from typing import Any

from langchain_core.embeddings import Embeddings


class FastEmbedEmbeddings(Embeddings):
    """A model of fastembed; the first use of a model downloads it.

    Raises ImportError where fastembed is not installed, and ValueError for a model that it does
    not know or cannot fetch.
    """

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
