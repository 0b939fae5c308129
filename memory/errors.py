"""The error vocabulary, drawn once.

CircadianError
├── InputError            bad usage or bad input; the message says what to do (exit status 2)
│   ├── StateError        the thread's state breaks a rule; names the key
│   └── FolderError       the data folder cannot be used as asked
│       └── NewerError    a newer version made it, or has changed it since
├── ConflictError         memory is no longer as what was asked for needs it; nothing was changed
├── BusyError             another process holds the agent; what was posted is kept in the inbox
├── ModelError            the model gave no usable answer after retries; the work stays pending
│   ├── ContextOverflow   the prompt is longer than the model takes
│   ├── ServiceDown       the service gave no answer at all, or would not: a breaker counts these
│   └── CircuitOpen       a service that kept failing is left alone for a while
├── MemoryStoreError      the memory could not be read or written
│   └── DatabaseDown      PostgreSQL cannot be reached; what had been accepted is kept
├── Refusal               the rules do not allow a change; phrased for the model that asked for it
├── ServerError           a server that was asked over HTTP is not there, or refuses
└── TokenError            a user's token is not to be believed
"""

from __future__ import annotations

from typing import Any


class CircadianError(RuntimeError):
    """Base of all errors raised on purpose. A server shows the text of standard types only."""


class InputError(CircadianError):
    """Bad usage or bad input: one clear line that says what to do. Exit status 2."""


class StateError(InputError):
    """The thread's state breaks a rule, as after a bad edit by hand. Names the key."""


class FolderError(InputError):
    """The data folder, or the database in its place, cannot be used as asked.

    Unwritable, damaged, or made with another embedder.
    """


class NewerError(FolderError):
    """A newer version made the data folder or the database, or changed its form since.

    Whoever has it open writes no more; a server ends.
    """


class ConflictError(CircadianError):
    """Memory is no longer as what was asked for needs it. Nothing was changed."""


class BusyError(CircadianError):
    """Another process holds the agent. Whatever was posted waits in the inbox."""


class ModelError(CircadianError):
    """The model gave no usable answer after retries. The work it was asked for stays pending.

    Answers that could not be used are paid for all the same.
    """

    llm_calls = 0
    """Calls that got an answer before it was given up."""
    tokens = 0


class ServiceDown(ModelError):
    """The service gave no answer at all, or would not serve us. Circuit breakers count these.

    An answer that cannot be used, or a request that it finds wrong, is a plain ModelError.
    """


class CircuitOpen(ModelError):
    """A service that kept failing is left alone for a while; no call was made."""


class ContextOverflow(ModelError):
    """The prompt is longer than the model takes. Answered by an emergency compaction."""


class MemoryStoreError(CircadianError):
    """The memory could not be read or written. Nothing was half done."""


class DatabaseDown(MemoryStoreError):
    """PostgreSQL cannot be reached. The message says whether what was sent was accepted.

    What had been accepted before is kept, and is there when the database is back.
    """


class Refusal(CircadianError):
    """Nothing was changed. Says what is wrong and what to do next; a tool answers with it."""

    def __init__(self, error: str, suggestion: str, **details: Any) -> None:
        super().__init__(error)
        self.error = error
        self.suggestion = suggestion
        self.details = details

    def result(self) -> dict[str, Any]:
        """The result of the tool that was refused: success, error, suggestion, details."""
        return {
            "success": False,
            "error": self.error,
            "suggestion": self.suggestion,
            **self.details,
        }


class ServerError(CircadianError):
    """The server is not there, or refuses; the message says which and why."""


class TokenError(CircadianError):
    """The token is not to be believed; the message says why, and holds nothing of it."""
