"""Who may access what on a server: rules over names and ids. Pure.

A user's memory lies in the namespaces that begin with their name (`memory.scope`). The id of their
agent's thread is derived from that name. Threads, schedules and assistants carry it as `owner`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from memory.scope import Scope, thread_id

OWNER = "owner"
"""The metadata key of a resource's owner."""
AGENT = "agent"
"""The metadata key of the agent's name, on threads that were requested by name."""
GRAPH = "agent"
"""The graph's name in langgraph.json."""
_DERIVED = 5
"""The UUID version of ids that are derived from a name."""


def owned(user: str) -> dict[str, str]:
    """The filter that finds a user's resources."""
    return {OWNER: user}


def shared_or_owned(user: str) -> dict[str, list[dict[str, str]]]:
    """The filter that finds a user's assistants and the server's own."""
    return {"$or": [{OWNER: user}, {"created_by": "system"}]}


def is_own_namespace(user: str, namespace: Sequence[str] | None) -> bool:
    """Whether a store namespace is entirely the user's."""
    return bool(namespace) and tuple(namespace or ())[:1] == own_namespace(user)


def own_namespace(user: str) -> tuple[str, ...]:
    """The prefix of all store namespaces of a user."""
    return Scope(user, "").namespace()[:1]


def is_derived(thread: UUID) -> bool:
    """Whether a thread id is derived from a name."""
    return thread.version == _DERIVED


def is_foreign_thread(user: str, thread: UUID, metadata: Mapping[str, Any]) -> bool:
    """Whether a thread id is derived from a name other than the user's agent's."""
    if not is_derived(thread):
        return False
    name = metadata.get(AGENT)
    return not isinstance(name, str) or str(thread) != thread_id(user, name)
