"""Reducers of the state keys that hold records by id."""

from __future__ import annotations

from typing import Any, cast

from memory.errors import StateError
from memory.records import Conversation, Goal, Projects


def merge_by_id(
    old: dict[str, Any] | None, new: dict[str, Any] | None, *, key: str = "records"
) -> dict[str, Any]:
    """Merge records by id, field by field; None deletes. An edit by hand names one key only.

    Raises:
        StateError: `old` or `new` is no object of records; names `key`.
    """
    merged = dict(_object(key, old))
    for one, value in _object(key, new).items():
        if value is None:
            merged.pop(one, None)
        elif isinstance(value, dict) and isinstance(merged.get(one), dict):
            merged[one] = {**merged[one], **value}
        else:
            merged[one] = value
    return merged


def merge_goals(old: dict[str, Goal] | None, new: dict[str, Any] | None) -> dict[str, Goal]:
    """Merge goals by id, as `merge_by_id`."""
    return merge_by_id(old, new, key="goals")


def merge_conversations(
    old: dict[str, Conversation] | None, new: dict[str, Any] | None
) -> dict[str, Conversation]:
    """Merge conversations by id, as `merge_by_id`."""
    return merge_by_id(old, new, key="conversations")


def merge_delegated(old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    """Merge the results of sub-agents by call id, as `merge_by_id`."""
    return merge_by_id(old, new, key="delegated")


def merge_projects(old: Projects | None, new: dict[str, Any] | None) -> Projects:
    """Merge project slots by key; `active` is replaced if it is given.

    Raises:
        StateError: the projects or their slots are no object; names the key.
    """
    standing, given = _object("projects", old), _object("projects", new)
    slots = merge_by_id(standing.get("slots"), given.get("slots"), key="projects.slots")
    active = given.get("active", standing.get("active"))
    return cast(Projects, {"active": active, "slots": slots})


def _object(key: str, value: Any) -> dict[str, Any]:
    """`value` as an object, None as an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise StateError(f"{key} must be an object of records by id; got {value!r:.80}")
    return value
