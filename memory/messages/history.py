"""The history as a key of the state: what an input may do to it, and what not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.messages.utils import convert_to_messages
from langgraph.graph.message import add_messages

from memory.messages.convert import check_message, is_history, mark_of
from memory.text import approximate_tokens, calibrated

MARK = "[CONTEXT SUMMARY]"


def history_share(messages: Sequence[AnyMessage], calibration: float, limit: int) -> float:
    """The share (0..) of `limit` tokens that the history alone fills (ruling 8)."""
    return size_of(messages, calibration) / limit


def size_of(messages: Sequence[AnyMessage], calibration: float) -> int:
    """Tokens of the messages, calibrated."""
    return calibrated(approximate_tokens(messages), calibration)


AGAIN = "again:"
"""Before the id of a new message that would otherwise take the place of one in the history."""


def merge_messages(left: Any, right: Any) -> list[AnyMessage]:
    """LangGraph's `add_messages`, but new input never replaces a message of the history.

    A message with the mark of the one that has its id is an edit and replaces it; an answer is
    edited without a mark too, but no human message takes the place of another kind, nor another
    kind that of a human message.

    Raises:
        InputError: a new message can be no event, such as one with an empty name. Raised here, so
            that it does not get into the thread, where every run after it would meet it.
    """
    past = {one.id: one for one in convert_to_messages(_listed(left))}
    given = convert_to_messages(_listed(right))
    for one in given:
        if isinstance(one, HumanMessage) and not is_history(one):
            check_message(one)
    if not any(isinstance(one, RemoveMessage) for one in given):
        given = [_beside(past, one) for one in given]
    # Without `format` it returns a list, and not a reducer.
    return cast(list[AnyMessage], add_messages(cast(Any, _listed(left)), cast(Any, given)))


def given_id(message: BaseMessage, messages: Sequence[BaseMessage]) -> str:
    """The id that a new message came with: that of what was said before, when it is said again."""
    wanted = str(message.id).removeprefix(AGAIN)
    said = any(one.id == wanted and isinstance(one, HumanMessage) for one in messages)
    return wanted if said else str(message.id)


def is_summary(message: BaseMessage) -> bool:
    """Whether the message stands for what a compaction cut."""
    return isinstance(message, SystemMessage) and str(message.text).startswith(MARK)


def of_tick(messages: Sequence[AnyMessage], tick: int) -> list[AnyMessage]:
    """The messages that tick `tick` put into the history."""
    return [one for one in messages if mark_of(one).get("tick") == tick]


def open_calls(messages: Sequence[BaseMessage]) -> list[ToolCall]:
    """The calls of the newest model answer that nothing has answered yet, in order."""
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
    """`message`, with another id where it would push a message out of the history."""
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


def _listed(messages: Any) -> list[Any]:
    return messages if isinstance(messages, list) else [messages]
