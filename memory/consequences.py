"""What it means for a person that memory cannot be read or written, in the words of an error."""

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
    """What a failure means here."""
    return _means.get()


@contextmanager
def accepting() -> Iterator[None]:
    """Inside, what is read and written is there to accept events: a failure accepts none."""
    token = _means.set(NOT_ACCEPTED)
    try:
        yield
    finally:
        _means.reset(token)
