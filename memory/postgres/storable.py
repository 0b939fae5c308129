"""What PostgreSQL can keep in a text and in JSON. Pure."""

from __future__ import annotations

from typing import Any


def storable(value: Any) -> Any:
    """`value` without what PostgreSQL cannot keep in a text: NUL."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, list | tuple):
        return [storable(one) for one in value]
    if isinstance(value, dict):
        return {storable(key): storable(one) for key, one in value.items()}
    return value
