"""Results kept for texts that are asked about again and again, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

LONGEST = 2_000
"""Characters of a text that is kept: messages may be fifty times as long."""

Result = TypeVar("Result")


def cached_by_text(
    maxsize: int,
) -> Callable[[Callable[[str], Result]], Callable[[str], Result]]:
    """Keep the results of the last `maxsize` texts, but for long ones, which are looked at anew."""

    def wrap(function: Callable[[str], Result]) -> Callable[[str], Result]:
        kept = lru_cache(maxsize=maxsize)(function)

        @wraps(function)
        def called(text: str) -> Result:
            return kept(text) if len(text) <= LONGEST else function(text)

        return called

    return wrap
