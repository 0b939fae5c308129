"""Vectors as they are kept: 32-bit floats at length 1. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memory.errors import MemoryStoreError
from memory.vectorstore.table import Vector

_HINT = "if the embedder was changed, run `circadian reindex`"


def unit(vector: Sequence[float] | Vector, dimension: int) -> Vector:
    """`vector` at length 1 (a zero vector stays zero), so that inner product is cosine.

    Raises MemoryStoreError where it has another dimension or is not made of numbers.
    """
    array = checked(np.asarray(vector, dtype=np.float32), dimension)
    norm = np.linalg.norm(array.astype(np.float64))
    return (array / norm).astype(np.float32) if norm > 0 else array


def checked(vector: Vector, dimension: int) -> Vector:
    """`vector`, if it has this dimension and is made of numbers. Raises MemoryStoreError."""
    if vector.shape != (dimension,):
        raise MemoryStoreError(
            f"the embedder gave a vector of shape {vector.shape}, and this memory keeps vectors of "
            f"{dimension} numbers; {_HINT}"
        )
    if not np.isfinite(vector).all():
        raise MemoryStoreError(
            f"the embedder gave a vector of values that are not numbers (NaN, infinite); {_HINT}"
        )
    return vector
