"""The history, a key of the state: its reducer, its size, and the messages of a tick."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from itertools import compress, count
from operator import attrgetter, is_, is_not
from typing import Any, TypeVar, cast

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

from memory.errors import InputError
from memory.messages.convert import EVENT_KEY, check_message, is_history, mark_of
from memory.text import approximate_tokens, calibrated, once_per_message

M = TypeVar("M", bound=BaseMessage)

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
    if not (isinstance(standing, HumanMessage) and isinstance(message, HumanMessage)):
        return isinstance(standing, HumanMessage) or isinstance(message, HumanMessage)
    return is_history(standing) and not (
        is_history(message) and _origin(message) == _origin(standing)
    )


def _origin(message: HumanMessage) -> tuple[Any, Any]:
    mark = mark_of(message)
    return mark["event"], mark["tick"]


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
