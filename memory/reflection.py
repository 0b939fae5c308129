"""The reflection event, which makes the assistant review its own work, and when it is due. Pure.

What such a tick journals is tagged `self` (`memory.journal.SELF`): it is no memory of the world.
"""

from __future__ import annotations

from datetime import datetime

from memory.records import Event
from memory.settings import Settings

OWN = "~"
"""The first character of ids of the product's own messages and events, and of no others."""

OPENING = "[reflection]"
"""The beginning of the event's text, by which the offline model recognises it."""


def is_reflection(event: Event | None) -> bool:
    """Whether this is a reflection event. Nobody said it, so it is not journaled as heard."""
    return event is not None and event.get("kind") == "reflection"


def due(tick: int, last_reflection: int, interval: int, *, event: Event | None) -> bool:
    """Whether the tick that ends now sets off a reflection; `event` is the tick's own.

    A reflection never sets off another one, or the run would not end. Interval 0 means never.
    """
    if interval <= 0 or is_reflection(event):
        return False
    return tick - last_reflection >= interval


def reflection_event(
    tick: int, now: datetime, settings: Settings, *, since: int, calls: int, failed: int
) -> Event:
    """The reflection event that tick `tick` sets off, `since` ticks after the last one.

    `calls` and `failed` count the session's tool calls. A tick that runs again after a crash posts
    the same event.
    """
    return {
        "id": f"{OWN}reflection_{tick}",
        "at": now.isoformat(),
        "sender": next((name for name in settings.names if name.strip()), "circadian"),
        "text": (
            f"{OPENING} Ticks since you last looked at your own work: {since}; tool calls in this "
            f"session: {calls}, failed: {failed}. Review the recent journal and record your "
            "insights, or call noop when there are none."
        ),
        "channel": None,
        "addressed": True,
        "kind": "reflection",
    }
