"""Who may see and do what on a server: rules over names and ids. Pure.

A user's memory lies in the namespaces that begin with their name (`memory.scope`), and the thread
of their agent has an id that is made from their name; threads, schedules and assistants carry it
as `owner`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from memory.scope import Scope, thread_id

OWNER = "owner"
"""The metadata key that holds a resource's user."""
AGENT = "agent"
"""The metadata key that holds the agent's name, where its thread was asked for by name."""
GRAPH = "agent"
"""The graph's name in langgraph.json."""
_DERIVED = 5
"""The version of ids that are made from a name."""


def owned(user: str) -> dict[str, str]:
    """The filter that finds a user's resources."""
    return {OWNER: user}


def shared_or_owned(user: str) -> dict[str, list[dict[str, str]]]:
    """The filter that finds a user's assistants, and the server's own."""
    return {"$or": [{OWNER: user}, {"created_by": "system"}]}


def is_own_namespace(user: str, namespace: Sequence[str] | None) -> bool:
    """Whether a store namespace is one of the user's, whole."""
    return bool(namespace) and tuple(namespace or ())[:1] == own_namespace(user)


def own_namespace(user: str) -> tuple[str, ...]:
    """What all store namespaces of a user begin with."""
    return Scope(user, "").namespace()[:1]


def is_derived(thread: UUID) -> bool:
    """Whether a thread id is made from a name."""
    return thread.version == _DERIVED


def is_foreign_thread(user: str, thread: UUID, metadata: Mapping[str, Any]) -> bool:
    """Whether a thread id that is made from a name is made from another one."""
    if not is_derived(thread):
        return False
    name = metadata.get(AGENT)
    return not isinstance(name, str) or str(thread) != thread_id(user, name)
