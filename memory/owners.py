"""Owners: whose word the assistant's own prompt may follow (design, ruling 16). Pure.

A sender is an owner by id, compared as it stands: names that look alike are other ids.
"""

from __future__ import annotations

from collections.abc import Collection

from memory.records import Event
from memory.reflection import is_reflection
from memory.settings import Settings


def owners_of(settings: Settings, *, user: str, served: bool) -> tuple[str, ...]:
    """The ids of the owners, at least one.

    On a server (`served`) the authenticated `user` alone: its settings come from the client.
    """
    if served or not settings.owners:
        return (user,)
    return tuple(settings.owners)


def owner_of(settings: Settings, *, user: str, served: bool) -> str:
    """Whom a message without a `name` is from."""
    return owners_of(settings, user=user, served=served)[0]


def set_off_by_owner(event: Event | None, *, owners: Collection[str], served: bool) -> bool:
    """Whether an owner set off the tick on `event`; None is an autonomous tick.

    On a server a sender's id is input, so that only a chat message without a `name` counts: it is
    the authenticated user's.
    """
    if event is None or is_reflection(event):
        return False
    if served and event.get("kind") != "chat":
        return False
    return event["sender"] in owners
