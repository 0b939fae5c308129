"""Rules for events: classification, owners, journal entries, and the reflection event. Pure.

An owner is a person whose word the assistant's own prompt may follow. A sender is an owner by exact
id: names that look alike are other ids.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from memory.journal import (
    SYSTEM,
    TRUST,
    entry_id_of,
    heuristic_importance,
    known_entities,
    mentions,
    mentions_assistant,
    names_assistant,
    names_project,
    source_type_of,
)
from memory.records import (
    NOBODY,
    OPENING,
    OWN,
    Classification,
    Event,
    Familiar,
    JournalEntry,
    is_reflection,
)
from memory.settings import Settings, Verdict
from memory.state import State

_DEFAULTS = Settings()


def entry_for_event(
    event: Event,
    *,
    known_entities: Iterable[str],
    projects: Iterable[str],
    settings: Settings = _DEFAULTS,
    sender_bonus: int = 0,
) -> JournalEntry:
    """Journal entry of an event that was acted on or taken as context; needs no model call."""
    source = source_type_of(event, settings)
    text = event["text"]
    return {
        "id": entry_id_of("event", event["at"], event["id"]),
        "timestamp": event["at"],
        "content": text,
        "source_type": source,
        "source_trust": TRUST[source],
        "source_entity": event["sender"],
        "importance": heuristic_importance(
            text,
            direct=event["addressed"],
            mentioned=mentions(text),
            known_entities=[name for name in known_entities if name != event["sender"]],
            sender_bonus=sender_bonus,
        ),
        "scoring_method": "heuristic",
        "tags": ["event"],
        "related_projects": [key for key in projects if names_project(text, key)],
        "sources": [event["id"]],
        "channel": event["channel"],
        "consolidation": "pending",
    }


def entry_in(
    state: State, event: Event, settings: Settings = _DEFAULTS, familiar: Familiar = NOBODY
) -> JournalEntry:
    """Journal entry of an event; people and projects come from the state and profiles."""
    return entry_for_event(
        event,
        known_entities=[*known_entities(state), *familiar.names],
        projects=state["projects"]["slots"],
        settings=settings,
        sender_bonus=familiar.bonus,
    )


# The reflection event, which makes the assistant review its own work. Entries of such a tick are
# tagged `self`: they are notes on that work, not memories of the world.


def due(tick: int, last_reflection: int, interval: int, *, event: Event | None) -> bool:
    """Whether the tick that ends now sets off a reflection; a reflection never sets off another."""
    if interval <= 0 or is_reflection(event):
        return False
    return tick - last_reflection >= interval


def reflection_event(
    tick: int, now: datetime, settings: Settings, *, since: int, calls: int, failed: int
) -> Event:
    """The reflection event that tick `tick` sets off; the same one if the tick is repeated.

    `since`: ticks after the last one. `calls`, `failed`: the session's tool calls.
    """
    return {
        "id": f"{OWN}reflection_{tick}",
        "at": now.isoformat(),
        "sender": next((name for name in settings.names if name.strip()), "circadian"),
        "text": (
            f"{OPENING} Ticks since you last looked at your own work: {since}; tool calls in this "
            f"session: {calls}, failed: {failed}."
        ),
        "channel": None,
        "addressed": True,
        "kind": "reflection",
    }


def owners_of(settings: Settings, *, user: str, served: bool) -> tuple[str, ...]:
    """The ids of the owners, at least one. The first sends the messages without a `name`.

    On a server (`served`) only the authenticated `user`, because clients send the settings.
    """
    if served or not settings.owners:
        return (user,)
    return tuple(settings.owners)


def set_off_by_owner(event: Event | None, *, owners: Collection[str], served: bool) -> bool:
    """Whether an owner set off the tick on `event` (None: an autonomous tick).

    On a server clients choose sender ids: only a chat message without a `name` is from the user.
    """
    if event is None or is_reflection(event):
        return False
    if served and event.get("kind") != "chat":
        return False
    return event["sender"] in owners


MOST_SHARED = 500
"""Shared channels that the state keeps."""


def shared_after(
    state: State, events: Iterable[Event], settings: Settings, owners: Collection[str]
) -> dict[str, str]:
    """After these events, the channels on which others than owners write, and since when."""
    talks = state["conversations"].values()
    after = dict(state["shared_channels"])
    for sender, channel, at in [
        *((one["entity"], one["channel"], one["last_at"]) for one in talks),
        *((one["sender"], one["channel"], one["at"]) for one in events),
    ]:
        other = sender not in {*owners, SYSTEM} and not names_assistant(sender, settings)
        if channel and other:
            after[channel] = min(at, after.pop(channel, at))
    return dict([*after.items()][-MOST_SHARED:])


# Classification, by the first rule that fits.


class Heard(NamedTuple):
    """The input of a rule."""

    event: Event
    settings: Settings
    owners: Collection[str]


class EventRule(NamedTuple):
    """A classification rule."""

    name: str
    verdict: Callable[[Heard], Verdict | None]
    """None: the rule does not fit."""
    reason: str
    """Shown to a person; may contain {sender}, {channel} and {verdict}."""


def classify(event: Event, *, settings: Settings, owners: Sequence[str]) -> Classification:
    """The verdict on `event`, the rule behind it, and the trust in its source."""
    heard = Heard(event, settings, owners)
    rule, verdict = next((r, v) for r in RULES if (v := r.verdict(heard)) is not None)
    channel = event["channel"] or "no channel"
    return {
        "verdict": verdict,
        "rule": rule.name,
        "trust": TRUST[source_type_of(event, settings)],
        "reason": rule.reason.format(sender=event["sender"], channel=channel, verdict=verdict),
    }


def wakes(event: Event, *, settings: Settings, owners: Sequence[str]) -> bool:
    """Whether `event` wakes the agent: it is acted on, and it is not a reflection."""
    if is_reflection(event):
        return False
    return classify(event, settings=settings, owners=owners)["verdict"] == "act"


def _own_message(heard: Heard) -> Verdict | None:
    sender = heard.event["sender"]
    # An owner may have the assistant's name, and is still heard.
    own = sender not in heard.owners and names_assistant(sender, heard.settings)
    return "ignore" if own else None


def _channel(heard: Heard) -> Verdict | None:
    channel = heard.event["channel"]
    return heard.settings.channels.get(channel) if channel else None


RULES: tuple[EventRule, ...] = (
    EventRule(
        "disabled",
        lambda heard: None if heard.settings.enabled else "ignore",
        "The assistant is switched off (setting enabled).",
    ),
    EventRule(
        "reflection",
        lambda heard: "act" if is_reflection(heard.event) else None,
        "The assistant's review of its own work is due.",
    ),
    EventRule("own_message", _own_message, "{sender} is the assistant itself (setting names)."),
    EventRule(
        "mention",
        lambda heard: "act" if mentions_assistant(heard.event["text"], heard.settings) else None,
        "{sender} mentions the assistant by name.",
    ),
    EventRule(
        "direct",
        lambda heard: "act" if heard.event["addressed"] else None,
        "{sender} speaks to the assistant.",
    ),
    # Mention and direct come first, so an assistant that asks is answered. Two assistants may go on
    # asking each other, but each run ends: it answers posted events, and an answer posts none.
    EventRule(
        "cross_talk",
        lambda heard: "context" if heard.event["sender"] in heard.settings.assistants else None,
        "{sender} is another assistant, and asks nothing of this one.",
    ),
    # Owners are not included: their words to somebody else start no tick.
    EventRule(
        "permission",
        lambda heard: "act" if heard.event["sender"] in heard.settings.permitted_senders else None,
        "{sender} is always answered (setting permitted_senders).",
    ),
    EventRule(
        "channel", _channel, "What is said to nobody in {channel}: {verdict} (setting channels)."
    ),
    EventRule(
        "room_default",
        lambda heard: heard.settings.room_default if heard.event["channel"] else None,
        "What is said to nobody in a channel: {verdict} (setting room_default).",
    ),
    EventRule("fallback", lambda _: "context", "{sender} speaks to nobody."),
)
"""In order; the last rule always fits."""
