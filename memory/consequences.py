"""What a failure of memory means for the caller, for error messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

NOT_ACCEPTED = "no event was accepted; what had been accepted before is kept"
STOPPED = "what was being done stopped there; what had been accepted is kept"
UNSURE = (
    "what was just sent may have been accepted or not: sent again with the same id it is handled "
    "once; what had been accepted before is kept"
)

_means: ContextVar[str] = ContextVar("_means", default=STOPPED)


def consequence() -> str:
    """What a failure of memory means at this point."""
    return _means.get()


@contextmanager
def accepting() -> Iterator[None]:
    """Within this block a failure of memory means that no event was accepted."""
    token = _means.set(NOT_ACCEPTED)
    try:
        yield
    finally:
        _means.reset(token)
