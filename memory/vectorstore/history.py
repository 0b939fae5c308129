"""The history of changes that Mem0 keeps beside its vector store, whichever database has it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class History(Protocol):
    """What Mem0 calls (its `SQLiteManager`), and what semantic memory asks besides."""

    def batch(self) -> AbstractContextManager[None]:
        """Hold what is added inside, and write it at the end unless there was an error."""
        ...

    def add_history(
        self,
        memory_id: str,
        old_memory: str | None,
        new_memory: str | None,
        event: str,
        **details: Any,
    ) -> None:
        """Keep one change. A deletion takes away all that is kept of the memory: it has its text.

        `details`: created_at, updated_at, is_deleted, actor_id, role.
        """
        ...

    def batch_add_history(self, records: list[dict[str, Any]]) -> None:
        """Keep many changes; a record has the names of `add_history`'s arguments."""
        ...

    def get_history(self, memory_id: str) -> list[dict[str, Any]]:
        """The changes of one memory, oldest first, with `id` and those names."""
        ...

    def save_messages(self, messages: list[dict[str, Any]], session_scope: str) -> None:
        """Keep chat messages for Mem0's own extraction, the last ten of a scope."""
        ...

    def get_last_messages(self, session_scope: str, limit: int = 10) -> Sequence[dict[str, Any]]:
        """Them, oldest first: role, content, name, created_at."""
        ...

    def scrub(self) -> None:
        """Leave on the disk nothing of what was deleted."""
        ...

    def reset(self) -> None:
        """Remove everything."""
        ...

    def close(self) -> None:
        """Close it. Twice is the same as once."""
        ...
