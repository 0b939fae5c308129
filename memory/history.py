"""The history as a key of the state: what an input may do to it, and what not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.messages.utils import convert_to_messages
from langgraph.graph.message import add_messages

from memory.chat import MARK, is_history

AGAIN = "again:"
"""Before the id of a new message that would otherwise take the place of one in the history."""


def merge_messages(left: Any, right: Any) -> list[AnyMessage]:
    """LangGraph's `add_messages`, but new input never replaces a message of the history.

    A message with a tick's mark is an edit and replaces the one with its id; an answer is edited
    without a mark too, but a human message never takes the place of another kind.
    """
    past = {one.id: one for one in convert_to_messages(_listed(left))}
    given = convert_to_messages(_listed(right))
    if not any(isinstance(one, RemoveMessage) for one in given):
        given = [_beside(past, one) for one in given]
    # Without `format` it returns a list, and not a reducer.
    return cast(list[AnyMessage], add_messages(cast(Any, _listed(left)), cast(Any, given)))


def given_id(message: BaseMessage, messages: Sequence[BaseMessage]) -> str:
    """The id that a new message came with: that of what was said before, when it is said again."""
    wanted = str(message.id).removeprefix(AGAIN)
    said = any(one.id == wanted and isinstance(one, HumanMessage) for one in messages)
    return wanted if said else str(message.id)


def of_tick(messages: Sequence[AnyMessage], tick: int) -> list[AnyMessage]:
    """The messages that tick `tick` put into the history."""
    return [one for one in messages if _mark(one).get("tick") == tick]


def _mark(message: BaseMessage) -> dict[str, Any]:
    mark = message.additional_kwargs.get(MARK)
    return mark if isinstance(mark, dict) else {}


def _beside(past: dict[str | None, BaseMessage], message: BaseMessage) -> BaseMessage:
    """`message`, with another id where it would push a message out of the history."""
    if not isinstance(message, HumanMessage) or message.id is None:
        return message
    wanted = message.id
    while (standing := past.get(wanted)) is not None and _protected(standing, message):
        wanted = AGAIN + wanted
    return message if wanted == message.id else message.model_copy(update={"id": wanted})


def _protected(standing: BaseMessage, message: HumanMessage) -> bool:
    if not isinstance(standing, HumanMessage):
        return True
    return is_history(standing) and not is_history(message)


def _listed(messages: Any) -> list[Any]:
    return messages if isinstance(messages, list) else [messages]
