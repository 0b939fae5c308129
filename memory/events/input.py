"""A run's input: finding what is new in it, and writing that to the inbox.

Store namespace (below `(user, thread)`): `runs` a server's run id -> the event ids of its messages.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple, get_args

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
)
from langgraph.store.base import BaseStore

from memory import messages as memory_messages
from memory.errors import InputError
from memory.events import inbox
from memory.messages import (
    event_of,
    given_id,
    is_history,
    is_summary,
    mark_of,
    waiting,
    waits,
    with_kind,
)
from memory.records import Event, Scope, operation_id
from memory.state import Request, State
from memory.text import once_per_message

RUNS = "runs"


class Arrived(NamedTuple):
    """Result of taking in a run's input."""

    given: bool
    """Whether the input had any message or event."""
    skipped: list[str]
    """Ids of events that were handled before."""
    messages: list[BaseMessage]
    """Update of the history: new messages wait behind it, until their ticks put them into it."""
    notes: list[str]


async def take_in(
    state: State, *, store: BaseStore, scope: Scope, owner: str, now: datetime, run_id: str | None
) -> Arrived:
    """Write the new messages and events of the state into the inbox.

    The history's reducer refuses a message that cannot be an event. One that is in the thread all
    the same is left out with a note: an error would come back in every later run.

    Raises:
        InputError: unknown request or malformed event; nothing was taken.
    """
    check_request(state.get("request"))
    brought = state.get("events") or []
    if not isinstance(brought, list):
        raise InputError(f"events must be a list of objects with a text; got {brought!r:.80}")
    standing = state.get("messages", [])
    handled = await inbox.already_handled(store, scope, _last_asked(standing))
    people, foreign = new_messages(standing, handled)
    named = [m.model_copy(update={"id": given_id(m, standing)}) for m in people]
    first = await _as_first_given(named, store, scope, run_id)
    spoken, notes = _spoken(first, owner=owner, now=now)
    events = [
        memory_messages.valid_event(_completed(raw, run_id, place, owner, now))
        for place, raw in enumerate(brought)
    ]
    posted = await inbox.post(store, scope, [*spoken, *events], now=now)
    if foreign:
        types = ", ".join(sorted({message.type for message in foreign}))
        notes.append(f"Only human messages are taken; left out: {types}.")
    past = {message.id for message in standing} - {message.id for message in people}
    change: list[BaseMessage] = [RemoveMessage(id=str(one.id)) for one in (*people, *foreign)]
    change += [waiting(one) for one in first if one.id not in past]
    return Arrived(bool(people or events), posted.skipped, change, notes)


def _completed(raw: Any, run_id: str | None, place: int, owner: str, now: datetime) -> Any:
    """The event with defaults; its id derives from the run, so that a repeated run repeats it.

    Without a run id an event must have an id of its own.
    """
    if run_id is None:
        return raw
    return inbox.completed(raw, id_=operation_id("event", run_id, str(place)), owner=owner, now=now)


def new_messages(
    messages: Sequence[AnyMessage], handled: Collection[str] = ()
) -> tuple[list[HumanMessage], list[AnyMessage]]:
    """Messages that neither a tick nor a compaction wrote: (people's, others to be removed).

    New input may carry the mark of a tick, but it comes last: a marked human message belongs to a
    tick if a tick's answer follows it, or if its event is in `handled` (somebody removed or edited
    the answer by hand). One that waits was taken in before. A
    summary counts as a compaction's only in first place.

    A tool's answer without its call, or a call without its answer, makes the history invalid for
    every provider, so both are removed. A model's answer in words stays: an edit by hand leaves it.
    """
    answered = _answered(messages)
    # Of a long history nearly all stands: those that may not are looked at one by one.
    marked = enumerate(_is_marked.each(messages))
    new = [
        messages[at]
        for at, known in marked
        if not (known and at < answered)
        and not (waits(messages[at]) or _stands(messages[at], at, answered, handled))
    ]
    people = [m for m in new if isinstance(m, HumanMessage)]
    edited = [m for m in new if isinstance(m, AIMessage) and not m.tool_calls]
    return people, [m for m in new if m not in people and m not in edited]


@once_per_message
def _is_marked(message: AnyMessage) -> bool:
    """Whether a message has the mark of a tick, and is no summary."""
    return is_history(message) and not isinstance(message, SystemMessage)


def _answered(messages: Sequence[AnyMessage]) -> int:
    """Index of the newest answer that a tick wrote; -1 without any."""
    newest_first = range(len(messages) - 1, -1, -1)
    answers = (
        at
        for at in newest_first
        if not isinstance(messages[at], HumanMessage) and _is_marked(messages[at])
    )
    return next(answers, -1)


def _last_asked(messages: Sequence[AnyMessage]) -> list[str]:
    """Event ids of the marked human messages after the newest answer."""
    behind = messages[_answered(messages) + 1 :]
    return [event for m in behind if isinstance(m, HumanMessage) and (event := _event(m))]


def _event(message: HumanMessage) -> str | None:
    """The event id in the message's mark, if it is the message's id, too."""
    event = mark_of(message)["event"] if is_history(message) else None
    return event if event == message.id else None


def _stands(message: AnyMessage, at: int, answered: int, handled: Collection[str]) -> bool:
    """Whether the message at index `at` belongs to the history and is not new input."""
    if isinstance(message, SystemMessage):
        return at == 0 and is_summary(message)
    if not isinstance(message, HumanMessage):
        return is_history(message)
    return is_history(message) and (at < answered or _event(message) in handled)


def _spoken(
    messages: Sequence[HumanMessage], *, owner: str, now: datetime
) -> tuple[list[Event], list[str]]:
    """The messages as events, and notes on messages that were left out."""
    events, notes = [], []
    for message in messages:
        event = event_of(message, owner=owner, now=now)
        if not event["text"].strip():
            notes.append("A message without any content was left out.")
            continue
        try:
            events.append(with_kind(memory_messages.valid_event(event), message))
        except InputError as error:
            notes.append(f"A message was left out: {error}.")
    return events, list(dict.fromkeys(notes))


async def _as_first_given(
    new: Sequence[HumanMessage], store: BaseStore, scope: Scope, run_id: str | None
) -> list[HumanMessage]:
    """The messages with the ids of the run's first attempt.

    After a crash a server repeats a run, even one that had ended; a message without an id of its
    own then gets another one.
    """
    if run_id is None or not new:
        return list(new)
    # Positions count from the end: messages of earlier runs come before this run's input.
    given = {
        operation_id(str(len(new) - at), str(m.name), str(m.content)): str(m.id)
        for at, m in enumerate(new)
    }
    place = scope.namespace(RUNS), run_id
    kept = await store.aget(*place)
    ids = {**given, **(kept.value if kept else {})}
    await store.aput(*place, ids)
    return [m.model_copy(update={"id": ids[k]}) for k, m in zip(given, new, strict=True)]


def check_request(request: object) -> None:
    """Raise InputError for an unknown request."""
    known = get_args(Request)
    if request is not None and request not in known:
        raise InputError(f"unknown request {request!r}; known are {', '.join(known)}")
