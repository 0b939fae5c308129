"""A bounded cache for functions of a text."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

LONGEST = 2_000
"""Characters of the longest cached text; messages may be fifty times as long."""

Result = TypeVar("Result")


def cached_by_text(
    maxsize: int,
) -> Callable[[Callable[[str], Result]], Callable[[str], Result]]:
    """Cache the results for the last `maxsize` texts. Long texts are computed each time."""

    def wrap(function: Callable[[str], Result]) -> Callable[[str], Result]:
        kept = lru_cache(maxsize=maxsize)(function)

        @wraps(function)
        def called(text: str) -> Result:
            return kept(text) if len(text) <= LONGEST else function(text)

        return called

    return wrap
