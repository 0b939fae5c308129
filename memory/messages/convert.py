"""Events as chat messages and back, the checks on what comes from outside, and the history. Pure.

The history is a key of the state: here are its reducer, its size, and the messages of a tick.

Block types are those of LangChain's standard blocks and OpenAI's chat completions. Other types are
refused: to a provider some, such as `tool_result`, mean more than words or media.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import compress, count
from operator import attrgetter, is_, is_not
from typing import Any, Self, TypeVar, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    BaseMessageChunk,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.messages.utils import convert_to_messages
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from memory.errors import InputError
from memory.records import Event, is_reflection
from memory.text import approximate_tokens, calibrated, encodable, once_per_message, regex

MAX_TEXT = 100_000


def in_utc(value: str) -> str:
    """An ISO 8601 time in UTC; without a zone it is UTC. Raises ValueError for any other text."""
    moment = datetime.fromisoformat(value)
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except OverflowError:
        raise ValueError("in UTC it is outside the years 1 to 9999") from None


class EventInput(BaseModel):
    """An event as it comes from outside."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str = Field(pattern=r"^[\w.:@+/#-]+$", max_length=200)
    at: str
    sender: str = Field(min_length=1, max_length=200)
    text: str = Field(max_length=MAX_TEXT)
    channel: str | None = Field(None, max_length=200)
    addressed: bool = True
    content: list[str | dict[str, Any]] | None = Field(None, min_length=1)
    """Content blocks as in a chat message; their text replaces `text`."""

    @field_validator("at")
    @classmethod
    def _utc(cls, value: str) -> str:
        return in_utc(value)

    @field_validator("sender", "text")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be empty")
        return cast(str, encodable(value))

    @field_validator("content")
    @classmethod
    def _blocks(cls, value: list[Any] | None) -> list[Any] | None:
        for block in value or []:
            if isinstance(block, dict):
                check_block(block)
        return cast(list[Any] | None, encodable(value))

    @model_validator(mode="after")
    def _one_text(self) -> Self:
        if self.content is not None:
            text = text_of(self.content)
            if not text.strip() or len(text) > MAX_TEXT:
                raise ValueError(f"content must hold 1 to {MAX_TEXT} characters of text")
            self.text = text
        return self


def valid_event(raw: Any) -> Event:
    """`raw` as an Event with its time in UTC. Raises InputError that names the field."""
    if not isinstance(raw, dict):
        raise InputError(
            f"an event must be an object with id, at, sender and text; got {raw!r:.80}"
        )
    try:
        event = EventInput.model_validate(raw).model_dump()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "event"
        problem = (
            first["msg"]
            .removeprefix("Value error, ")
            .replace("String should have", "it has to have")
        )
        raise InputError(f"event {raw.get('id', '?')!s:.80}: {where}: {problem}") from None
    if event["content"] is None:
        del event["content"]
    return cast(Event, event)


def check_message(message: HumanMessage) -> None:
    """Raise InputError if `message` cannot be an event. One without any text is not checked."""
    owner, at = "owner", datetime.min.replace(tzinfo=UTC)
    event = event_of(message, owner=owner, now=at)
    if event["text"].strip():
        valid_event(event if message.id else {**event, "id": "new"})


_SOURCES = ("url", "base64", "data", "file_id", "id", "source")

_PAYLOAD: dict[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": _SOURCES,
    "image_url": ("image_url",),
    "audio": _SOURCES,
    "input_audio": ("input_audio",),
    "video": _SOURCES,
    "file": (*_SOURCES, "file", "text"),
}
"""Block type -> keys that may hold its content; a block has at least one of them."""

_BESIDE = ("type", "id", "index")

_OF_MEDIA = (
    "mime_type",
    "mimeType",
    "source_type",
    "filename",
    "name",
    "title",
    "alt",
    "detail",
    "metadata",
)

_STRUCTURED = ("image_url", "input_audio", "file", "source", "metadata")
"""Keys whose value may be an object; other keys hold a string or a number."""

_KEY = regex(r"[\w-]{1,64}")


def check_block(block: Mapping[str, Any]) -> None:
    """Raise ValueError, which names the type, unless the block is text or a medium."""
    kind = block.get("type")
    if not isinstance(kind, str):
        raise ValueError("a block must have a type, such as 'text'")
    payload = _PAYLOAD.get(kind)
    if payload is None:
        raise ValueError(
            f"a block of type {kind!r:.80} is not accepted; known are {', '.join(_PAYLOAD)}"
        )
    if not isinstance(block.get("text", ""), str):
        raise ValueError("a block's text must be a string")
    known = (*_BESIDE, *payload, *(() if kind == "text" else _OF_MEDIA))
    for key, value in block.items():
        if key not in known:
            raise ValueError(f"a block of type {kind!r} has no {key!r:.80}")
        if not (_is_scalar(value) or (key in _STRUCTURED and _is_flat(value))):
            raise ValueError(f"a block of type {kind!r}: {key!r} has an unknown form")
    if all(block.get(key) is None for key in payload):
        raise ValueError(f"a block of type {kind!r} must have {' or '.join(payload)}")


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _is_flat(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(key, str) and _KEY.fullmatch(key) and _is_scalar(item)
        for key, item in value.items()
    )


# Chat messages and events.

M = TypeVar("M", bound=BaseMessage)

EVENT_KEY = "circadian"
"""Key in `additional_kwargs` of the mark that a tick leaves on its messages; new input has none."""


def event_of(message: HumanMessage, *, owner: str, now: datetime) -> Event:
    """A chat message as an event; its sender is its `name`, or without one the owner."""
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
    """The event of `message`, of kind `chat` if it has no `name`. No event brings its kind."""
    return {**event, "kind": "chat"} if message.name is None else event


def message_of(event: Event, *, tick: int) -> HumanMessage:
    """An event as a human message with the event's id; of a reflection without a name."""
    return HumanMessage(
        content=event.get("content", event["text"]),
        id=event["id"],
        name=None if is_reflection(event) else event["sender"],
        additional_kwargs={
            EVENT_KEY: {
                "event": event["id"],
                "tick": tick,
                "at": event["at"],
                "channel": event["channel"],
            }
        },
    )


def text_of(content: str | Sequence[str | Mapping[str, Any]]) -> str:
    """The text of a message's content; a block without text becomes `[its type]`."""
    if isinstance(content, str):
        return content
    return "\n".join(
        block
        if isinstance(block, str)
        else str(block.get("text") or f"[{block.get('type', 'content')}]")
        for block in content
    )


def is_history(message: BaseMessage) -> bool:
    """Whether the message has the mark of a tick; a human message without a mark is new input.

    New input may bring a forged mark; `memory.events.inbox` tells it from the history.
    """
    if not isinstance(message, HumanMessage):
        return EVENT_KEY in message.additional_kwargs
    mark = mark_of(message)
    return type(mark.get("tick")) is int and isinstance(mark.get("event", 0), str | None)


def mark_of(message: BaseMessage) -> dict[str, Any]:
    """The message's mark; {} if it has none, or an invalid one."""
    mark = message.additional_kwargs.get(EVENT_KEY)
    return mark if isinstance(mark, dict) else {}


def marked(message: M, **more: Any) -> M:
    """`message` with `more` in its mark."""
    mark = {**mark_of(message), **more}
    return message.model_copy(
        update={"additional_kwargs": {**message.additional_kwargs, EVENT_KEY: mark}}
    )


def text_only(message: HumanMessage) -> HumanMessage:
    """The message with `[image]` and the like in place of media, as the history keeps it."""
    plain: list[str | dict[str, Any]] = []
    for block in message.content if not isinstance(message.content, str) else ():
        is_image = isinstance(block, dict) and "image" in str(block.get("type"))
        plain.append({"type": "image"} if is_image else block)
    if all(isinstance(block, str) or block.get("type") == "text" for block in plain):
        return message
    return message.model_copy(update={"content": text_of(plain)})


MARK = "[CONTEXT SUMMARY]"
"""First words of a compaction's summary."""


def history_share(messages: Sequence[AnyMessage], calibration: float, limit: int) -> float:
    """The share of `limit` tokens that the history alone fills; may exceed 1."""
    return size_of(messages, calibration) / limit


def size_of(messages: Sequence[AnyMessage], calibration: float) -> int:
    """Tokens of the messages, calibrated."""
    return calibrated(approximate_tokens(messages), calibration)


WAITS = "waits"
"""Key in the mark of a human message whose event waits for its tick, or that waits for room."""

OUTSIDE = "outside"
"""Value under WAITS where the inbox had no room for the message: a later run takes it in."""

AGAIN = "again:"
"""Prefix for the id of a new message that would otherwise replace one of the history."""


def merge_messages(left: Any, right: Any) -> list[AnyMessage]:
    """LangGraph's `add_messages`, except that new input never replaces a message of the history.

    A human message with the same id and mark is an edit and replaces the earlier one. An answer can
    be edited without a mark. A human message replaces none of another kind, nor the other way
    round. What is removed goes first, so that it can be given anew at the end. Messages that wait
    stand behind the history. Raises InputError for what cannot be an event, before it troubles
    every later run.
    """
    from langgraph.graph.message import REMOVE_ALL_MESSAGES

    standing, given = as_messages(left), as_messages(right)
    removed = RemoveMessage in set(map(type, given))
    if not removed and len(given) >= len(standing) and all(map(is_, standing, given)):
        given = given[len(standing) :]  # a subgraph gives back the whole history
    for message in given:
        if message.id is None:
            message.id = str(uuid.uuid4())  # as `add_messages` does
    for message, known in zip(given, _is_known.each(given), strict=True):
        if not known and isinstance(message, HumanMessage):
            check_message(message)
    if removed and given[0].id == REMOVE_ALL_MESSAGES and _are_new(given[1:], []):
        return cast(list[AnyMessage], _waiting_last(given[1:]))
    begun = without_waiting(standing)
    behind = [one for one in standing[len(begun) :] if not _is_taken_in(one, given)]
    if not removed and _are_new(given, [*begun, *behind]):
        return cast(list[AnyMessage], [*begun, *_waiting_last([*behind, *given])])
    removals = [message for message in given if isinstance(message, RemoveMessage)]
    if removals:
        standing = _added(standing, removals)
    past = {message.id: message for message in standing}
    given = [
        message
        for message in given
        if past.get(message.id) is not message and not isinstance(message, RemoveMessage)
    ]
    standing = [one for one in standing if not (waits(one) and _is_taken_in(one, given))]
    merged = _added(standing, [_beside(past, message) for message in given])
    return cast(list[AnyMessage], _waiting_last(merged))


def _is_taken_in(waiting: BaseMessage, given: Sequence[BaseMessage]) -> bool:
    """Whether a message that waits is given anew, for its place in the history."""
    return any(
        one.id == waiting.id and one is not waiting and isinstance(one, HumanMessage)
        for one in given
    )


def _waiting_last(messages: list[BaseMessage]) -> list[BaseMessage]:
    return sorted(messages, key=waits) if any(_is_waiting.each(messages)) else messages


def _added(standing: Sequence[BaseMessage], given: Sequence[BaseMessage]) -> list[BaseMessage]:
    from langgraph.graph.message import add_messages  # not loaded where a state is only read

    # Without `format` it returns a list, and not a reducer.
    return cast(list[BaseMessage], add_messages(cast(Any, standing), cast(Any, given)))


def waits(message: BaseMessage) -> bool:
    """Whether the message is shown while its event waits in the inbox; no model sees it so."""
    return isinstance(message, HumanMessage) and bool(mark_of(message).get(WAITS))


def without_waiting(messages: Sequence[M]) -> Sequence[M]:
    """The history, without the messages that wait behind it."""
    end = len(messages)
    while end and waits(messages[end - 1]):
        end -= 1
    return messages[:end]


def is_outside(message: BaseMessage) -> bool:
    """Whether the message waits for room in the inbox."""
    return waits(message) and mark_of(message)[WAITS] == OUTSIDE


def waiting(message: HumanMessage, *, outside: bool = False) -> HumanMessage:
    """The message as one that waits; no other mark of a tick stays on it."""
    kwargs = {**message.additional_kwargs, EVENT_KEY: {WAITS: OUTSIDE if outside else True}}
    return message.model_copy(update={"additional_kwargs": kwargs})


def changes(before: Sequence[AnyMessage], after: Sequence[AnyMessage]) -> list[BaseMessage]:
    """The update that makes `before` into `after`. Its removals are streamed to no client."""
    ends = min(len(before), len(after))
    same = next(compress(count(), map(is_not, before, after)), ends)
    while same < ends and before[same] == after[same]:
        same += 1
    return [*(RemoveMessage(id=str(one.id)) for one in before[same:]), *after[same:]]


_is_known = once_per_message(is_history)
_is_waiting = once_per_message(waits)


def given_id(message: BaseMessage, messages: Sequence[BaseMessage]) -> str:
    """The id that a new message was sent with, before `merge_messages` changed it."""
    wanted = str(message.id).removeprefix(AGAIN)
    said = any(earlier.id == wanted and isinstance(earlier, HumanMessage) for earlier in messages)
    return wanted if said else str(message.id)


def is_summary(message: BaseMessage) -> bool:
    """Whether the message is a compaction's summary."""
    return isinstance(message, SystemMessage) and str(message.text).startswith(MARK)


def of_tick(messages: Sequence[AnyMessage], tick: int) -> list[AnyMessage]:
    """The messages that tick `tick` put into the history."""
    return [
        message for message, its in zip(messages, ticks_of(messages), strict=True) if its == tick
    ]


def ticks_of(messages: Sequence[AnyMessage]) -> list[Any]:
    """The number of the tick that put each message into the history, as its mark says."""
    return _tick_of.each(messages)


@once_per_message
def _tick_of(message: AnyMessage) -> Any:
    return mark_of(message).get("tick")


def open_calls(messages: Sequence[BaseMessage]) -> list[ToolCall]:
    """The tool calls of the newest model answer that have no result yet, in order."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, AIMessage):
            return [call for call in message.tool_calls if call["id"] not in answered]
        else:
            break
    return []


def _beside(past: dict[str | None, BaseMessage], message: BaseMessage) -> BaseMessage:
    """`message`, with another id if it would replace a protected message of the history."""
    if message.id is None:
        return message
    wanted = message.id
    while (standing := past.get(wanted)) is not None and _protected(standing, message):
        wanted = AGAIN + wanted
    return message if wanted == message.id else message.model_copy(update={"id": wanted})


def _protected(standing: BaseMessage, message: BaseMessage) -> bool:
    people = isinstance(standing, HumanMessage), isinstance(message, HumanMessage)
    if not all(people):
        return any(people)
    if not is_history(standing):
        return False
    marks = mark_of(message), mark_of(standing)
    same = all(marks[0].get(key) == marks[1][key] for key in ("event", "tick"))
    return not (is_history(message) and same)


def _are_new(given: Sequence[BaseMessage], standing: Sequence[BaseMessage]) -> bool:
    """Whether all of `given` simply go to the end, as in nearly every update of a long history."""
    ids = {None, *map(attrgetter("id"), given)}
    return (
        len(ids) == len(given) + 1
        and ids.isdisjoint(map(attrgetter("id"), standing))
        and not any(
            issubclass(kind, BaseMessageChunk | RemoveMessage) for kind in set(map(type, given))
        )
    )


def as_messages(given: Any) -> list[BaseMessage]:
    """One message or several, in any form that LangChain knows. Raises InputError for others."""
    listed = given if isinstance(given, list) else [given]
    if all(issubclass(kind, BaseMessage) for kind in set(map(type, listed))):
        return listed
    try:
        return convert_to_messages(listed)
    except (ValueError, NotImplementedError, TypeError) as error:
        raise InputError(f"messages: {error}") from None
