"""A run's input from Python, checked before any of it is taken."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.messages.utils import convert_to_messages
from langgraph.types import Command, StateSnapshot

from memory.arrivals import check_request
from memory.errors import InputError

AN_INPUT = (
    'an input is an object with messages, events or a request, as {"messages": "Hello"} or '
    '{"request": "sleep"}'
)


def checked_input(given: Any) -> dict[str, Any]:
    """The input as an object of known keys. Raises InputError that says what one looks like."""
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"{AN_INPUT}; got {given!r:.80}")
    taken = dict(given or {})
    unknown = set(taken) - {"messages", "events", "request"}
    if unknown:
        raise InputError(
            f"unknown input: {', '.join(sorted(unknown))}; known are messages, events, request"
        )
    check_request(taken.get("request"))
    if isinstance(taken.get("messages"), str) and not taken["messages"].strip():
        raise InputError("the message is empty")
    events = taken.get("events") or []
    if not isinstance(events, list | tuple):
        raise InputError(f"events must be a list of objects with a text; got {events!r:.80}")
    return taken


def for_what_stands(command: Command[Any], now: StateSnapshot) -> Command[Any]:
    """An answer for the question that stands now, and for no later one.

    Raises InputError where none stands.
    """
    if command.resume is None:
        return command
    standing = [one.id for task in now.tasks for one in task.interrupts]
    if not standing:
        raise InputError("no question stands to be answered; approve or refuse it by id")
    if isinstance(command.resume, dict) and command.resume.keys() & set(standing):
        return command
    return replace(command, resume={standing[0]: command.resume})


def an_event(raw: Any) -> Mapping[str, Any]:
    """`raw` as an object. Raises InputError for anything else."""
    if not isinstance(raw, Mapping):
        raise InputError(f"an event must be an object with a text; got {raw!r:.80}")
    return raw


def human_messages(messages: Any) -> list[HumanMessage]:
    """The input's messages. Raises InputError for any other kind of message."""
    given = [messages] if isinstance(messages, str | dict | tuple | BaseMessage) else messages
    try:
        converted = convert_to_messages(given)
    except (ValueError, NotImplementedError, TypeError) as error:
        raise InputError(f"messages: {error}") from None
    for message in converted:
        if not isinstance(message, HumanMessage):
            raise InputError(f"messages must be human messages; got one of type {message.type!r}")
    return cast(list[HumanMessage], converted)


def named(message: HumanMessage) -> HumanMessage:
    """With an id: by it the event is known."""
    return message if message.id else message.model_copy(update={"id": str(uuid.uuid4())})
