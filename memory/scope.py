"""Whose memory: every store namespace and every fact begins with (user, thread)."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote
from uuid import UUID, uuid5

AGENTS = UUID("6f1f8a3e-2f0e-5a37-9d0c-5b1d2a0c7e11")
"""The uuid5 namespace of agents: fixed for ever, since thread ids derive from it."""

LOCAL_USER = "local"
"""The user until a server authenticates one."""


def thread_id(user: str, agent: str) -> str:
    """The one thread of the agent called `agent` that belongs to `user` (a uuid)."""
    return str(uuid5(AGENTS, f"{user}\n{agent}"))


class Scope(NamedTuple):
    """One agent of one user."""

    user: str
    thread: str

    def namespace(self, *labels: str) -> tuple[str, ...]:
        """The store namespace `(user, thread, *labels)`, with what a label may not hold escaped."""
        return tuple(_label(part) for part in (self.user, self.thread, *labels))


def _label(text: str) -> str:
    """A store label: not empty, no dot (LangGraph's rule), readable where it can be."""
    return quote(text, safe=" @:+-_").replace(".", "%2E") or "%00"
