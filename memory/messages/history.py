"""The history, a key of the state: its reducer, its size, and the messages of a tick."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, is_
from typing import Any, cast

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
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages

from memory.messages.convert import check_message, is_history, mark_of
from memory.text import approximate_tokens, calibrated, once_per_message

MARK = "[CONTEXT SUMMARY]"
"""First words of a compaction's summary."""


def history_share(messages: Sequence[AnyMessage], calibration: float, limit: int) -> float:
    """The share of `limit` tokens that the history alone fills; may exceed 1 (ruling 8)."""
    return size_of(messages, calibration) / limit


def size_of(messages: Sequence[AnyMessage], calibration: float) -> int:
    """Tokens of the messages, calibrated."""
    return calibrated(approximate_tokens(messages), calibration)


AGAIN = "again:"
"""Prefix for the id of a new message that would otherwise replace one of the history."""


def merge_messages(left: Any, right: Any) -> list[AnyMessage]:
    """LangGraph's `add_messages`, except that new input never replaces a message of the history.

    A human message with the same id and the same mark is an edit and replaces the earlier one. An
    answer can be edited without a mark. A human message never replaces one of another kind, nor the
    other way round.

    Raises:
        InputError: a new message cannot be an event, for example because its name is empty. Raised
            here, before it gets into the thread, where it would trouble every later run.
    """
    standing, given = _messages(left), _messages(right)
    removed = RemoveMessage in set(map(type, given))
    if not removed and len(given) >= len(standing) and all(map(is_, standing, given)):
        given = given[len(standing) :]  # a subgraph gives back the whole history
    for message, known in zip(given, _is_known.each(given), strict=True):
        if not known and isinstance(message, HumanMessage):
            check_message(message)
    if removed and given[0].id == REMOVE_ALL_MESSAGES and _are_new(given[1:], []):
        return cast(list[AnyMessage], given[1:])
    if not removed and _are_new(given, standing):
        return cast(list[AnyMessage], [*standing, *given])
    if not removed:
        past = {message.id: message for message in standing}
        changed = [message for message in given if past.get(message.id) is not message]
        given = [_beside(past, message) for message in changed]
    # Without `format` it returns a list, and not a reducer.
    return cast(list[AnyMessage], add_messages(cast(Any, standing), cast(Any, given)))


_is_known = once_per_message(is_history)


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


def _messages(given: Any) -> list[BaseMessage]:
    listed = given if isinstance(given, list) else [given]
    if all(issubclass(kind, BaseMessage) for kind in set(map(type, listed))):
        return listed
    return convert_to_messages(listed)
