"""Scope: every store namespace and every fact belongs to one (user, thread)."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote
from uuid import UUID, uuid5

AGENTS = UUID("6f1f8a3e-2f0e-5a37-9d0c-5b1d2a0c7e11")
"""The uuid5 namespace of agents. Never change it: thread ids derive from it."""

LOCAL_USER = "local"
"""The user until a server authenticates one."""


def thread_id(user: str, agent: str) -> str:
    """The thread id (a uuid) of the user's agent of this name."""
    return str(uuid5(AGENTS, f"{user}\n{agent}"))


class Scope(NamedTuple):
    """One agent of one user."""

    user: str
    thread: str

    def namespace(self, *labels: str) -> tuple[str, ...]:
        """The store namespace `(user, thread, *labels)`, escaped."""
        return tuple(_label(part) for part in (self.user, self.thread, *labels))


def _label(text: str) -> str:
    """A store label: not empty and without dots (LangGraph's rules), readable if possible."""
    return quote(text, safe=" @:+-_").replace(".", "%2E") or "%00"
