"""Chat messages and events: the rules that turn one into the other."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from memory.records import Event
from memory.reflection import is_reflection

M = TypeVar("M", bound=BaseMessage)

MARK = "circadian"
"""In `additional_kwargs` of every message that a tick put into the history; new input lacks it."""

TOLD = "told"
"""In the mark of a human message as the model sees it: its text says who speaks."""

_LONGEST = 64
"""Characters of a name that providers take."""
_SAFE = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_WORDS = re.compile(r"[a-zA-Z0-9-]+(?: [a-zA-Z0-9-]+)*")


def event_of(message: HumanMessage, *, owner: str, now: datetime) -> Event:
    """A chat message as an event. Its sender is its `name`; without one, the owner.

    An empty name is nobody's: `memory.inbox.valid_event` refuses it.
    """
    event: Event = {
        "id": str(message.id),
        "at": now.isoformat(),
        "sender": owner if message.name is None else message.name,
        "text": text_of(message.content),
        "channel": None,
        "addressed": True,
    }
    if not isinstance(message.content, str):
        event["content"] = list(message.content)
    return event


def with_kind(event: Event, message: HumanMessage) -> Event:
    """The event of `message`, of kind `chat` unless it has a `name`, which may be anybody's.

    Given after the event was checked, since none may bring its kind from outside.
    """
    return {**event, "kind": "chat"} if message.name is None else event


def message_of(event: Event, *, tick: int) -> HumanMessage:
    """An event as the history's human message; its id is the event's.

    A reflection has no name: nobody said it, it is the product's own.
    """
    return HumanMessage(
        content=event.get("content", event["text"]),
        id=event["id"],
        name=None if is_reflection(event) else event["sender"],
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
    """Whether the message has the mark of a tick; a human message without one is new input.

    Input can bring a mark of its own: what such a message is, `memory.arrivals` decides.
    """
    if not isinstance(message, HumanMessage):
        return MARK in message.additional_kwargs
    mark = mark_of(message)
    return type(mark.get("tick")) is int and isinstance(mark.get("event", 0), str | None)


def mark_of(message: BaseMessage) -> dict[str, Any]:
    """The mark; {} where there is none, or one that is no object."""
    mark = message.additional_kwargs.get(MARK)
    return mark if isinstance(mark, dict) else {}


def marked(message: M, **more: Any) -> M:
    """`message` with `more` in its mark."""
    mark = {**mark_of(message), **more}
    return message.model_copy(
        update={"additional_kwargs": {**message.additional_kwargs, MARK: mark}}
    )


def text_only(message: HumanMessage) -> HumanMessage:
    """The message for the history once its tick is over: `[image]` stands where an image stood.

    The state is copied into every checkpoint, and an image with it. The same message where it
    holds nothing but text.
    """
    if isinstance(message.content, str) or all(_is_text(one) for one in message.content):
        return message
    return message.model_copy(update={"content": text_of([_plain(one) for one in message.content])})


def for_model(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The history as providers take it: a sender's name holds letters, digits, `_` and `-` only.

    Where that changes a name, the message's text begins with the true one, `NAME: TEXT`, unless its
    mark says that the text tells it. A changed name ends in a hash of the true one, so that no two
    people have the same. The one exception is a space between words, which is `_` without more ado
    unless somebody else here is called so.
    """
    people = [one for one in messages if isinstance(one, HumanMessage) and one.name]
    taken = {str(one.name) for one in people}
    return [_named(one, taken) if isinstance(one, HumanMessage) else one for one in messages]


def _named(message: HumanMessage, taken: set[str]) -> HumanMessage:
    name = message.name
    if not name or _SAFE.fullmatch(name):
        return message
    spaced = name.replace(" ", "_")
    if _WORDS.fullmatch(name) and len(name) <= _LONGEST and spaced not in taken:
        return message.model_copy(update={"name": spaced})
    if mark_of(message).get(TOLD):
        return message.model_copy(update={"name": _hashed(name)})
    content: str | list[Any] = (
        f"{name}: {message.content}"
        if isinstance(message.content, str)
        else [{"type": "text", "text": f"{name}:"}, *message.content]
    )
    return message.model_copy(update={"name": _hashed(name), "content": content})


def _hashed(name: str) -> str:
    """What is safe of `name`, and a hash that tells it from all others; at most 64 characters."""
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    safe = re.sub(r"[^a-zA-Z0-9_-]+", "_", name).strip("_")[: _LONGEST - len(mark) - 1]
    return f"{safe or 'name'}_{mark}"


def _is_text(block: str | Mapping[str, Any]) -> bool:
    return isinstance(block, str) or block.get("type") == "text"


def _plain(block: str | dict[str, Any]) -> str | dict[str, Any]:
    if isinstance(block, dict) and "image" in str(block.get("type")):
        return {"type": "image"}
    return block
