"""The state between two runs, without the keys that only a run needs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory.state import fresh_state

IN_HAND = (
    *("turn", "event", "classification", "resuming", "context", "assessment", "pattern", "loop"),
    *("delegated", "exchange", "night", "report", "tool_cache"),
)
"""Keys of the current run, tick or night.

Dropping them loses nothing: an event stays in the inbox until its tick is committed, and a night is
in the store.
"""
EPHEMERAL = ("request", "events", "returning")
"""Keys of one run's input."""


def at_rest(values: Mapping[str, Any]) -> dict[str, Any]:
    """A thread's values as they are between two runs; {} if the agent has never run."""
    if not values.get("schema_version"):
        return {}
    fresh: Mapping[str, Any] = fresh_state()
    kept = {key: one for key, one in values.items() if key not in EPHEMERAL}
    return {**kept, **{key: fresh[key] for key in IN_HAND}}
