"""Text that PostgreSQL can store. Pure."""

from __future__ import annotations

from typing import Any


def storable(value: Any) -> Any:
    """`value` with every NUL replaced, which PostgreSQL cannot store in text or JSON."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value
