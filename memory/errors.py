"""All errors raised on purpose. docs/errors.md lists them with their bases and what they mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

# What a failure of memory means for events, in words that end an error message.

NOT_ACCEPTED = "no event was accepted; what had been accepted before is kept"
STOPPED = "the work in hand stopped there; what had been accepted is kept"

UNSURE = (
    "it is unknown whether what was just sent was accepted: sent again with the same id it is "
    "handled once; what had been accepted before is kept"
)

_consequence: ContextVar[str] = ContextVar("_consequence", default=STOPPED)
_COMMANDS = re.compile(r" \((`circadian |--)[^)]*\)|[;:] [^;:]*`circadian [^;]*$")


def consequence() -> str:
    """What a failure of memory means at this point."""
    return _consequence.get()


@contextmanager
def accepting() -> Iterator[None]:
    """Within this block a failure of memory means that no event was accepted."""
    token = _consequence.set(NOT_ACCEPTED)
    try:
        yield
    finally:
        _consequence.reset(token)


MOST = 5
"""Most problems that a message names."""


def explained(problems: Sequence[Mapping[str, Any]], whole: str = "arguments") -> list[str]:
    """The first problems of a ValidationError's `errors()`, each `PLACE: MESSAGE`."""
    return [
        f"{'.'.join(str(part) for part in problem['loc']) or whole}: {problem['msg']}"
        for problem in problems[:MOST]
    ]


class CircadianError(RuntimeError):
    """Base of all errors raised on purpose. A server shows the text of standard types only."""

    report: Mapping[str, Any] | None = None
    """The report of the run that raised this at its end: what the run did all the same."""

    @property
    def without_commands(self) -> str:
        """The message without what it advises to type, for who has no command line."""
        return _COMMANDS.sub("", str(self))


class InputError(CircadianError):
    """Bad usage or bad input; the message says what to do. Exit status 2."""


class NotFoundError(InputError):
    """What the caller named is not there: a fact, a night, a person, a question, an event."""


class StateError(InputError):
    """The thread's state breaks a rule, for example after an edit by hand; names the key."""


class FolderError(InputError):
    """The data folder or database is unwritable, damaged or made with another embedder."""


class NewerError(FolderError):
    """A newer version made or changed the data folder or database. A server exits."""


class ConflictError(CircadianError):
    """Memory has changed since, so the requested change no longer fits. Nothing was changed."""


class BusyError(CircadianError):
    """Another process holds the agent. Posted events wait in the inbox."""


class ModelError(CircadianError):
    """The model gave no usable answer, which costs tokens, too. The work stays pending."""

    llm_calls = 0
    """Calls that were answered before giving up."""
    tokens = 0


class ConfigurationError(ModelError):
    """The model's key, name or address is wrong; the message names the variable to set.

    It counts neither against the event nor for a circuit breaker or the emergency stop.
    """


class ModelRefused(ModelError):
    """The model declines to answer: asked again unchanged, it would decline again."""


class ServiceDown(ModelError):
    """The service did not answer, or refused to serve. Circuit breakers count these alone."""


class CircuitOpen(ModelError):
    """A failing service is not called for a while; no call was made."""


class ContextOverflow(ModelError):
    """The prompt is longer than the model accepts; an emergency compaction follows."""


class MemoryStoreError(CircadianError):
    """The memory could not be read or written. Nothing is half done."""


class DatabaseDown(MemoryStoreError):
    """PostgreSQL cannot be reached. The message says whether the event was accepted."""


class Refusal(CircadianError):
    """A tool refuses a change. Says what is wrong and what to do next; nothing was changed."""

    def __init__(self, error: str, suggestion: str, **details: Any) -> None:
        super().__init__(error)
        self.error = error
        self.suggestion = suggestion
        self.details = details

    def result(self) -> dict[str, Any]:
        """The tool's result: success, error, suggestion, details."""
        return {
            "success": False,
            "error": self.error,
            "suggestion": self.suggestion,
            **self.details,
        }


class ServerError(CircadianError):
    """A server is not there, or refuses; the message says which and why."""


class TokenError(CircadianError):
    """The token is invalid; the message says why, and contains no part of it."""


def failed(kind: str, text: str) -> CircadianError:
    """The error for a failure in a report, by its type; a bug is told as a ModelError."""
    types = {one.__name__: one for one in _family(CircadianError) if one is not Refusal}
    return types.get(kind, ModelError)(text)


def _family(kind: type[CircadianError]) -> list[type[CircadianError]]:
    return [kind, *(child for base in kind.__subclasses__() for child in _family(base))]
