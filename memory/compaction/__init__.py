"""Compaction: where the history is cut, and the summary that takes the place of the old part."""

from memory.compaction.cut import (
    MASK,
    SUMMARIES,
    Cut,
    covered_events,
    cut,
    kept_keys,
    marker,
    replaced,
    result_of,
    room,
    visible_events,
)
from memory.compaction.summary import (
    accepted,
    extracted,
    joined,
    room_for,
    slightly_too_long,
    transcript,
)

__all__ = [
    "MASK",
    "SUMMARIES",
    "Cut",
    "accepted",
    "covered_events",
    "cut",
    "extracted",
    "joined",
    "kept_keys",
    "marker",
    "replaced",
    "result_of",
    "room",
    "room_for",
    "slightly_too_long",
    "transcript",
    "visible_events",
]
