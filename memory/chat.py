"""Chat messages and events: the rules that turn one into the other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, RemoveMessage

from memory.records import Event
from memory.settings import Settings

MARK = "circadian"
"""In `additional_kwargs` of every message that a tick put into the history; new input lacks it."""


def owner_of(settings: Settings, user: str) -> str:
    """Whom a message without a `name` is from."""
    return settings.owners[0] if settings.owners else user


def event_of(message: HumanMessage, *, owner: str, now: datetime) -> Event:
    """A chat message as an event. Its sender is its `name`, else the owner."""
    event: Event = {
        "id": str(message.id),
        "at": now.isoformat(),
        "sender": message.name or owner,
        "text": text_of(message.content),
        "channel": None,
        "addressed": True,
    }
    if not isinstance(message.content, str):
        event["content"] = list(message.content)
    return event


def message_of(event: Event, *, tick: int) -> HumanMessage:
    """An event as the history's human message; its id is the event's."""
    return HumanMessage(
        content=event.get("content", event["text"]),
        id=event["id"],
        name=event["sender"],
        additional_kwargs={
            MARK: {
                "event": event["id"],
                "tick": tick,
                "at": event["at"],
                "channel": event["channel"],
            }
        },
    )


def text_of(content: str | Sequence[str | Mapping[str, Any]]) -> str:
    """The text of a message's content; a block that is no text stands as `[its type]`."""
    if isinstance(content, str):
        return content
    parts = (
        one if isinstance(one, str) else str(one.get("text") or f"[{one.get('type', 'content')}]")
        for one in content
    )
    return "\n".join(parts)


def is_history(message: BaseMessage) -> bool:
    """Whether a tick put the message there; a human message without the mark is new input."""
    return MARK in message.additional_kwargs


def withdrawn(message: HumanMessage, handled: set[str]) -> AnyMessage | RemoveMessage:
    """New input leaves the history until its tick; an id handled before is history again."""
    if str(message.id) not in handled:
        return RemoveMessage(id=str(message.id))
    mark = {"event": str(message.id), "tick": 0}
    return message.model_copy(update={"additional_kwargs": {MARK: mark}})


def for_model(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The history as providers take it: a sender's name holds letters, digits, `_` and `-` only."""
    return [
        message.model_copy(update={"name": re.sub(r"[^a-zA-Z0-9_-]+", "_", message.name)[:64]})
        if isinstance(message, HumanMessage) and message.name
        else message
        for message in messages
    ]
